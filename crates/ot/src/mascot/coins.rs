//! Coins that nobody chooses, and hashes of what all receive alike.

use std::collections::BTreeMap;

use rand_core::CryptoRng;
use subtle::ConstantTimeEq;
use theta_groups::{Scalar, Secret};
use theta_names::ShareIndex;

use super::Fault;
use super::parties::{Messages, Parties, split};

/// Bytes of a commitment, of a hash, and of what a toss opens.
pub(super) const HASH: usize = 32;

/// A toss of coins in two rounds: commitments, then their openings. The first of the openings follows a hash of all that was broadcast
/// with the commitments.
#[derive(Debug)]
pub(super) struct Toss {
    batch: u64,
    place: &'static str,
    seed: Secret<[u8; HASH]>,
}

/// A toss to whose commitments we are bound.
#[derive(Debug)]
pub(super) struct Bound {
    toss: Toss,
    view: [u8; HASH],
    commitments: BTreeMap<ShareIndex, [u8; HASH]>,
}

/// Public coins.
#[derive(Debug)]
pub(super) struct Coins(blake3::OutputReader);

/// A commitment to a secret of at least 32 random bytes.
fn commitment(parties: &Parties, batch: u64, place: &'static str, party: ShareIndex, secret: &[u8]) -> [u8; HASH] {
    parties
        .transcript("theta/ot/mascot/commitment/v1", batch, place)
        .with("committed", &party.get().to_be_bytes())
        .with("secret", secret)
        .finish32()
}

impl Toss {
    pub(super) fn new(batch: u64, place: &'static str, rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut seed = Secret::new([0; HASH]);
        rng.fill_bytes(seed.expose_mut());
        Self { batch, place, seed }
    }

    /// What is broadcast first.
    pub(super) fn commit(&self, parties: &Parties) -> [u8; HASH] {
        commitment(parties, self.batch, self.place, parties.me(), self.seed.expose())
    }

    /// Takes what all parties, we among them, broadcast: a commitment, and whatever else follows it.
    pub(super) fn bind(self, parties: &Parties, broadcast: &BTreeMap<ShareIndex, Vec<u8>>) -> Bound {
        let (view, commitments) = take(parties, self.batch, self.place, broadcast);
        Bound { toss: self, view, commitments }
    }
}

/// The hash of what all broadcast, and its commitments.
fn take(
    parties: &Parties,
    batch: u64,
    place: &'static str,
    broadcast: &BTreeMap<ShareIndex, Vec<u8>>,
) -> ([u8; HASH], BTreeMap<ShareIndex, [u8; HASH]>) {
    let mut view = parties.transcript("theta/ot/mascot/view/v1", batch, place);
    for (party, bytes) in broadcast {
        view.append("by", &party.get().to_be_bytes());
        view.append("bytes", bytes);
    }
    let first = |bytes: &Vec<u8>| bytes.first_chunk().copied().unwrap_or_default();
    (view.finish32(), broadcast.iter().map(|(party, bytes)| (*party, first(bytes))).collect())
}

/// Whether a party has seen what we have, and opens what it committed to. Gives the opening.
fn opened<'a>(
    parties: &Parties,
    bound: (u64, &'static str, &[u8; HASH], &BTreeMap<ShareIndex, [u8; HASH]>),
    (party, bytes): (ShareIndex, &'a [u8]),
    length: usize,
) -> Result<&'a [u8], Fault> {
    let (batch, place, view, commitments) = bound;
    let (seen, opening) = split(party, bytes, HASH, HASH + length)?;
    if seen != view {
        return Err(Fault::Disagreement(party));
    }
    let committed = commitments.get(&party).copied().unwrap_or_default();
    let is_opening: bool = commitment(parties, batch, place, party, opening).ct_eq(&committed).into();
    if is_opening { Ok(opening) } else { Err(Fault::Commitment(party)) }
}

impl Bound {
    /// What is broadcast second.
    pub(super) fn open(&self) -> Vec<u8> {
        [self.view, *self.toss.seed.expose()].concat()
    }

    /// The coins: a hash of the seeds of all.
    pub(super) fn finish(self, parties: &Parties, messages: &Messages<impl AsRef<[u8]>>) -> Result<Coins, Fault> {
        let Self { toss, view, commitments } = self;
        let mut seeds = BTreeMap::from([(parties.me(), toss.seed.expose().to_vec())]);
        for (party, bytes) in parties.received(messages)? {
            let bound = (toss.batch, toss.place, &view, &commitments);
            seeds.insert(party, opened(parties, bound, (party, bytes), HASH)?.to_vec());
        }
        let mut coins = parties.transcript("theta/ot/mascot/coins/v1", toss.batch, toss.place).with("view", &view);
        seeds.values().for_each(|seed| coins.append("seed", seed));
        Ok(Coins(blake3::Hasher::new_keyed(&coins.finish32()).finalize_xof()))
    }
}

impl Coins {
    /// The next coin, uniform in Z_q.
    pub(super) fn next<S: Scalar>(&mut self) -> S {
        let mut bytes = [0; 64];
        self.0.fill(&mut bytes);
        S::from_uniform_bytes(&bytes)
    }

    /// The next ones.
    pub(super) fn many<S: Scalar>(&mut self, n: usize) -> Vec<S> {
        (0..n).map(|_| self.next()).collect()
    }
}

/// A value that everybody commits to before anybody shows it.
#[derive(Debug)]
pub(super) struct Sealed<S: Scalar> {
    batch: u64,
    /// The value's encoding, and 32 random bytes.
    secret: Secret<Vec<u8>>,
    value: Secret<S>,
}

/// The same, when all have committed.
#[derive(Debug)]
pub(super) struct Unsealing<S: Scalar> {
    sealed: Sealed<S>,
    view: [u8; HASH],
    commitments: BTreeMap<ShareIndex, [u8; HASH]>,
}

impl<S: Scalar> Sealed<S> {
    const PLACE: &'static str = "sigma";

    pub(super) fn new(batch: u64, value: S, rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut secret = Secret::new(value.encode().as_ref().to_vec());
        let mut blinding = zeroize::Zeroizing::new([0; HASH]);
        rng.fill_bytes(blinding.as_mut());
        secret.expose_mut().extend_from_slice(blinding.as_ref());
        Self { batch, secret, value: Secret::new(value) }
    }

    pub(super) fn commit(&self, parties: &Parties) -> [u8; HASH] {
        commitment(parties, self.batch, Self::PLACE, parties.me(), self.secret.expose())
    }

    pub(super) fn bind(self, parties: &Parties, messages: &Messages<impl AsRef<[u8]>>) -> Result<Unsealing<S>, Fault> {
        let broadcast = all(parties, &self.commit(parties), messages, HASH)?;
        let (view, commitments) = take(parties, self.batch, Self::PLACE, &broadcast);
        Ok(Unsealing { sealed: self, view, commitments })
    }
}

impl<S: Scalar> Unsealing<S> {
    pub(super) fn open(&self) -> Vec<u8> {
        [self.view.as_slice(), self.sealed.secret.expose()].concat()
    }

    /// The sum of all values.
    pub(super) fn sum(self, parties: &Parties, messages: &Messages<impl AsRef<[u8]>>) -> Result<S, Fault> {
        let mut sum = *self.sealed.value.expose();
        for (party, bytes) in parties.received(messages)? {
            let bound = (self.sealed.batch, Sealed::<S>::PLACE, &self.view, &self.commitments);
            let opening = opened(parties, bound, (party, bytes), S::ENCODED_LEN + HASH)?;
            let (value, _) = opening.split_at(S::ENCODED_LEN);
            let misbehaviour = crate::Misbehaviour::Scalar { index: 0 };
            sum += S::decode(value).map_err(|_| Fault::Party { party, misbehaviour })?;
        }
        Ok(sum)
    }
}

/// What all parties broadcast, if everything has the length that is due.
pub(super) fn all(
    parties: &Parties,
    ours: &[u8],
    messages: &Messages<impl AsRef<[u8]>>,
    length: usize,
) -> Result<BTreeMap<ShareIndex, Vec<u8>>, Fault> {
    let mut broadcast = BTreeMap::from([(parties.me(), ours.to_vec())]);
    for (party, bytes) in parties.received(messages)? {
        let (bytes, _) = split(party, bytes, length, length)?;
        broadcast.insert(party, bytes.to_vec());
    }
    Ok(broadcast)
}

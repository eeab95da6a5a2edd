//! What does not change while a request runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use theta_groups::{Group, Scalar, Secret, Transcript};
use theta_rounds::PartyId;
use theta_schemes::keys::{KeyShare, PublicKeySet};
use theta_schemes::signatures::frost::{DerivedKey, FrostSuite, PackageError, SigningCommitments, SigningPackage};
use theta_sharing::{ShareIndex, Threshold};

use super::coordinator::MOST_OFFERS;
use super::message::{MOST_POOLED, Signed};
use crate::Misbehaviour;

/// The most packages of one coordinator that are read, and the most shares of one signer for unknown sessions.
///
/// An honest coordinator does not need more, whatever the n - k others do: of all sessions with the same honest signer,
/// each but the last is held up or spoiled by another party, which must have offered commitments for it
/// ([`MOST_OFFERS`] times at most). The bound is twice that, for coordinators that restart.
pub(super) fn most_packages(threshold: Threshold) -> usize {
    2 * MOST_OFFERS * (usize::from(threshold.n().saturating_sub(threshold.k())) + 2)
}

/// Counts a message of a party, and blames the party if it has sent more than `most`.
pub(super) fn count(messages: &mut BTreeMap<PartyId, usize>, of: PartyId, most: usize) -> Result<(), Misbehaviour> {
    let messages = messages.entry(of).or_default();
    *messages += 1;
    if *messages <= most { Ok(()) } else { Err(Misbehaviour::TooMany) }
}

/// A key and this party's share of it.
pub(super) type KeyAndShare<C> = (PublicKeyOf<C>, ShareOf<C>);
type PublicKeyOf<C> = Arc<PublicKeySet<<C as FrostSuite>::Group>>;
type ShareOf<C> = Arc<KeyShare<<C as FrostSuite>::Group>>;

/// What to sign with which key, and what follows from that.
pub(super) struct Setting<C: FrostSuite> {
    pub(super) local: PartyId,
    pub(super) threshold: Threshold,
    pub(super) public: Arc<PublicKeySet<C::Group>>,
    pub(super) key: Arc<KeyShare<C::Group>>,
    pub(super) message: Bytes,
    /// The seed of the re-randomised key that signs; `None` where the group's own key does.
    pub(super) seed: Option<Arc<Secret<Vec<u8>>>>,
    /// The most pairs made in advance that a coordinator keeps of one peer; 0 if nothing is made in advance. A signer
    /// keeps twice as many nonces for one coordinator, since some commitments are under way, and some were lost with
    /// the instances that carried them.
    pub(super) per_peer: usize,
    /// The day on which the request began: nonces that it draws are of that day or later.
    pub(super) day: u32,
    /// Where the search for signers with commitments made in advance starts, so that work spreads over them.
    pub(super) spread: PartyId,
    /// The place of the first coordinator in the rotation, 0 to n - 1.
    first: u16,
}

impl<C: FrostSuite> Setting<C> {
    pub(super) fn new(
        local: PartyId,
        (public, key): KeyAndShare<C>,
        message: Bytes,
        seed: Option<Arc<Secret<Vec<u8>>>>,
        (per_peer, day): (usize, u32),
    ) -> Self {
        let threshold = public.threshold();
        let hash = Transcript::new("theta/frost/coordinator/v1")
            .with("key id", public.key_id().as_bytes())
            .with("message", &message);
        let hash = match &seed {
            None => hash,
            Some(seed) => hash.with("seed", seed.expose()),
        };
        let [a, b, c, d, ..] = hash.finish32();
        let place = |bytes| u16::from_be_bytes(bytes).checked_rem(threshold.n()).unwrap_or(0);
        let spread = ShareIndex::at(usize::from(place([c, d]))).map_or(local, PartyId::of_share);
        Self { local, threshold, public, key, message, seed, per_peer, day, spread, first: place([a, b]) }
    }

    /// Whether nothing is made in advance, so that every signature takes two rounds.
    pub(super) const fn is_two_rounds(&self) -> bool {
        self.per_peer == 0
    }

    /// The most pairs that are made at once, and the number to ask of a signer of which none are held.
    pub(super) fn batch(&self) -> u8 {
        if self.is_two_rounds() {
            0
        } else {
            u8::try_from((self.per_peer / 4).clamp(1, MOST_POOLED)).unwrap_or(u8::MAX)
        }
    }

    /// How many pairs to ask of a signer beside its share, if `held` are held of it: one where there are enough, to
    /// replace the one that is used, and more where they run low.
    pub(super) fn wanted(&self, held: usize) -> u8 {
        if held >= self.per_peer {
            0
        } else if 2 * held >= self.per_peer {
            1
        } else {
            u8::try_from((self.per_peer / 8).clamp(1, MOST_POOLED)).unwrap_or(u8::MAX)
        }
    }

    /// k.
    pub(super) fn needed(&self) -> usize {
        usize::from(self.threshold.k())
    }

    /// The coordinator of an attempt. The request selects the first, so that work spreads and all parties know it
    /// without a message; the others follow in order.
    pub(super) fn coordinator(&self, attempt: u32) -> Option<PartyId> {
        let place = (u32::from(self.first) + attempt).checked_rem(u32::from(self.threshold.n()))?;
        ShareIndex::at(usize::try_from(place).ok()?).map(PartyId::of_share)
    }

    /// Whether `signers`, sorted by index, are k parties of the key.
    fn can_have_signed(&self, signers: &[PartyId]) -> bool {
        signers.len() == self.needed() && signers.last().is_none_or(|last| last.get() <= self.threshold.n())
    }

    /// All parties but this one.
    pub(super) fn others(&self) -> impl Iterator<Item = PartyId> {
        let parties = self.threshold.indices().map(PartyId::of_share);
        parties.filter(move |party| *party != self.local)
    }

    /// Whether this party is the first coordinator.
    pub(super) fn is_first(&self) -> bool {
        self.coordinator(0) == Some(self.local)
    }

    pub(super) fn package(&self, list: Vec<SigningCommitments<C>>) -> Result<SigningPackage<C>, PackageError> {
        match &self.seed {
            None => SigningPackage::new(&self.public, list, &self.message),
            Some(seed) => SigningPackage::randomized(&self.public, seed, list, &self.message),
        }
    }

    /// Whether `signed` is a signature of the message under the key of this request.
    pub(super) fn verify(&self, signed: &Signed) -> bool {
        let entry = <C::Group as Group>::Scalar::ENCODED_LEN + 2 * C::Group::ENCODED_LEN;
        let commitments = &signed.commitments;
        let key = match &self.seed {
            None if commitments.is_empty() => DerivedKey::<C>::new(&self.public),
            Some(seed) if commitments.len() == entry * self.needed() => {
                match DerivedKey::randomized(&self.public, seed, commitments) {
                    Ok(key) => key,
                    Err(_) => return false,
                }
            }
            _ => return false,
        };
        self.can_have_signed(&signed.signers) && key.verifying_key().verify(&self.message, &signed.signature).is_ok()
    }
}

//! Rounds 4 to 6: MACs on all shares, and what is opened to check them.

use std::collections::BTreeMap;

use rand_core::CryptoRng;
use theta_groups::{Scalar, Secret};
use theta_names::ShareIndex;

use super::check::{Claims, Opened};
use super::coins::{Bound, HASH, Toss, all};
use super::mesh::{Links, Party};
use super::parties::{Messages, split};
use super::{Fault, Made, Masked, Share};
use crate::Misuse;

/// Our shares of a batch: for each triple a, b, c, a^ and c^, and at the end the mask x_0.
pub(super) struct Input;

/// What a batch has beside what is authenticated.
#[derive(Debug)]
pub(super) enum Rest<S: Scalar> {
    /// Nothing: the sacrifice checks products, which have MACs.
    Sacrificed,
    /// Our summands of each c, which nobody checks.
    Unchecked(Secret<Vec<S>>),
    /// Our summands of each b; and each c, which all open.
    Masked(Secret<Vec<S>>, Products<S>),
}

/// Products that are opened without a check.
#[derive(Debug)]
pub(super) enum Products<S: Scalar> {
    /// Our summands.
    Ours(Secret<Vec<S>>),
    /// They themselves.
    Opened(Vec<S>),
}

/// What is authenticated of a batch, and the rest of it.
#[derive(Debug)]
pub(super) struct Batch<S: Scalar> {
    /// As [`Input`] says; of each triple a and b alone where nobody checks its product. Of what has no b here, each a, and then the spare values.
    pub(super) shares: Secret<Vec<Share<S>>>,
    pub(super) rest: Rest<S>,
}

impl<S: Scalar> Batch<S> {
    /// The triples that a sacrifice checks: none if nobody checks them.
    pub(super) fn checked(&self) -> &[[Share<S>; Input::LEN]] {
        if matches!(self.rest, Rest::Sacrificed) { self.shares.expose().as_chunks().0 } else { &[] }
    }

    /// What all open in round 6 after their combinations, our summands: rho of each triple, or each c.
    fn opens(&self, s: &S) -> Vec<S> {
        match &self.rest {
            Rest::Sacrificed => self.checked().iter().map(|[a, _, _, a_hat, _]| *s * a.value - a_hat.value).collect(),
            Rest::Unchecked(_) | Rest::Masked(_, Products::Opened(_)) => Vec::new(),
            Rest::Masked(_, Products::Ours(products)) => products.expose().clone(),
        }
    }

    /// How many that are.
    pub(super) fn opened(&self) -> usize {
        match &self.rest {
            Rest::Sacrificed => self.checked().len(),
            Rest::Unchecked(_) => 0,
            Rest::Masked(masks, _) => masks.expose().len(),
        }
    }

    /// What it has made.
    pub(super) fn made(self) -> Made<S> {
        let shares = self.shares.expose();
        match self.rest {
            Rest::Sacrificed => {
                let triples = shares.as_chunks().0.iter().map(|[a, b, c, _, _]| [*a, *b, *c]);
                Made::Triples(Secret::new(triples.collect()))
            }
            Rest::Unchecked(products) => {
                let factors = shares.as_chunks::<2>().0.iter().zip(products.expose());
                let triple = |([a, b], c): (&[Share<S>; 2], &S)| [*a, *b, Share { value: *c, mac: S::ZERO }];
                Made::Triples(Secret::new(factors.map(triple).collect()))
            }
            Rest::Masked(masks, products) => {
                let (factors, spare) = shares.split_at_checked(masks.expose().len()).unwrap_or_default();
                // The last one is the mask of the check.
                let (_, spare) = spare.split_last().map_or((None, spare), |(mask, spare)| (Some(mask), spare));
                let products = if let Products::Opened(products) = products { products } else { Vec::new() };
                let values = factors.iter().zip(masks.expose()).zip(products);
                let masked = values.map(|((factor, mask), product)| Masked { factor: *factor, mask: *mask, product });
                Made::Masked(Secret::new(masked.collect()), Secret::new(spare.to_vec()))
            }
        }
    }
}

impl Input {
    /// How many values a triple has.
    pub(super) const LEN: usize = 5;
}

/// After round 4.
#[derive(Debug)]
pub struct Authenticating<S: Scalar> {
    party: Party<S>,
    /// With those summands of the MACs that we have so far.
    batch: Batch<S>,
    toss: Toss,
}

/// After round 5.
#[derive(Debug)]
pub struct Challenged<S: Scalar> {
    party: Party<S>,
    batch: Batch<S>,
    /// For each party what we have of the MACs of its inputs.
    inputs: BTreeMap<ShareIndex, Secret<Vec<S>>>,
    toss: Bound,
}

/// Shares of several values.
pub(super) type Shares<S> = Secret<Vec<Share<S>>>;

impl<S: Scalar> Party<S> {
    /// Our shares of our values, with those summands of their MACs that we have, and what gives each other party its own.
    pub(super) fn give_macs(&mut self, values: &[S]) -> Result<(Shares<S>, Messages), Misuse> {
        let delta = *self.delta.expose();
        let with_mac = |value: &S| Share { value: *value, mac: *value * delta };
        let mut shares = Secret::new(values.iter().map(with_mac).collect::<Vec<_>>());
        let (mut links, mut out) = (Links::new(), Messages::new());
        for (peer, (input, key)) in core::mem::take(&mut self.links) {
            let (input, corrections, t) = input.extend(values)?;
            shares.expose_mut().iter_mut().zip(t.expose()).for_each(|(share, t)| share.mac += *t);
            out.insert(peer, corrections.0);
            links.insert(peer, (input, key));
        }
        self.links = links;
        Ok((shares, out))
    }

    /// Our summands of the MACs of a party's values.
    pub(super) fn macs_of(
        &mut self,
        peer: ShareIndex,
        values: usize,
        corrections: &[u8],
    ) -> Result<Secret<Vec<S>>, Fault> {
        let (input, key) = self.links.remove(&peer).ok_or(Misuse::Parties)?;
        let extended = key.extend::<S>(values, corrections);
        let (key, q) = extended.map_err(Fault::of(peer))?;
        self.links.insert(peer, (input, key));
        Ok(q)
    }
}

impl Input {
    /// Inputs our shares.
    pub(super) fn begin<S: Scalar>(
        mut party: Party<S>,
        mut values: Secret<Vec<S>>,
        rest: Rest<S>,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Authenticating<S>, Messages), Fault> {
        values.expose_mut().push(S::random(rng));
        let toss = Toss::new(party.batch, "input", rng);
        let commitment = toss.commit(&party.parties);
        let (shares, corrections) = party.give_macs(values.expose())?;
        let message = |(peer, corrections): (_, Vec<u8>)| (peer, [commitment.as_slice(), &corrections].concat());
        let out = corrections.into_iter().map(message).collect();
        Ok((Authenticating { party, batch: Batch { shares, rest }, toss }, out))
    }
}

impl<S: Scalar> Authenticating<S> {
    /// Round 5.
    ///
    /// # Errors
    /// [`Fault::Party`]; [`Misuse::Parties`].
    pub fn handle(self, messages: &Messages<impl AsRef<[u8]>>) -> Result<(Challenged<S>, Messages), Fault> {
        let Self { mut party, batch, toss } = self;
        let n = batch.shares.expose().len();
        let (mut inputs, ours) = (BTreeMap::new(), toss.commit(&party.parties).to_vec());
        let mut broadcast = BTreeMap::from([(party.parties.me(), ours)]);
        for (peer, bytes) in party.parties.received(messages)? {
            let corrections = bytes.len().saturating_sub(HASH);
            let (commitment, corrections) = split(peer, bytes, HASH, HASH + corrections)?;
            broadcast.insert(peer, commitment.to_vec());
            inputs.insert(peer, party.macs_of(peer, n, corrections)?);
        }
        let toss = toss.bind(&party.parties, &broadcast);
        let out = party.parties.to_all(&toss.open());
        Ok((Challenged { party, batch, inputs, toss }, out))
    }
}

impl<S: Scalar> Challenged<S> {
    /// Round 6.
    ///
    /// # Errors
    /// [`Fault::Party`], [`Fault::Commitment`] and [`Fault::Disagreement`]; [`Misuse::Parties`].
    pub fn handle(
        self,
        messages: &Messages<impl AsRef<[u8]>>,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Opened<S>, Messages), Fault> {
        let Self { party, mut batch, inputs, toss } = self;
        let mut coins = toss.finish(&party.parties, messages)?;
        let r = coins.many::<S>(batch.shares.expose().len());
        let ours = batch.shares.expose();
        let combined = |of: &dyn Fn(&Share<S>) -> S| ours.iter().zip(&r).map(|(share, r)| of(share) * *r).sum::<S>();
        let y = combined(&|share| share.value);
        // Our summand of the MAC of each party's combination; `shares` has the MACs of our own inputs still.
        let mut macs = BTreeMap::from([(party.parties.me(), combined(&|share| share.mac))]);
        for (peer, q) in &inputs {
            macs.insert(*peer, q.expose().iter().zip(&r).map(|(q, r)| *q * *r).sum());
        }
        for q in inputs.values() {
            batch.shares.expose_mut().iter_mut().zip(q.expose()).for_each(|(share, q)| share.mac += *q);
        }
        let s: S = coins.next();
        let summands = batch.opens(&s);
        let toss = Toss::new(party.batch, "check", rng);
        let mut message = toss.commit(&party.parties).to_vec();
        [&y].into_iter().chain(&summands).for_each(|value| message.extend_from_slice(value.encode().as_ref()));
        let out = party.parties.to_all(&message);
        let claims = Claims { batch, macs: Secret::new(macs.into_values().collect()), s };
        Ok((Opened { party, claims, toss, message }, out))
    }
}

/// What each party broadcast.
type Broadcast = BTreeMap<ShareIndex, Vec<u8>>;
/// Values of each party.
pub(super) type Values<S> = BTreeMap<ShareIndex, Vec<S>>;

/// The values that each party opened in round 6, after its commitment: its combination y, and its summands of each rho or c.
pub(super) fn opened<S: Scalar>(
    party: &Party<S>,
    ours: &[u8],
    messages: &Messages<impl AsRef<[u8]>>,
    values: usize,
) -> Result<(Broadcast, Values<S>), Fault> {
    let broadcast = all(&party.parties, ours, messages, HASH + S::ENCODED_LEN * values)?;
    let mut opened = BTreeMap::new();
    for (peer, bytes) in &broadcast {
        let encodings = bytes.get(HASH..).unwrap_or_default().chunks_exact(S::ENCODED_LEN);
        let misbehaviour = |index| crate::Misbehaviour::Scalar { index };
        let decode = |(index, bytes)| {
            S::decode(bytes).map_err(|_| Fault::Party { party: *peer, misbehaviour: misbehaviour(index) })
        };
        opened.insert(*peer, encodings.enumerate().map(decode).collect::<Result<Vec<_>, _>>()?);
    }
    Ok((broadcast, opened))
}

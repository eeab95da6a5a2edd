//! Rounds 1 to 4: products of all pairs, and their random combinations.

use std::collections::BTreeMap;

use rand_core::CryptoRng;
use theta_groups::{Scalar, Secret};
use theta_names::ShareIndex;
use zeroize::Zeroizing;

use super::authenticate::{Authenticating, Input, Products, Rest};
use super::coins::{Bound, HASH, Toss};
use super::mesh::{Pairs, Party};
use super::parties::{Messages, split};
use super::{Check, Fault, MOST};
use crate::extension::ReceivedTransfers;
use crate::gilboa::{Corrections, TRANSFERS};
use crate::{Choices, Misuse, gilboa};

/// Our random factors: for each product several of a, and one of b.
#[derive(Debug)]
struct Factors<S: Scalar> {
    a: Secret<Vec<S>>,
    b: Secret<Vec<S>>,
}

/// After round 1.
#[derive(Debug)]
pub struct Extending<S: Scalar> {
    party: Party<S>,
    factors: Factors<S>,
    received: BTreeMap<ShareIndex, ReceivedTransfers>,
    check: Check,
}

/// After round 2.
#[derive(Debug)]
pub struct Multiplying<S: Scalar> {
    party: Party<S>,
    factors: Factors<S>,
    received: BTreeMap<ShareIndex, ReceivedTransfers>,
    /// Our summands of c, without what the others' corrections still bring.
    c: Secret<Vec<S>>,
    toss: Toss,
    check: Check,
}

/// After round 3.
#[derive(Debug)]
pub struct Combining<S: Scalar> {
    party: Party<S>,
    factors: Factors<S>,
    pub(super) c: Secret<Vec<S>>,
    toss: Bound,
    check: Check,
}

impl<S: Scalar> Party<S> {
    /// Begins a batch of triples, whose products are checked by a sacrifice.
    ///
    /// # Errors
    /// [`Misuse::Count`] and [`Misuse::UsedUp`].
    pub fn triples(
        self,
        triples: usize,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Extending<S>, Messages), Misuse> {
        self.batch_of(triples, Check::Sacrifice, rng)
    }

    /// Begins a batch of triples whose products nobody checks, and which have no MACs (zeros stand in their places): those of MASCOT-, for programs
    /// whose result shows whether it is right. The factors are as those of [`Self::triples`].
    ///
    /// # Errors
    /// As [`Self::triples`].
    pub fn unchecked_triples(
        self,
        triples: usize,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Extending<S>, Messages), Misuse> {
        self.batch_of(triples, Check::Outcome, rng)
    }

    /// Begins a batch of random values whose inverses are to be had, with random values beside them for other uses: [`Masked`](super::Masked).
    ///
    /// # Errors
    /// As [`Self::triples`].
    pub fn masked(
        self,
        values: usize,
        spare: usize,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Extending<S>, Messages), Misuse> {
        if spare > MOST {
            return Err(Misuse::Count { got: spare, most: MOST });
        }
        self.batch_of(values, Check::Relation { spare }, rng)
    }

    fn batch_of(
        mut self,
        triples: usize,
        check: Check,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Extending<S>, Messages), Misuse> {
        if triples == 0 || triples > MOST {
            return Err(Misuse::Count { got: triples, most: MOST });
        }
        let draw = |n: usize, rng: &mut _| Secret::new((0..n).map(|_| S::random(rng)).collect::<Vec<_>>());
        let factors = Factors { a: draw(check.combined() * triples, &mut *rng), b: draw(triples, &mut *rng) };
        let (mut received, mut messages, mut pairs) = (BTreeMap::new(), Messages::new(), Pairs::new());
        for (party, (sender, receiver)) in core::mem::take(&mut self.pairs) {
            let (receiver, extension, transfers) = receiver.extend(Choices::of_scalars(factors.a.expose()), rng)?;
            messages.insert(party, extension.0);
            received.insert(party, transfers);
            pairs.insert(party, (sender, receiver));
        }
        self.pairs = pairs;
        Ok((Extending { party: self, factors, received, check }, messages))
    }
}

impl<S: Scalar> Extending<S> {
    /// Round 2.
    ///
    /// # Errors
    /// [`Fault::Party`]; [`Misuse::Parties`].
    pub fn handle(
        self,
        messages: &Messages<impl AsRef<[u8]>>,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Multiplying<S>, Messages), Fault> {
        let Self { mut party, factors, received, check } = self;
        let toss = Toss::new(party.batch, "combine", rng);
        let commitment = toss.commit(&party.parties);
        // Sized beforehand: a vector that grows leaves copies of its old contents behind.
        let mut repeated = Zeroizing::new(Vec::with_capacity(factors.a.expose().len()));
        repeated.extend(factors.b.expose().iter().flat_map(|b| core::iter::repeat_n(*b, check.combined())));
        let own = factors.a.expose().iter().zip(repeated.iter());
        let mut c = Secret::new(own.map(|(a, b)| *a * *b).collect::<Vec<_>>());
        let mut out = Messages::new();
        for (peer, bytes) in party.parties.received(messages)? {
            let (sender, receiver) = party.pairs.remove(&peer).ok_or(Misuse::Parties)?;
            let extended = sender.extend(TRANSFERS * repeated.len(), bytes);
            let (sender, sent) = extended.map_err(Fault::of(peer))?;
            let (message, summands) = gilboa::send_after(&commitment, sent, &repeated)?;
            add(&mut c, summands.expose());
            out.insert(peer, message);
            party.pairs.insert(peer, (sender, receiver));
        }
        Ok((Multiplying { party, factors, received, c, toss, check }, out))
    }
}

/// Adds values place by place.
pub(super) fn add<S: Scalar>(to: &mut Secret<Vec<S>>, summands: &[S]) {
    to.expose_mut().iter_mut().zip(summands).for_each(|(to, summand)| *to += *summand);
}

impl<S: Scalar> Multiplying<S> {
    /// Round 3.
    ///
    /// # Errors
    /// [`Fault::Party`]; [`Misuse::Parties`].
    pub fn handle(self, messages: &Messages<impl AsRef<[u8]>>) -> Result<(Combining<S>, Messages), Fault> {
        let Self { party, factors, mut received, mut c, toss, check } = self;
        let length = HASH + Corrections::length(factors.a.expose().len());
        let ours = toss.commit(&party.parties).to_vec();
        let mut broadcast = BTreeMap::from([(party.parties.me(), ours)]);
        for (peer, bytes) in party.parties.received(messages)? {
            let (commitment, corrections) = split(peer, bytes, HASH, length)?;
            broadcast.insert(peer, commitment.to_vec());
            let transfers = received.remove(&peer).ok_or(Misuse::Parties)?;
            let summands = gilboa::receive::<S>(transfers, corrections);
            add(&mut c, summands.map_err(Fault::of(peer))?.expose());
        }
        let toss = toss.bind(&party.parties, &broadcast);
        let out = party.parties.to_all(&toss.open());
        Ok((Combining { party, factors, c, toss, check }, out))
    }
}

impl<S: Scalar> Combining<S> {
    /// Round 4.
    ///
    /// # Errors
    /// [`Fault::Party`], [`Fault::Commitment`] and [`Fault::Disagreement`]; [`Misuse::Parties`].
    pub fn handle(
        self,
        messages: &Messages<impl AsRef<[u8]>>,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Authenticating<S>, Messages), Fault> {
        let Self { party, factors, c, toss, check } = self;
        let mut coins = toss.finish(&party.parties, messages)?;
        let (count, tau) = (factors.b.expose().len(), check.combined());
        let spare = if let Check::Relation { spare } = check { spare } else { 0 };
        let mut values = Secret::new(Vec::with_capacity(Input::LEN * count + spare + 1));
        let mut products = Secret::new(Vec::with_capacity(count));
        let triples = factors.a.expose().chunks_exact(tau).zip(c.expose().chunks_exact(tau)).zip(factors.b.expose());
        for ((a, c), b) in triples {
            let combine = |values: &[S], r: &[S]| values.iter().zip(r).map(|(value, r)| *value * *r).sum::<S>();
            let r = coins.many::<S>(tau);
            match check {
                Check::Sacrifice => {
                    let r_hat = coins.many::<S>(tau);
                    let hats = [combine(a, &r_hat), combine(c, &r_hat)];
                    values.expose_mut().extend([combine(a, &r), *b, combine(c, &r)].into_iter().chain(hats));
                }
                Check::Outcome => {
                    values.expose_mut().extend([combine(a, &r), *b]);
                    products.expose_mut().push(combine(c, &r));
                }
                Check::Relation { .. } => {
                    values.expose_mut().push(combine(a, &r));
                    products.expose_mut().push(combine(c, &r));
                }
            }
        }
        let rest = match check {
            Check::Sacrifice => Rest::Sacrificed,
            Check::Outcome => Rest::Unchecked(products),
            Check::Relation { .. } => {
                values.expose_mut().extend((0..spare).map(|_| S::random(rng)));
                Rest::Masked(factors.b, Products::Ours(products))
            }
        };
        Input::begin(party, values, rest, rng)
    }
}

//! Products with a factor that each party has fixed, such as its summand of a key: COPEe of all pairs, in both directions.
//!
//! Each party has a summand x_i of a factor x. Set up once, in two rounds: transfers of the extension with the bits of x_i, and trees opened over them
//! ([`Setting`], [`Fixing`]). Then, for summands a_i of any number of values, one message of each party to each other one gives all of them summands of
//! a x ([`Fixed::multiply`], [`Multiplied`]). That is what MACs are made by; a product by [`crate::gilboa`] takes three times as much work, and twice the bytes.
//!
//! A party may use other a towards others, and for some digits of x, and other x. Whoever has x_i can check what another party multiplied it by, when it
//! knows a random combination of that ([`Products::is_right`]); it has to, before it shows anybody anything that depends on the products (`spec/ot.md`,
//! "Products with a factor that all have fixed"). [`Party::authenticate`] gives values MACs.

use std::collections::BTreeMap;

use rand_core::CryptoRng;
use theta_groups::{Scalar, Secret, Transcript};
use theta_names::ShareIndex;

use super::Fault;
use super::authenticate::Shares;
use super::mesh::{Links, Pairs, Party, bits, open};
use super::multiply::add;
use super::parties::{Messages, Parties};
use crate::extension::ReceivedTransfers;
use crate::{Error, Misuse, copee};

/// The bits of a digit where security is passive: what takes least work.
pub const FAST: u8 = 2;
/// The bits of a digit beside MACs, as theirs.
pub const SHORT: u8 = super::mesh::DIGIT;

/// A set-up after its first round.
#[derive(Debug)]
pub struct Setting<S: Scalar> {
    parties: Parties,
    factor: Secret<S>,
    digit: u8,
    received: BTreeMap<ShareIndex, ReceivedTransfers>,
}

/// A set-up after its second round.
#[derive(Debug)]
pub struct Fixing<S: Scalar> {
    parties: Parties,
    factor: Secret<S>,
    digit: u8,
    halves: BTreeMap<ShareIndex, (copee::Sender, ReceivedTransfers)>,
}

/// A party with the factor that it has fixed.
#[derive(Debug)]
pub struct Fixed<S: Scalar> {
    parties: Parties,
    factor: Secret<S>,
    links: Links,
}

/// A party that waits for what the others' values add to its summands.
#[derive(Debug)]
pub struct Multiplied<S: Scalar> {
    fixed: Fixed<S>,
    products: Products<S>,
}

/// What a party has of products, for each value.
#[derive(Debug)]
pub struct Products<S: Scalar> {
    summands: Secret<Vec<S>>,
    /// Of each other party, what we have of the products of our values with its factor, and of its values with ours.
    parts: BTreeMap<ShareIndex, Part<S>>,
}

#[derive(Debug)]
struct Part<S: Scalar> {
    of_ours: Secret<Vec<S>>,
    of_theirs: Secret<Vec<S>>,
}

impl<S: Scalar> Setting<S> {
    /// Begins to fix `factor`, our summand, with 256 transfers of each of `pairs`. All parties give the same `number`, a new one for each factor of a run,
    /// and the same digits ([`FAST`] or [`SHORT`]).
    ///
    /// # Errors
    /// [`Misuse::UsedUp`].
    pub fn begin(
        parties: &Parties,
        pairs: &mut Pairs,
        factor: Secret<S>,
        (number, digit): (u64, u8),
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Self, Messages), Misuse> {
        let run = Transcript::new("theta/ot/fixed/v1").with("run", &parties.id()).with("number", &number.to_be_bytes());
        let parties = parties.for_run(run.finish32());
        let (mut received, mut out) = (BTreeMap::new(), Messages::new());
        for (party, (sender, receiver)) in core::mem::take(pairs) {
            let (receiver, extension, transfers) = receiver.extend(bits(&factor), rng)?;
            out.insert(party, extension.0);
            received.insert(party, transfers);
            pairs.insert(party, (sender, receiver));
        }
        Ok((Self { parties, factor, digit, received }, out))
    }

    /// Opens the trees, with transfers of the same pairs.
    ///
    /// # Errors
    /// [`Fault::Party`]; [`Misuse::Parties`].
    pub fn handle(
        self,
        pairs: &mut Pairs,
        messages: &Messages<impl AsRef<[u8]>>,
    ) -> Result<(Fixing<S>, Messages), Fault> {
        let Self { parties, factor, digit, mut received } = self;
        let (mut halves, mut out) = (BTreeMap::new(), Messages::new());
        for (party, bytes) in parties.received(messages)? {
            let (sender, receiver) = pairs.remove(&party).ok_or(Misuse::Parties)?;
            let (sender, input, opening) = open(&parties, party, digit, sender, bytes)?;
            out.insert(party, opening);
            pairs.insert(party, (sender, receiver));
            halves.insert(party, (input, received.remove(&party).ok_or(Misuse::Parties)?));
        }
        Ok((Fixing { parties, factor, digit, halves }, out))
    }
}

impl<S: Scalar> Fixing<S> {
    /// Ends the set-up. All openings are judged before any is: whoever opened falsely for some digits of our factor passes as often as it guessed those, and
    /// what is said of one party tells nothing of another.
    ///
    /// # Errors
    /// Who opened its trees falsely, and [`Misuse::Parties`].
    pub fn handle(mut self, messages: &Messages<impl AsRef<[u8]>>) -> Result<Fixed<S>, FalseOpenings> {
        let (mut links, mut liars) = (Links::new(), Vec::new());
        for (party, bytes) in self.parties.received(messages)? {
            let (input, received) = self.halves.remove(&party).ok_or(Misuse::Parties)?;
            let (session, opening) = (self.parties.to(party)?.reversed(), copee::Opening(bytes.to_vec()));
            match copee::Receiver::new(&session, self.digit, &self.factor, received.into_seeds(), &opening) {
                Ok(key) => {
                    links.insert(party, (input, key));
                }
                Err(Error::Theirs(_)) => liars.push(party),
                Err(Error::Ours(misuse)) => return Err(misuse.into()),
            }
        }
        let Self { parties, factor, .. } = self;
        if liars.is_empty() { Ok(Fixed { parties, factor, links }) } else { Err(FalseOpenings::Of(liars)) }
    }
}

/// Why a factor is not fixed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FalseOpenings {
    /// Of these parties, whose trees are opened falsely.
    #[error("the trees of some parties are opened falsely")]
    Of(Vec<ShareIndex>),
    /// Our caller made a mistake.
    #[error("misuse: {0}")]
    Ours(#[from] Misuse),
}

impl<S: Scalar> Fixed<S> {
    /// Begins to multiply: `values` are our summands, at most [`copee::MOST`].
    ///
    /// # Errors
    /// [`Misuse::Count`].
    pub fn multiply(self, values: &[S]) -> Result<(Multiplied<S>, Messages), Misuse> {
        let mut summands = Secret::new(values.iter().map(|value| *value * *self.factor.expose()).collect::<Vec<_>>());
        let (mut links, mut parts, mut out) = (Links::new(), BTreeMap::new(), Messages::new());
        for (party, (input, key)) in self.links {
            let (input, corrections, of_ours) = input.extend(values)?;
            add(&mut summands, of_ours.expose());
            out.insert(party, corrections.0);
            links.insert(party, (input, key));
            parts.insert(party, Part { of_ours, of_theirs: Secret::new(Vec::new()) });
        }
        Ok((Multiplied { fixed: Self { links, ..self }, products: Products { summands, parts } }, out))
    }

    /// Our summand of the factor.
    #[must_use]
    pub const fn factor(&self) -> &Secret<S> {
        &self.factor
    }
}

impl<S: Scalar> Multiplied<S> {
    /// The products, and what the factor is multiplied by next.
    ///
    /// # Errors
    /// [`Fault::Party`]; [`Misuse::Parties`].
    pub fn handle(self, messages: &Messages<impl AsRef<[u8]>>) -> Result<(Fixed<S>, Products<S>), Fault> {
        let Self { mut fixed, mut products } = self;
        for (party, bytes) in fixed.parties.received(messages)? {
            let (input, key) = fixed.links.remove(&party).ok_or(Misuse::Parties)?;
            let part = products.parts.get_mut(&party).ok_or(Misuse::Parties)?;
            let extended = key.extend::<S>(products.summands.expose().len(), bytes);
            let (key, q) = extended.map_err(Fault::of(party))?;
            add(&mut products.summands, q.expose());
            part.of_theirs = q;
            fixed.links.insert(party, (input, key));
        }
        Ok((fixed, products))
    }
}

impl<S: Scalar> Products<S> {
    /// Our summands.
    #[must_use]
    pub const fn summands(&self) -> &Secret<Vec<S>> {
        &self.summands
    }

    /// What we tell a party for its check: the sum of what we have of our values times its factor, each times a coin.
    #[must_use]
    pub fn claim(&self, party: ShareIndex, coins: &[S]) -> S {
        self.parts.get(&party).map_or(S::ZERO, |part| combined(&part.of_ours, coins))
    }

    /// Whether a party has multiplied by our `factor` what it says: `value` is the sum of its summands, each times a coin, and `claim` its [`Self::claim`].
    /// Coins must have been unknown when it multiplied. A party that used other values for some digits of our factor passes as often as it guesses those.
    #[must_use]
    pub fn is_right(&self, party: ShareIndex, factor: &Secret<S>, coins: &[S], value: &S, claim: &S) -> bool {
        let ours = self.parts.get(&party).map(|part| combined(&part.of_theirs, coins));
        ours.is_some_and(|ours| ours + *claim == *value * *factor.expose())
    }
}

fn combined<S: Scalar>(values: &Secret<Vec<S>>, coins: &[S]) -> S {
    values.expose().iter().zip(coins).map(|(value, coin)| *value * *coin).sum()
}

/// A party that waits for what the others' values add to its MACs.
#[derive(Debug)]
pub struct Authenticated<S: Scalar> {
    party: Party<S>,
    shares: Shares<S>,
}

impl<S: Scalar> Party<S> {
    /// Begins to fix a factor, our summand, for products that are checked before they are used.
    ///
    /// # Errors
    /// [`Misuse::UsedUp`].
    pub fn fix(
        &mut self,
        factor: Secret<S>,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Setting<S>, Messages), Misuse> {
        let number = self.batch;
        self.batch += 1;
        Setting::begin(&self.parties, &mut self.pairs, factor, (number, SHORT), rng)
    }

    /// The transfers with which a factor is fixed.
    pub const fn pairs(&mut self) -> &mut Pairs {
        &mut self.pairs
    }

    /// Begins to give values MACs: `values` are our summands. Nothing says that all were given the same: a check of the MACs has to.
    ///
    /// # Errors
    /// [`Misuse::Count`].
    pub fn authenticate(mut self, values: &[S]) -> Result<(Authenticated<S>, Messages), Misuse> {
        let (shares, out) = self.give_macs(values)?;
        Ok((Authenticated { party: self, shares }, out))
    }
}

impl<S: Scalar> Authenticated<S> {
    /// The party, and its shares.
    ///
    /// # Errors
    /// [`Fault::Party`]; [`Misuse::Parties`].
    pub fn handle(self, messages: &Messages<impl AsRef<[u8]>>) -> Result<(Party<S>, Shares<S>), Fault> {
        let Self { mut party, mut shares } = self;
        for (peer, bytes) in party.parties.received(messages)? {
            let q = party.macs_of(peer, shares.expose().len(), bytes)?;
            shares.expose_mut().iter_mut().zip(q.expose()).for_each(|(share, q)| share.mac += *q);
        }
        Ok((party, shares))
    }
}

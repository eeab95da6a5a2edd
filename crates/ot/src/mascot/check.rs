//! Rounds 7 to 9: the check of the MACs, for the inputs and the sacrifice at once.

use rand_core::CryptoRng;
use theta_groups::{Scalar, Secret};

use super::authenticate::{Batch, Products, Rest, Values, opened};
use super::coins::{Bound, Sealed, Toss, Unsealing};
use super::mesh::Party;
use super::parties::Messages;
use super::{Fault, Made};

/// What has to be checked when everything is opened.
#[derive(Debug)]
pub(super) struct Claims<S: Scalar> {
    pub(super) batch: Batch<S>,
    /// Our summands of the MACs of the combinations y, in the parties' order.
    pub(super) macs: Secret<Vec<S>>,
    /// The coin of the sacrifice.
    pub(super) s: S,
}

/// After round 6.
#[derive(Debug)]
pub struct Opened<S: Scalar> {
    pub(super) party: Party<S>,
    pub(super) claims: Claims<S>,
    pub(super) toss: Toss,
    /// What we broadcast in round 6.
    pub(super) message: Vec<u8>,
}

/// After round 7.
#[derive(Debug)]
pub struct Weighed<S: Scalar> {
    party: Party<S>,
    claims: Claims<S>,
    toss: Bound,
    opened: Values<S>,
}

/// After round 8.
#[derive(Debug)]
pub struct Committed<S: Scalar> {
    party: Party<S>,
    batch: Batch<S>,
    sigma: Sealed<S>,
}

/// After round 9.
#[derive(Debug)]
pub struct Checking<S: Scalar> {
    party: Party<S>,
    batch: Batch<S>,
    sigma: Unsealing<S>,
}

impl<S: Scalar> Opened<S> {
    /// Round 7.
    ///
    /// # Errors
    /// [`Fault::Party`]; [`crate::Misuse::Parties`].
    pub fn handle(self, messages: &Messages<impl AsRef<[u8]>>) -> Result<(Weighed<S>, Messages), Fault> {
        let Self { party, claims, toss, message } = self;
        let values = 1 + claims.batch.opened();
        let (broadcast, opened) = opened(&party, &message, messages, values)?;
        let toss = toss.bind(&party.parties, &broadcast);
        let out = party.parties.to_all(&toss.open());
        Ok((Weighed { party, claims, toss, opened }, out))
    }
}

impl<S: Scalar> Weighed<S> {
    /// Round 8.
    ///
    /// # Errors
    /// [`Fault::Party`], [`Fault::Commitment`] and [`Fault::Disagreement`]; [`crate::Misuse::Parties`].
    pub fn handle(
        self,
        messages: &Messages<impl AsRef<[u8]>>,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Committed<S>, Messages), Fault> {
        let Self { party, mut claims, toss, opened } = self;
        let mut coins = toss.finish(&party.parties, messages)?;
        // The sum of all opened values and of our summands of their MACs, each times a coin.
        let (mut value, mut mac) = (S::ZERO, S::ZERO);
        let mut sums = vec![S::ZERO; claims.batch.opened()];
        for (values, mac_of_y) in opened.values().zip(claims.macs.expose()) {
            let Some((y, summands)) = values.split_first() else { continue };
            let coin: S = coins.next();
            value += *y * coin;
            mac += *mac_of_y * coin;
            sums.iter_mut().zip(summands).for_each(|(sum, summand)| *sum += *summand);
        }
        let s = claims.s;
        for ([a, b, c, a_hat, c_hat], rho) in claims.batch.checked().iter().zip(&sums) {
            let (coin, other): (S, S) = (coins.next(), coins.next());
            value += *rho * coin;
            mac += (s * a.mac - a_hat.mac) * coin;
            // What has to be zero: s c - c^ - rho b.
            mac += (s * c.mac - c_hat.mac - *rho * b.mac) * other;
        }
        if let Rest::Masked(_, products) = &mut claims.batch.rest {
            *products = Products::Opened(sums);
        }
        let sigma = Sealed::new(party.batch, mac - value * *party.delta.expose(), rng);
        let out = party.parties.to_all(&sigma.commit(&party.parties));
        Ok((Committed { party, batch: claims.batch, sigma }, out))
    }
}

impl<S: Scalar> Committed<S> {
    /// Round 9.
    ///
    /// # Errors
    /// [`Fault::Party`]; [`crate::Misuse::Parties`].
    pub fn handle(self, messages: &Messages<impl AsRef<[u8]>>) -> Result<(Checking<S>, Messages), Fault> {
        let Self { party, batch, sigma } = self;
        let sigma = sigma.bind(&party.parties, messages)?;
        let out = party.parties.to_all(&sigma.open());
        Ok((Checking { party, batch, sigma }, out))
    }
}

impl<S: Scalar> Checking<S> {
    /// What was made, and the party for the next batch.
    ///
    /// # Errors
    /// [`Fault::Party`], [`Fault::Commitment`], [`Fault::Disagreement`] and [`Fault::Macs`]; [`crate::Misuse::Parties`].
    pub fn finish(self, messages: &Messages<impl AsRef<[u8]>>) -> Result<(Party<S>, Made<S>), Fault> {
        let Self { mut party, batch, sigma } = self;
        if sigma.sum(&party.parties, messages)? != S::ZERO {
            return Err(Fault::Macs);
        }
        party.batch += 1;
        Ok((party, batch.made()))
    }
}

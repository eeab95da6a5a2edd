//! MASCOT: additive sharing with MACs among n parties, all but one of which may cheat (Keller, Orsini, Scholl, "MASCOT: Faster Malicious
//! Arithmetic Secure Computation with Oblivious Transfer", CCS 2016), and its extension to a group (Dalskov et al., section 3).
//!
//! [a] is a summand of a and one of a Delta at each party; Delta is the sum of the parties' MAC keys. Triples come from
//! [`theta_ot::mascot`], products from triples (Beaver, CRYPTO 1991). Every opening is checked at once, before its caller has the
//! values: `check`. After any failure the MAC key and all set-ups are gone, and the black box does nothing more.

mod check;
mod fixed;
mod input;
mod inverses;
mod keys;
mod kind;
mod reveal;
mod triples;

use core::marker::PhantomData;
use std::sync::Mutex;

use sha2::{Digest, Sha256};
use theta_groups::{Group, Scalar as _, Secret};
use theta_names::ShareIndex;
use theta_ot::mascot::Transfers;

use crate::{
    BlackBox, Element, Inverses, Party, Scalar, Shared, SharedPoints, Stop, Triples,
    blackbox::{self, encode},
    pairs::{self, Scalars, SetUps, broadcast},
};
use keys::State;
pub use kind::{Check, Outcome, Sacrifice};

/// Set-ups of MASCOT: transfers of each pair. Each program draws a MAC key of its own.
pub type MascotSetUps = SetUps<Transfers>;

/// The black box over additive sharing with MACs: active security.
///
/// Shares belong to the black box that made them, as they have MACs under its key. Those of another one fail the next check;
/// [`BlackBox::open_recognised`] alone takes them.
pub struct MascotOf<G: Group, C: Check> {
    party: Party,
    state: Mutex<State<G::Scalar>>,
    kind: PhantomData<(G, C)>,
}

/// MASCOT: every product is verified before it is used.
pub type Mascot<G> = MascotOf<G, Sacrifice>;

/// MASCOT-: products are not verified and have no MACs, for programs whose result shows whether it is right, as a signature does. Triples
/// take a sixth less work. Factors, random values, inputs, and openings of anything that is no product have MACs as with [`Mascot`]; a product is opened by
/// [`BlackBox::open_products`] and [`BlackBox::open_recognised`] alone: the MAC check of any other opening fails.
pub type MascotMinus<G> = MascotOf<G, Outcome>;

impl<G: Group, C: Check> MascotOf<G, C> {
    /// Sets up the black box: a session, a MAC key, oblivious transfer of each pair in both directions; five rounds.
    ///
    /// # Errors
    /// [`Stop::Input`] unless n of n parties act together, n from 2 to [`MOST_PARTIES`](crate::MOST_PARTIES); and any [`Stop`].
    pub async fn new(party: &Party) -> Result<Self, Stop> {
        Self::on(party, &SetUps::default(), &[]).await
    }

    /// As [`Self::new`], on a set-up that a program of the same parties has left, if all have one in common; that is four rounds and no public-key
    /// cryptography. A new one is left to later programs. The set-up is gone if this black box is dropped without [`Self::end_well`].
    ///
    /// `whose` says who the parties are, by position, in words that mean the same in every program that shares these set-ups.
    ///
    /// # Errors
    /// As [`Self::new`]; [`Stop::Lost`] if the set-up is gone since it was offered.
    pub async fn on(party: &Party, set_ups: &MascotSetUps, whose: &[ShareIndex]) -> Result<Self, Stop> {
        let black_box = Self::openings_only(party)?;
        let state = triples::set_up(party, set_ups, whose).await?;
        Ok(Self { state: Mutex::new(state), ..black_box })
    }

    /// The program has ended, and nothing in it was found false or kept back by anybody: its set-up may serve others. The MAC key is dropped here.
    pub fn end_well(&self) {
        self.leave();
    }

    /// A black box without a MAC key, for [`BlackBox::open_recognised`] alone: it needs no set-up.
    ///
    /// # Errors
    /// [`Stop::Input`] as [`Self::new`].
    pub fn openings_only(party: &Party) -> Result<Self, Stop> {
        pairs::fits(party)?;
        Ok(Self { party: party.clone(), state: Mutex::new(State::WithoutKey), kind: PhantomData })
    }

    /// A product from a triple: a b = (u + d)(v + e) with d and e opened.
    async fn products(&self, a: &Shared<Self>, b: &Shared<Self>) -> Result<Shared<Self>, Stop> {
        let (u, v, w) = self.triples_now(a.len()).await?;
        let opened = self.open_scalars(&(a - &u).then(&(b - &v))).await?;
        let (d, e) = opened.split_at_checked(a.len()).ok_or(Stop::Input("lists of different lengths"))?;
        let both: Vec<G::Scalar> = d.iter().zip(e).map(|(d, e)| *d * *e).collect();
        Ok(&(&(&w + &v.times_each(d)) + &u.times_each(e)) + &self.constants(&both))
    }

    /// Opens values that have no MACs. They are what all showed, and the same at all.
    async fn open_unchecked(&self, values: &Shared<Self>) -> Result<Vec<G::Scalar>, Stop> {
        let shown = broadcast(&self.party, encode(values.cells().iter().map(|[share, _]| share))).await?;
        let mut view = Sha256::new();
        shown.iter().for_each(|bytes| view.update(bytes));
        pairs::agree(&self.party, view.finalize().into()).await?;
        Ok(Scalars::sum(&self.party, values.len(), shown.iter().map(Vec::as_slice))?.0)
    }

    async fn open_known(
        &self,
        value: &Shared<Self>,
        recognise: impl Fn(&G::Scalar) -> bool + Send + Sync,
    ) -> Result<G::Scalar, Stop> {
        let [[share, _]] = value.cells()[..] else { return Err(Stop::Input("one value is recognised at a time")) };
        let shown = broadcast(&self.party, encode([&share])).await?;
        match Scalars::sum(&self.party, 1, shown.iter().map(Vec::as_slice))?.0[..] {
            [value] if recognise(&value) => Ok(value),
            _ => Err(Stop::Cheated("a value that is not recognised")),
        }
    }
}

impl<G: Group, C: Check> BlackBox for MascotOf<G, C> {
    type Group = G;
    type Cell = [G::Scalar; 2];
    const NAME: &'static str = C::NAME;
    const ACTIVE: bool = true;

    fn party(&self) -> &Party {
        &self.party
    }

    /// The value is the first party's summand; everybody's key makes a summand of its MAC.
    fn constants(&self, values: &[G::Scalar]) -> Shared<Self> {
        let is_first = self.party.position() == 0;
        let key = self.key().unwrap_or_else(|_| Secret::new(G::Scalar::ZERO));
        let cell = |value: &G::Scalar| [if is_first { *value } else { G::Scalar::ZERO }, *value * *key.expose()];
        Shared::from_cells(values.iter().map(cell))
    }

    async fn random(&self, count: usize) -> Result<Shared<Self>, Stop> {
        self.guard(self.random_now(count)).await
    }

    async fn input(
        &self,
        dealer: ShareIndex,
        count: usize,
        values: Option<&Secret<Vec<Scalar<Self>>>>,
    ) -> Result<Shared<Self>, Stop> {
        self.party.check_input(dealer.position(), count, values.map(|values| values.expose().len()))?;
        self.guard(self.deal(dealer.position(), count, values)).await
    }

    async fn multiply(&self, a: &Shared<Self>, b: &Shared<Self>) -> Result<Shared<Self>, Stop> {
        blackbox::check_lengths(a, b)?;
        self.guard(self.products(a, b)).await
    }

    async fn multiply_by(&self, values: &Shared<Self>, factor: &Shared<Self>) -> Result<Shared<Self>, Stop> {
        blackbox::check_factor(factor)?;
        self.guard(self.products_with(values, factor)).await
    }

    async fn open(&self, values: &Shared<Self>) -> Result<Vec<Scalar<Self>>, Stop> {
        self.guard(self.open_scalars(values)).await
    }

    async fn open_products(&self, values: &Shared<Self>) -> Result<Vec<Scalar<Self>>, Stop> {
        if C::SACRIFICES { self.open(values).await } else { self.guard(self.open_unchecked(values)).await }
    }

    async fn open_points(&self, points: &SharedPoints<Self>) -> Result<Vec<Element<Self>>, Stop> {
        self.guard(self.open_elements(points.logarithms())).await
    }

    /// All have to show their shares, without their MACs: that the value is recognised is the check. Who showed a false share, cannot
    /// be known.
    async fn open_recognised(
        &self,
        value: &Shared<Self>,
        recognise: impl Fn(&Scalar<Self>) -> bool + Send + Sync,
    ) -> Result<Scalar<Self>, Stop> {
        self.guard(self.open_known(value, recognise)).await
    }

    /// Triples are verified when they are made, and what products open is, too.
    async fn verify(&self) -> Result<(), Stop> {
        Ok(())
    }

    async fn confirm(&self, digest: [u8; 32]) -> Result<(), Stop> {
        self.guard(pairs::agree(&self.party, digest)).await
    }

    /// By masked products, in the module `inverses`; MASCOT- by triples, whose products nobody checks.
    async fn inverses(&self, count: usize) -> Result<Inverses<Self>, Stop> {
        if C::SACRIFICES {
            let (values, elements) = self.guard(self.inverses_now(count)).await?;
            Ok(Inverses::new(values, elements))
        } else {
            blackbox::inverses_from(self, self.triples(count).await?).await
        }
    }

    async fn triples(&self, count: usize) -> Result<Triples<Self>, Stop> {
        self.guard(self.triples_now(count)).await
    }
}

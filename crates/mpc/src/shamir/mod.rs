//! Shamir's secret sharing as a black box: Damgard and Nielsen, CRYPTO 2007, with passive security for n > 2t, and with active
//! security (parties that lie are noticed) for n = 2t + 1.

mod dealing;
mod findings;
mod interpolation;
mod masked;
mod opening;
mod product;
#[cfg(test)]
mod zeros;

use core::marker::PhantomData;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use theta_groups::{Group, Secret};
use theta_names::ShareIndex;

use crate::{
    Active, BlackBox, Element, Inverses, Party, Passive, Scalar, Security, Shared, SharedPoints, Stop,
    blackbox::{self, ForMasks, Products, Reserve, Unverified},
};
pub(crate) use opening::Subsets;

use dealing::Streams;
use interpolation::Coefficients;
use masked::{Factor, Record};

/// The most parties. [`BlackBox::open_recognised`] may try all sets of t + 1 shares with the own one among them
/// against liars: 3,432 with 15 parties.
pub const MOST_PARTIES: usize = 15;

/// The black box over Shamir's sharing, of degree t: [`Passive`] or [`Active`].
pub struct Shamir<G: Group, M: Security> {
    party: Party,
    /// Where the parties' shares are on the polynomials, by position.
    points: Vec<ShareIndex>,
    coefficients: Coefficients<G::Scalar>,
    streams: Mutex<Streams>,
    /// The masks of factors, as they were dealt, by the number of their batch.
    records: Mutex<BTreeMap<u64, Record<G::Scalar>>>,
    unverified: Unverified<Self>,
    reserve: Reserve<Self>,
    security: PhantomData<M>,
}

impl<G: Group, M: Security> Shamir<G, M> {
    /// Sets up the black box: the parties exchange seeds, in one round.
    ///
    /// # Errors
    /// [`Stop::Input`] unless t > 0 and n > 2t (for [`Active`]: n = 2t + 1), n being [`MOST_PARTIES`] at most; and any [`Stop`].
    pub async fn new(party: &Party) -> Result<Self, Stop> {
        Self::at(party, party.threshold().indices().collect()).await
    }

    /// As [`Self::new`], for shares at these points, by position: the parties are some of the holders of a key, whose shares have
    /// indices of their own.
    ///
    /// # Errors
    /// As [`Self::new`]; [`Stop::Input`] unless the points are as many as the parties, in rising order.
    pub async fn at(party: &Party, points: Vec<ShareIndex>) -> Result<Self, Stop> {
        let black_box = Self::openings_at(party, points)?;
        let streams = Streams::agree(party).await?;
        Ok(Self { streams: Mutex::new(streams), ..black_box })
    }

    /// A black box that opens what others of its kind have made, and draws and multiplies nothing: it needs no set-up round.
    ///
    /// # Errors
    /// [`Stop::Input`] as [`Self::new`].
    pub fn openings_only(party: &Party) -> Result<Self, Stop> {
        Self::openings_at(party, party.threshold().indices().collect())
    }

    fn openings_at(party: &Party, points: Vec<ShareIndex>) -> Result<Self, Stop> {
        let (n, t) = (party.n(), party.t());
        if t == 0 || n <= 2 * t || n > MOST_PARTIES {
            return Err(Stop::Input("Shamir's black box needs t > 0, n > 2t and n of 15 at most"));
        }
        if M::ACTIVE && n != 2 * t + 1 {
            return Err(Stop::Input("Shamir's black box with active security needs n = 2t + 1"));
        }
        if points.len() != n || !points.is_sorted_by(|one, next| one < next) {
            return Err(Stop::Input("Shamir's black box needs a point for each party, in rising order"));
        }
        let numbers: Vec<u64> = points.iter().map(|point| point.get().into()).collect();
        Ok(Self {
            party: party.clone(),
            points,
            coefficients: Coefficients::new(party.position(), &numbers, t),
            streams: Mutex::new(Streams::default()),
            records: Mutex::new(BTreeMap::new()),
            unverified: Unverified::default(),
            reserve: Reserve::default(),
            security: PhantomData,
        })
    }

    /// The point of the party at a position.
    fn point(&self, position: usize) -> u64 {
        self.points.get(position).map_or(0, |point| point.get().into())
    }
}

impl<G: Group, M: Security> Products for Shamir<G, M> {
    fn reserve(&self) -> &Reserve<Self> {
        &self.reserve
    }

    fn local([a]: &Self::Cell, [b]: &Self::Cell) -> G::Scalar {
        *a * *b
    }

    async fn reduce(&self, parts: &Secret<Vec<G::Scalar>>) -> Result<Shared<Self>, Stop> {
        self.reduce_degree(parts).await
    }

    async fn random_for_masks(&self, masks: usize, more: usize) -> Result<ForMasks<Self>, Stop> {
        self.deal_on_record(masks, more).await
    }

    async fn open_parts(&self, parts: &Secret<Vec<G::Scalar>>) -> Result<Vec<G::Scalar>, Stop> {
        self.open_degree(parts).await
    }

    async fn open_now(&self, values: &Shared<Self>) -> Result<Vec<G::Scalar>, Stop> {
        if M::ACTIVE { self.open_actively(values).await } else { self.open_passively(values).await }
    }

    async fn open_elements_now(&self, logarithms: &Shared<Self>) -> Result<Vec<G::Element>, Stop> {
        self.open_elements(logarithms).await
    }
}

impl<G: Group, M: Security> BlackBox for Shamir<G, M> {
    type Group = G;
    type Cell = [G::Scalar; 1];
    const NAME: &'static str = if M::ACTIVE { "malicious Shamir" } else { "Shamir" };
    const ACTIVE: bool = M::ACTIVE;

    fn party(&self) -> &Party {
        &self.party
    }

    fn constants(&self, values: &[G::Scalar]) -> Shared<Self> {
        Shared::from_cells(values.iter().map(|value| [*value]))
    }

    async fn random(&self, count: usize) -> Result<Shared<Self>, Stop> {
        self.deal_singles(count).await
    }

    async fn input(
        &self,
        dealer: ShareIndex,
        count: usize,
        values: Option<&Secret<Vec<Scalar<Self>>>>,
    ) -> Result<Shared<Self>, Stop> {
        self.deal_input(dealer.position(), count, values).await
    }

    async fn multiply(&self, a: &Shared<Self>, b: &Shared<Self>) -> Result<Shared<Self>, Stop> {
        blackbox::multiply(self, a, b, M::ACTIVE.then_some(&self.unverified)).await
    }

    async fn open(&self, values: &Shared<Self>) -> Result<Vec<Scalar<Self>>, Stop> {
        blackbox::prepare_opening(self).await?;
        self.open_now(values).await
    }

    async fn open_masked(
        &self,
        values: &Shared<Self>,
        known: Option<(u64, &[Element<Self>])>,
        digest: [u8; 32],
    ) -> Result<Vec<Scalar<Self>>, Stop> {
        let taken = known.filter(|(_, points)| M::ACTIVE && !points.is_empty()).and_then(|(number, points)| {
            let record = self.records.lock().unwrap_or_else(PoisonError::into_inner).remove(&number)?;
            Some((points, record))
        });
        let Some((points, record)) = taken else { return blackbox::open_masked(self, values, digest).await };
        if points.len() != self.party.n() || record.count != values.len() {
            return Err(Stop::Input("a masked opening takes a point of each party, and all values of a batch"));
        }
        blackbox::prepare_opening(self).await?;
        self.open_on_record(values, &Factor { points, digest }, record).await
    }

    async fn open_points(&self, points: &SharedPoints<Self>) -> Result<Vec<Element<Self>>, Stop> {
        blackbox::open_points(self, points).await
    }

    async fn open_recognised(
        &self,
        value: &Shared<Self>,
        recognise: impl Fn(&Scalar<Self>) -> bool + Send + Sync,
    ) -> Result<Scalar<Self>, Stop> {
        blackbox::prepare_opening(self).await?;
        self.open_known(value, recognise).await
    }

    async fn verify(&self) -> Result<(), Stop> {
        self.unverified.verify(self).await
    }

    async fn inverses(&self, count: usize) -> Result<Inverses<Self>, Stop> {
        blackbox::inverses(self, count).await
    }
}

/// Shamir's black box with passive security.
pub type PassiveShamir<G> = Shamir<G, Passive>;
/// Shamir's black box with active security.
pub type ActiveShamir<G> = Shamir<G, Active>;

//! Replicated secret sharing among three parties, of which one may be corrupt, as a black box: Araki, Furukawa, Lindell, Nof and Ohara,
//! "High-Throughput Semi-Honest Secure Three-Party Computation with an Honest Majority" (CCS 2016), in the form of Lindell
//! and Nof (CCS 2017), who show that it is private against an active party, too.
//!
//! x = x_0 + x_1 + x_2; the party at position i holds x_i and x_{i+1}. Each part is held by two parties, of whom one is honest, so
//! whatever a corrupt party says, the honest two hold a sharing of some value, as long as they agree on the part that both
//! hold. Only an input can make them differ, and there they compare it.

mod opening;
mod streams;

use core::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use theta_groups::{Group, Scalar as _, Secret};
use theta_names::ShareIndex;

use crate::{
    Active, BlackBox, Element, Inverses, Party, Passive, Scalar, Security, Shared, SharedPoints, Stop,
    blackbox::{self, Products, Reserve, Unverified, encode, open_sums},
};
use streams::Streams;

/// The parties.
const PARTIES: usize = 3;
/// The place, in the circle, of the party before.
const BEFORE: usize = 2;

/// The black box over replicated sharing: [`Passive`] or [`Active`].
pub struct Rep3<G: Group, M: Security> {
    party: Party,
    streams: Mutex<Option<Streams>>,
    unverified: Unverified<Self>,
    reserve: Reserve<Self>,
    security: PhantomData<M>,
    group: PhantomData<G>,
}

impl<G: Group, M: Security> Rep3<G, M> {
    /// Sets up the black box: each party sends one a seed.
    ///
    /// # Errors
    /// [`Stop::Input`] unless the group is 2 of 3; and any [`Stop`].
    pub async fn new(party: &Party) -> Result<Self, Stop> {
        let black_box = Self::openings_only(party)?;
        let streams = Streams::agree(party).await?;
        Ok(Self { streams: Mutex::new(Some(streams)), ..black_box })
    }

    /// A black box that opens what others of its kind have made, and draws and multiplies nothing: it needs no set-up round.
    ///
    /// # Errors
    /// [`Stop::Input`] as [`Self::new`].
    pub fn openings_only(party: &Party) -> Result<Self, Stop> {
        if (party.n(), party.t()) != (PARTIES, 1) {
            return Err(Stop::Input("replicated sharing needs three parties, of whom two must act together"));
        }
        Ok(Self {
            party: party.clone(),
            streams: Mutex::new(None),
            unverified: Unverified::default(),
            reserve: Reserve::default(),
            security: PhantomData,
            group: PhantomData,
        })
    }

    fn with_streams<T>(&self, draw: impl FnOnce(&mut Streams) -> T) -> Result<T, Stop> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.as_mut().map(draw).ok_or(Stop::Input("this black box was made for openings only"))
    }

    /// A list with bytes for one party, and nothing for the others.
    fn to(position: usize, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let mut out = vec![Vec::new(); PARTIES];
        if let Some(place) = out.get_mut(position) {
            *place = bytes;
        }
        out
    }

    /// As [`Self::to`], of numbers.
    fn of(position: usize, len: usize) -> Vec<usize> {
        (0..PARTIES).map(|at| if at == position { len } else { 0 }).collect()
    }

    /// Parts of the same sums, and of no others that anybody has seen.
    pub(crate) fn masked(&self, parts: &Secret<Vec<G::Scalar>>) -> Result<Secret<Vec<G::Scalar>>, Stop> {
        let count = parts.expose().len();
        let zero = self.with_streams(|streams| streams.zero::<G::Scalar>(count))?;
        let mut masked = Secret::new(Vec::with_capacity(count));
        masked.expose_mut().extend(parts.expose().iter().zip(zero.expose()).map(|(part, zero)| *part + *zero));
        Ok(masked)
    }

    fn read(&self, from: usize, bytes: &[u8]) -> Result<Secret<Vec<G::Scalar>>, Stop> {
        blackbox::read(&self.party, from, bytes)
    }

    /// What one party sent.
    fn from(got: &[Bytes], position: usize) -> Bytes {
        got.get(position).cloned().unwrap_or_default()
    }

    /// The input of `dealer`: it knows two parts, as it has their streams, and sends the third to both others, who compare it.
    /// Neither goes on without the other's comparison, so with active security both have the input then.
    async fn deal(
        &self,
        dealer: usize,
        count: usize,
        values: Option<&Secret<Vec<G::Scalar>>>,
    ) -> Result<Shared<Self>, Stop> {
        self.party.keep_together(count * G::Scalar::ENCODED_LEN).await?;
        let own = self.with_streams(|streams| streams.random::<G::Scalar>(count))?;
        let places = (self.party.position() + PARTIES - dealer) % PARTIES;
        let len = count * G::Scalar::ENCODED_LEN;
        if let Some(values) = values {
            let rest = values.expose().iter().zip(own.expose()).map(|(value, [a, b])| *value - *a - *b);
            let rest = Secret::new(rest.collect::<Vec<_>>());
            self.party.exchange(&vec![encode(rest.expose()); PARTIES], &[0; PARTIES])?.await?;
            if M::ACTIVE {
                // The others compare; the dealer is in the same round.
                self.party.exchange(&vec![Vec::new(); PARTIES], &[0; PARTIES])?.await?;
            }
            return Ok(Shared::from_cells(own.expose().iter().copied()));
        }
        let got = self.party.exchange(&vec![Vec::new(); PARTIES], &Self::of(dealer, len))?.await?;
        let told = Self::from(&got, dealer);
        let rest = self.read(dealer, &told)?;
        if M::ACTIVE {
            let digest = Sha256::digest(&told).to_vec();
            let other = self.party.after(if places == 1 { 1 } else { BEFORE });
            let got = self.party.exchange(&Self::to(other, digest.clone()), &Self::of(other, digest.len()))?.await?;
            if Self::from(&got, other) != digest {
                return Err(Stop::Cheated("an input is not the same at all"));
            }
        }
        // The dealer's next holds the third part second, the one after it first.
        let cells = own.expose().iter().zip(rest.expose());
        Ok(Shared::from_cells(cells.map(|([a, b], rest)| if places == 1 { [*a, *rest] } else { [*rest, *b] })))
    }
}

impl<G: Group, M: Security> Products for Rep3<G, M> {
    fn reserve(&self) -> &Reserve<Self> {
        &self.reserve
    }

    /// Araki et al., section 2.2, step 1, without the randomness.
    fn local([a, b]: &Self::Cell, [c, d]: &Self::Cell) -> G::Scalar {
        *a * (*c + *d) + *b * *c
    }

    /// Steps 1 and 2: each party adds its part of a sharing of zero, and sends the sum to the party before it.
    async fn reduce(&self, parts: &Secret<Vec<G::Scalar>>) -> Result<Shared<Self>, Stop> {
        let count = parts.expose().len();
        let own = self.masked(parts)?;
        let (next, before) = (self.party.after(1), self.party.after(BEFORE));
        let len = count * G::Scalar::ENCODED_LEN;
        // Each waits for the next one alone, which waits for this one by way of the third.
        self.party.keep_together(len).await?;
        let got = self.party.exchange(&Self::to(before, encode(own.expose())), &Self::of(next, len))?.await?;
        let theirs = self.read(next, &Self::from(&got, next))?;
        Ok(Shared::from_cells(own.expose().iter().zip(theirs.expose()).map(|(own, theirs)| [*own, *theirs])))
    }

    async fn open_parts(&self, parts: &Secret<Vec<G::Scalar>>) -> Result<Vec<G::Scalar>, Stop> {
        open_sums(&self.party, PARTIES, &self.masked(parts)?).await
    }

    async fn open_now(&self, values: &Shared<Self>) -> Result<Vec<G::Scalar>, Stop> {
        self.open_scalars(values).await
    }

    async fn open_elements_now(&self, logarithms: &Shared<Self>) -> Result<Vec<G::Element>, Stop> {
        self.open_elements(logarithms).await
    }
}

impl<G: Group, M: Security> BlackBox for Rep3<G, M> {
    type Group = G;
    type Cell = [G::Scalar; 2];
    const NAME: &'static str = if M::ACTIVE { "malicious Rep3" } else { "Rep3" };
    const ACTIVE: bool = M::ACTIVE;

    fn party(&self) -> &Party {
        &self.party
    }

    /// The value is part 0; the others are zero.
    fn constants(&self, values: &[G::Scalar]) -> Shared<Self> {
        let zero = G::Scalar::ZERO;
        let position = self.party.position();
        Shared::from_cells(values.iter().map(move |value| match position {
            0 => [*value, zero],
            BEFORE => [zero, *value],
            _ => [zero, zero],
        }))
    }

    /// Both holders of a part draw it from the same stream.
    async fn random(&self, count: usize) -> Result<Shared<Self>, Stop> {
        let drawn = self.with_streams(|streams| streams.random::<G::Scalar>(count))?;
        Ok(Shared::from_cells(drawn.expose().iter().copied()))
    }

    async fn input(
        &self,
        dealer: ShareIndex,
        count: usize,
        values: Option<&Secret<Vec<Scalar<Self>>>>,
    ) -> Result<Shared<Self>, Stop> {
        self.party.check_input(dealer.position(), count, values.map(|values| values.expose().len()))?;
        self.deal(dealer.position(), count, values).await
    }

    async fn multiply(&self, a: &Shared<Self>, b: &Shared<Self>) -> Result<Shared<Self>, Stop> {
        blackbox::multiply(self, a, b, M::ACTIVE.then_some(&self.unverified)).await
    }

    async fn open(&self, values: &Shared<Self>) -> Result<Vec<Scalar<Self>>, Stop> {
        blackbox::prepare_opening(self).await?;
        self.open_now(values).await
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

/// Replicated sharing with passive security.
pub type PassiveRep3<G> = Rep3<G, Passive>;
/// Replicated sharing with active security.
pub type ActiveRep3<G> = Rep3<G, Active>;

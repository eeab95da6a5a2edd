//! Random sharings and double sharings (Damgard and Nielsen, "Scalable and Unconditionally Secure Multiparty Computation",
//! CRYPTO 2007, section 4): every party deals, and the Vandermonde matrix extracts n - t sharings that nobody knows from n of
//! which t may be known.
//!
//! Departure: the shares of the d parties after the dealer come from seeds that it has in common with each of them, so that
//! n - 1 - d shares are sent of a polynomial of degree d and not n - 1: none of degree 2t if n = 2t + 1. They are as good as random to
//! everybody else.

use std::sync::{
    PoisonError,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use rand_core::Rng;
use theta_groups::{Group, Scalar as _, Secret, SecretRng};

use super::{
    Shamir,
    interpolation::{Dealing, combine},
    masked::Record,
};
use crate::{
    Party, Scalar, Security, Shared, Stop,
    blackbox::{ForMasks, encode, read, zeros},
    program::SEED,
};

/// Generators that a party has in common with each other party: for what it deals and for what the other deals.
#[derive(Default)]
pub(super) struct Streams {
    dealt: Vec<SecretRng>,
    received: Vec<SecretRng>,
}

impl Streams {
    /// Sends every party a seed, and takes one of each.
    pub(super) async fn agree(party: &Party) -> Result<Self, Stop> {
        let seeds: Vec<Secret<[u8; SEED]>> = (0..party.n())
            .map(|_| {
                let mut seed = Secret::new([0; SEED]);
                party.draw(|rng| rng.fill_bytes(seed.expose_mut()));
                seed
            })
            .collect();
        party.note_dealing();
        let out: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.expose().to_vec()).collect();
        let got = party.exchange(&out, &vec![SEED; party.n()])?.await?;
        let stream = |seed: &[u8]| {
            // Only this party's own place has none; nothing is drawn from it.
            let seed = Secret::new(seed.try_into().unwrap_or([0; SEED]));
            SecretRng::new(&seed)
        };
        let dealt = seeds.iter().map(|seed| stream(seed.expose())).collect();
        Ok(Self { dealt, received: got.iter().map(|seed| stream(seed)).collect() })
    }
}

/// What is sent for some polynomials, and this party's own shares of them.
pub(super) struct Dealt<S: theta_groups::Scalar> {
    out: Vec<Vec<u8>>,
    own: Secret<Vec<S>>,
    /// Of the first polynomials, as many as go on record, what the dealer chose.
    chosen: Secret<Vec<S>>,
}

/// How many records there have been.
static RECORDS: AtomicU64 = AtomicU64::new(0);

/// A party's shares of what each dealer dealt.
type ByDealer<S> = Vec<Secret<Vec<S>>>;

impl<G: Group, M: Security> Shamir<G, M> {
    fn has_streams(&self) -> Result<(), Stop> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if streams.dealt.is_empty() { Err(Stop::Input("this black box was made for openings only")) } else { Ok(()) }
    }

    /// Deals one polynomial for each secret; so many go on record.
    fn deal(
        &self,
        dealing: &Dealing<G::Scalar>,
        secrets: &Secret<Vec<G::Scalar>>,
        recorded: usize,
    ) -> Dealt<G::Scalar> {
        let party = &self.party;
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let count = secrets.expose().len();
        let mut out = vec![Vec::new(); party.n()];
        for (position, _) in dealing.computed.iter().skip(1) {
            if let Some(buffer) = out.get_mut(*position) {
                buffer.reserve_exact(count * G::Scalar::ENCODED_LEN);
            }
        }
        let mut own = Secret::new(Vec::with_capacity(count));
        let mut known = Secret::new(vec![G::Scalar::ZERO; dealing.degree + 1]);
        let mut chosen = Secret::new(Vec::with_capacity(recorded * (dealing.degree + 1)));
        for (number, secret) in secrets.expose().iter().enumerate() {
            for (places, value) in known.expose_mut().iter_mut().enumerate() {
                let stream = streams.dealt.get_mut(party.after(places));
                *value = if places == 0 { *secret } else { stream.map_or(G::Scalar::ZERO, G::Scalar::random) };
            }
            if number < recorded {
                chosen.expose_mut().extend_from_slice(known.expose());
            }
            for (position, coefficients) in &dealing.computed {
                let share = combine(coefficients, known.expose().iter().copied());
                if *position == party.position() {
                    own.expose_mut().push(share);
                } else if let Some(buffer) = out.get_mut(*position) {
                    buffer.extend_from_slice(share.encode().as_ref());
                }
            }
        }
        Dealt { out, own, chosen }
    }

    /// How many bytes of `count` polynomials of each dealer have to come by message.
    fn expected(&self, dealing: &Dealing<G::Scalar>, dealers: impl Fn(usize) -> bool, count: usize) -> Vec<usize> {
        let (n, local) = (self.party.n(), self.party.position());
        let comes = |dealer: usize| dealers(dealer) && dealer != local && !dealing.is_derived(dealer, local, n);
        (0..n).map(|dealer| if comes(dealer) { count * G::Scalar::ENCODED_LEN } else { 0 }).collect()
    }

    /// This party's shares of what another deals: from the seed that both have, or none yet.
    fn derive(&self, dealing: &Dealing<G::Scalar>, dealer: usize, count: usize) -> Option<Secret<Vec<G::Scalar>>> {
        if !dealing.is_derived(dealer, self.party.position(), self.party.n()) {
            return None;
        }
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = streams.received.get_mut(dealer)?;
        let mut shares = zeros(count);
        shares.expose_mut().iter_mut().for_each(|share| *share = G::Scalar::random(stream));
        Some(shares)
    }

    /// Reads scalars that a party sent, or blames it.
    pub(super) fn read(&self, from: usize, bytes: &[u8]) -> Result<Secret<Vec<G::Scalar>>, Stop> {
        read(&self.party, from, bytes)
    }

    /// Every party deals `count` polynomials with secrets that it draws, of each of these degrees with the same secrets. Returns
    /// for each degree this party's shares by dealer.
    async fn deal_random(
        &self,
        dealings: &[&Dealing<G::Scalar>],
        count: usize,
    ) -> Result<Vec<ByDealer<G::Scalar>>, Stop> {
        Ok(self.deal_secrets(dealings, &self.draw(count), 0).await?.0)
    }

    /// Numbers that nobody else knows.
    fn draw(&self, count: usize) -> Secret<Vec<G::Scalar>> {
        let mut secrets = zeros(count);
        self.party.draw(|rng| secrets.expose_mut().iter_mut().for_each(|secret| *secret = G::Scalar::random(rng)));
        secrets
    }

    /// The same with secrets that it has. Returns what this party chose for the first polynomials of the first degree, too, as many as go on record.
    async fn deal_secrets(
        &self,
        dealings: &[&Dealing<G::Scalar>],
        secrets: &Secret<Vec<G::Scalar>>,
        mut recorded: usize,
    ) -> Result<(Vec<ByDealer<G::Scalar>>, Secret<Vec<G::Scalar>>), Stop> {
        let (n, count) = (self.party.n(), secrets.expose().len());
        self.has_streams()?;
        let travel = dealings.iter().filter(|dealing| dealing.degree + 1 != n).count();
        if travel > 0 {
            self.party.keep_together(travel * count * G::Scalar::ENCODED_LEN).await?;
        }
        self.party.note_dealing();
        let mut waits = Vec::new();
        let mut on_record = Secret::new(Vec::new());
        for dealing in dealings {
            let Dealt { out, own, chosen } = self.deal(dealing, secrets, recorded);
            if recorded > 0 {
                on_record = chosen;
                recorded = 0;
            }
            let derived: Vec<_> = (0..n).map(|dealer| self.derive(dealing, dealer, count)).collect();
            // Both degrees travel in the same messages. Where all follow from seeds, nothing travels, and no round passes.
            let wait = if dealing.degree + 1 == n {
                None
            } else {
                Some(self.party.exchange(&out, &self.expected(dealing, |_| true, count))?)
            };
            waits.push((wait, own, derived));
        }
        let mut all = Vec::new();
        for (wait, own, derived) in waits {
            let got = match wait {
                Some(wait) => wait.await?,
                None => vec![Bytes::new(); n],
            };
            let mut own = Some(own);
            let mut by_dealer = Vec::with_capacity(n);
            for (dealer, (bytes, derived)) in got.iter().zip(derived).enumerate() {
                by_dealer.push(match derived {
                    Some(shares) => shares,
                    None if dealer == self.party.position() => own.take().unwrap_or_else(|| zeros(count)),
                    None => self.read(dealer, bytes)?,
                });
            }
            all.push(by_dealer);
        }
        Ok((all, on_record))
    }

    /// Extracts sharings that nobody knows: n - t for each polynomial of all dealers.
    fn extract(&self, by_dealer: &[Secret<Vec<G::Scalar>>], batches: usize, count: usize) -> Shared<Self> {
        let rows = &self.coefficients.vandermonde;
        let dealt = |batch: usize| {
            by_dealer.iter().map(move |shares| shares.expose().get(batch).copied().unwrap_or(G::Scalar::ZERO))
        };
        let extracted = (0..batches).flat_map(|batch| rows.iter().map(move |row| [combine(row, dealt(batch))]));
        Shared::from_at_most(count, extracted)
    }

    /// How many polynomials each party deals so that `count` are extracted.
    fn batches(&self, count: usize) -> usize {
        count.div_ceil(self.coefficients.vandermonde.len().max(1))
    }

    /// Random sharings of degree t.
    pub(super) async fn deal_singles(&self, count: usize) -> Result<Shared<Self>, Stop> {
        let batches = self.batches(count);
        let all = self.deal_random(&[&self.coefficients.single], batches).await?;
        Ok(self.extract(all.first().map_or(&[], Vec::as_slice), batches, count))
    }

    /// Random sharings of degree t, the first of which go on record as they were dealt. Nothing else comes from the polynomials of those: what does, is not
    /// used.
    pub(super) async fn deal_on_record(&self, count: usize, more: usize) -> Result<ForMasks<Self>, Stop> {
        let recorded = self.batches(count);
        let rows = self.coefficients.vandermonde.len();
        let batches = recorded + self.batches(more);
        let dealt = self.deal_secrets(&[&self.coefficients.single], &self.draw(batches), recorded).await?;
        let (mut all, chosen) = dealt;
        let by_dealer = all.pop().unwrap_or_default();
        let extracted = self.extract(&by_dealer, batches, batches * rows);
        let received = by_dealer.iter().map(|shares| {
            let mut kept = Secret::new(Vec::with_capacity(recorded));
            kept.expose_mut().extend(shares.expose().iter().take(recorded));
            kept
        });
        let record = Record { count, chosen, received: received.collect() };
        let number = {
            // No two boxes have a number in common, so that masks of one are never looked for at another one.
            let number = RECORDS.fetch_add(1, Ordering::Relaxed);
            self.records.lock().unwrap_or_else(PoisonError::into_inner).insert(number, record);
            number
        };
        let masks = extracted.part(0..count);
        Ok((masks, extracted.part(recorded * rows..recorded * rows + more), Some(number)))
    }

    /// Random sharings of degree t, and of degree 2t of the same values.
    pub(super) async fn deal_doubles(&self, count: usize) -> Result<(Shared<Self>, Shared<Self>), Stop> {
        let batches = self.batches(count);
        let all = self.deal_random(&[&self.coefficients.single, &self.coefficients.double], batches).await?;
        let degree = |which: usize| self.extract(all.get(which).map_or(&[], Vec::as_slice), batches, count);
        Ok((degree(0), degree(1)))
    }

    /// Random sharings of zero, of degree 2t.
    pub(super) async fn deal_zeros(&self, count: usize) -> Result<Shared<Self>, Stop> {
        let batches = self.batches(count);
        let (all, _) = self.deal_secrets(&[&self.coefficients.double], &zeros(batches), 0).await?;
        Ok(self.extract(all.first().map_or(&[], Vec::as_slice), batches, count))
    }

    /// One party shares values that it knows, with degree t.
    pub(super) async fn deal_input(
        &self,
        dealer: usize,
        count: usize,
        values: Option<&Secret<Vec<Scalar<Self>>>>,
    ) -> Result<Shared<Self>, Stop> {
        self.has_streams()?;
        self.party.keep_together(count * G::Scalar::ENCODED_LEN).await?;
        self.party.note_dealing();
        let dealing = &self.coefficients.single;
        self.party.check_input(dealer, count, values.map(|values| values.expose().len()))?;
        match values {
            Some(values) => {
                let Dealt { out, own, .. } = self.deal(dealing, values, 0);
                self.party.exchange(&out, &vec![0; self.party.n()])?.await?;
                Ok(Shared::from_cells(own.expose().iter().map(|share| [*share])))
            }
            None => {
                let derived = self.derive(dealing, dealer, count);
                let expected = self.expected(dealing, |from| from == dealer, count);
                let got = self.party.exchange(&vec![Vec::new(); self.party.n()], &expected)?.await?;
                let bytes = got.get(dealer).cloned().unwrap_or_else(Bytes::new);
                let shares = derived.map_or_else(|| self.read(dealer, &bytes), Ok)?;
                Ok(Shared::from_cells(shares.expose().iter().map(|share| [*share])))
            }
        }
    }

    /// Scalars as bytes, for a message.
    pub(super) fn write<'a>(scalars: impl IntoIterator<Item = &'a G::Scalar>) -> Vec<u8> {
        encode(scalars)
    }
}

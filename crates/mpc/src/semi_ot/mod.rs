//! Semi-OT: additive sharing among n parties, all but one of which may be corrupt, with passive security.
//!
//! [a] is a summand of a at each party. A product is the sum of a_i b_i, and of a_i b_j for each two parties, which oblivious transfer
//! gives as two summands (Gilboa, "Two party RSA key generation", CRYPTO 1999; as in Keller, Orsini, Scholl, MASCOT, CCS 2016, and in
//! the framework of Dalskov et al.). The transfers are secure against active parties, always; the products are not.

mod links;

use core::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use theta_groups::{Group, Scalar as _, Secret};
use theta_names::ShareIndex;

use crate::{
    BlackBox, Element, Party, Scalar, Shared, SharedPoints, Stop,
    blackbox::{self, encode},
    pairs::{self, Elements, Lease, Scalars, SetUps, broadcast, encode_elements},
};
use links::Links;

/// Set-ups of Semi-OT: transfers of each pair.
pub type SemiOtSetUps = SetUps<Links>;

/// The black box over additive sharing with passive security.
pub struct SemiOt<G: Group> {
    party: Party,
    links: Mutex<Option<(Links, Lease<Links>)>>,
    group: PhantomData<G>,
}

impl<G: Group> SemiOt<G> {
    /// Sets up the black box: a session, and oblivious transfer of each pair in both directions; four rounds.
    ///
    /// # Errors
    /// [`Stop::Input`] unless n of n parties act together, n from 2 to [`MOST_PARTIES`](crate::MOST_PARTIES); and any [`Stop`].
    pub async fn new(party: &Party) -> Result<Self, Stop> {
        Self::on(party, &SetUps::default(), &[]).await
    }

    /// As [`Self::new`], on a set-up that a program of the same parties has left, if all have one in common: two rounds. As
    /// [`Mascot::on`](crate::Mascot::on).
    ///
    /// # Errors
    /// As [`Self::new`]; [`Stop::Lost`] if the set-up is gone since it was offered.
    pub async fn on(party: &Party, set_ups: &SemiOtSetUps, whose: &[ShareIndex]) -> Result<Self, Stop> {
        let black_box = Self::openings_only(party)?;
        let links = Links::set_up(party, set_ups, whose).await?;
        Ok(Self { links: Mutex::new(Some(links)), ..black_box })
    }

    /// The program has ended, and what came of it is right: its set-up may serve others. Nothing is multiplied here any more.
    pub fn end_well(&self) {
        if let Some((_, lease)) = self.links.lock().unwrap_or_else(PoisonError::into_inner).take() {
            lease.end_well();
        }
    }

    /// A black box that opens what others of its kind have made, and multiplies nothing: it needs no set-up.
    ///
    /// # Errors
    /// [`Stop::Input`] as [`Self::new`].
    pub fn openings_only(party: &Party) -> Result<Self, Stop> {
        pairs::fits(party)?;
        Ok(Self { party: party.clone(), links: Mutex::new(None), group: PhantomData })
    }

    fn with_links<T>(&self, change: impl FnOnce(&mut Links) -> Result<T, Stop>) -> Result<T, Stop> {
        let mut guard = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let (links, _) = guard.as_mut().ok_or(Stop::Input(
            "this black box opens values and multiplies none: it was made so, has ended, or a transfer failed",
        ))?;
        let result = change(links);
        // After a transfer that failed, nothing of the set-up is used again.
        if result.is_err() {
            *guard = None;
        }
        result
    }

    /// Products of at most [`links::AT_ONCE`] values. Two rounds: the bits of a as choices; corrections to b.
    async fn products(&self, a: &[[G::Scalar; 1]], b: &[[G::Scalar; 1]]) -> Result<Secret<Vec<G::Scalar>>, Stop> {
        let scalars = |cells: &[[G::Scalar; 1]]| Secret::new(cells.iter().map(|[value]| *value).collect::<Vec<_>>());
        let (a, b) = (scalars(a), scalars(b));
        let (chosen, out) = self.with_links(|links| links.choose(&self.party, &a))?;
        let extensions = pairs::swap(&self.party, out).await?;
        let mut sums = Secret::new(a.expose().iter().zip(b.expose()).map(|(a, b)| *a * *b).collect::<Vec<_>>());
        let out = self.with_links(|links| links.send(&self.party, &extensions, &b, &mut sums))?;
        let corrections = pairs::swap(&self.party, out).await?;
        self.with_links(|_| Links::receive(&self.party, chosen, &corrections, &mut sums))?;
        Ok(sums)
    }
}

impl<G: Group> BlackBox for SemiOt<G> {
    type Group = G;
    type Cell = [G::Scalar; 1];
    const NAME: &'static str = "Semi-OT";
    const ACTIVE: bool = false;

    fn party(&self) -> &Party {
        &self.party
    }

    /// The value is the first party's summand.
    fn constants(&self, values: &[G::Scalar]) -> Shared<Self> {
        let is_first = self.party.position() == 0;
        Shared::from_cells(values.iter().map(move |value| [if is_first { *value } else { G::Scalar::ZERO }]))
    }

    /// Each party draws its summands.
    async fn random(&self, count: usize) -> Result<Shared<Self>, Stop> {
        self.with_links(|_| Ok(()))?;
        Ok(Shared::from_cells((0..count).map(|_| [self.party.draw(G::Scalar::random)])))
    }

    /// The dealer sends each other party its summands.
    async fn input(
        &self,
        dealer: ShareIndex,
        count: usize,
        values: Option<&Secret<Vec<Scalar<Self>>>>,
    ) -> Result<Shared<Self>, Stop> {
        let (n, local, dealer) = (self.party.n(), self.party.position(), dealer.position());
        self.party.check_input(dealer, count, values.map(|values| values.expose().len()))?;
        self.party.keep_together(count * G::Scalar::ENCODED_LEN).await?;
        let Some(values) = values else {
            let len = count * G::Scalar::ENCODED_LEN;
            let expected: Vec<usize> = (0..n).map(|from| if from == dealer { len } else { 0 }).collect();
            let got = self.party.exchange(&vec![Vec::new(); n], &expected)?.await?;
            let shown = got.iter().enumerate().map(|(from, bytes)| if from == dealer { &bytes[..] } else { &[] });
            let dealt = Secret::new(Scalars::<G::Scalar>::sum(&self.party, count, shown)?.0);
            return Ok(Shared::from_cells(dealt.expose().iter().map(|share| [*share])));
        };
        let mut rest = Secret::new(values.expose().clone());
        let mut out = Vec::with_capacity(n);
        for to in 0..n {
            if to == local {
                out.push(Vec::new());
                continue;
            }
            let shares =
                Secret::new(self.party.draw(|rng| (0..count).map(|_| G::Scalar::random(rng)).collect::<Vec<_>>()));
            rest.expose_mut().iter_mut().zip(shares.expose()).for_each(|(rest, share)| *rest = *rest - *share);
            out.push(encode(shares.expose()));
        }
        self.party.exchange(&out, &vec![0; n])?.await?;
        Ok(Shared::from_cells(rest.expose().iter().map(|share| [*share])))
    }

    async fn multiply(&self, a: &Shared<Self>, b: &Shared<Self>) -> Result<Shared<Self>, Stop> {
        blackbox::check_lengths(a, b)?;
        self.with_links(|_| Ok(()))?;
        let mut products = Secret::new(Vec::with_capacity(a.len()));
        for (a, b) in a.cells().chunks(links::AT_ONCE).zip(b.cells().chunks(links::AT_ONCE)) {
            products.expose_mut().extend_from_slice(self.products(a, b).await?.expose());
        }
        Ok(Shared::from_cells(products.expose().iter().map(|product| [*product])))
    }

    /// Two rounds in which all fix their summands of the factor, and one for as many products as a message has room for.
    async fn multiply_by(&self, values: &Shared<Self>, factor: &Shared<Self>) -> Result<Shared<Self>, Stop> {
        blackbox::check_factor(factor)?;
        let own = factor.cells().iter().flatten().copied().sum();
        let fault = || pairs::fault(&self.party);
        let (setting, out) = self.with_links(|links| links.fix(&self.party, Secret::new(own)))?;
        let got = pairs::swap(&self.party, out).await?;
        let (fixing, out) = self.with_links(|links| links.open(&self.party, setting, &got))?;
        let got = pairs::swap(&self.party, out).await?;
        let mut fixed = self.with_links(|_| fixing.handle(&got).map_err(pairs::false_openings(&self.party)))?;
        let mut products = Secret::new(Vec::with_capacity(values.len()));
        for cells in values.cells().chunks(links::BY_FACTOR_AT_ONCE) {
            let values = Secret::new(cells.iter().map(|[value]| *value).collect::<Vec<_>>());
            let (multiplied, out) = fixed.multiply(values.expose()).map_err(|it| pairs::misuse(&it))?;
            let got = pairs::swap(&self.party, out).await?;
            let (next, made) = self.with_links(|_| multiplied.handle(&got).map_err(fault()))?;
            fixed = next;
            products.expose_mut().extend_from_slice(made.summands().expose());
        }
        Ok(Shared::from_cells(products.expose().iter().map(|product| [*product])))
    }

    async fn open(&self, values: &Shared<Self>) -> Result<Vec<Scalar<Self>>, Stop> {
        let shown = broadcast(&self.party, encode(values.cells().iter().flatten())).await?;
        Ok(Scalars::sum(&self.party, values.len(), shown.iter().map(Vec::as_slice))?.0)
    }

    async fn open_points(&self, points: &SharedPoints<Self>) -> Result<Vec<Element<Self>>, Stop> {
        let own: Vec<G::Scalar> = points.logarithms().cells().iter().map(|[share]| *share).collect();
        let own = G::mul_base_batch(Secret::new(own).expose());
        let shown = broadcast(&self.party, encode_elements::<G>(&own)).await?;
        Ok(Elements::<G>::sum(&self.party, own, shown.iter().map(Vec::as_slice))?.0)
    }

    /// All have to show their shares. Who showed a false one, cannot be known.
    async fn open_recognised(
        &self,
        value: &Shared<Self>,
        recognise: impl Fn(&Scalar<Self>) -> bool + Send + Sync,
    ) -> Result<Scalar<Self>, Stop> {
        match self.open(value).await?[..] {
            [value] if recognise(&value) => Ok(value),
            [_] => Err(Stop::Cheated("a value that is not recognised")),
            _ => Err(Stop::Input("one value is recognised at a time")),
        }
    }

    /// Nothing is verified: security is passive.
    async fn verify(&self) -> Result<(), Stop> {
        Ok(())
    }
}

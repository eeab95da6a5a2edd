//! Random values with the generator times their inverses: what ECDSA's nonces are.
//!
//! For [a] with a MAC, a random b, and c = a b, which all have opened, a^-1 G is (b / c) G. Neither b nor c has a MAC, and nobody has verified the
//! product: all that matters of R = (b / c) G is that a R = G, which the MAC of a shows by itself.
//!
//! 1. No c is zero, or somebody has lied. All show their summands of each R, and commitments to coins; 2. the coins: weights w_j of 128 bits.
//! 3. Commitments to sigma_i = sum w_j gamma_i(a_j) R_j - (sum w_j) delta_i G; 4. sigma_i. Their sum must be the identity.
//!
//! This is the opening of sum w_j a_j R_j in the group, but for the summands of it, which nobody needs: it has to be (sum w_j) G. So a
//! value with its inverse takes one MAC and two products of transfers, where a triple that is sacrificed takes five and three. `spec/mpc.md`, "MASCOT", has
//! the argument.

#[cfg(test)]
mod tests;

use theta_groups::{Group, Scalar as _, Secret, SecretRng};
use theta_ot::mascot::{Made, Masked, Share};
use theta_rounds::Bug;
use zeroize::Zeroize;

use super::{Check, MascotOf, triples::batch};
use crate::{
    Element, Scalar, Shared, Stop,
    pairs::{Elements, encode_elements},
};

/// The most values at once: the longest message has 16 kB for each.
const AT_ONCE: usize = 60;

/// The most random values at once: 2.8 kB each.
const SPARE_AT_ONCE: usize = 256;

/// What was made beside what was needed.
pub(super) struct Reserve<S: theta_groups::Scalar> {
    /// Values with masked products, which nobody has checked.
    masked: Secret<Vec<Masked<S>>>,
    /// Random values.
    spare: Secret<Vec<Share<S>>>,
}

impl<S: theta_groups::Scalar> Default for Reserve<S> {
    fn default() -> Self {
        Self { masked: Secret::new(Vec::new()), spare: Secret::new(Vec::new()) }
    }
}

/// Both lists. Sized beforehand: a vector that grows leaves copies of its old contents behind.
fn joined<T: Copy + Zeroize>(first: &[T], second: &[T]) -> Secret<Vec<T>> {
    let mut all = Secret::new(Vec::with_capacity(first.len() + second.len()));
    all.expose_mut().extend_from_slice(first);
    all.expose_mut().extend_from_slice(second);
    all
}

/// Takes the first of a list, as many as there are of so many.
fn take<T: Copy + Zeroize>(from: &mut Secret<Vec<T>>, count: usize) -> Secret<Vec<T>> {
    let (taken, left) = from.expose().split_at(count.min(from.expose().len()));
    let (taken, left) = (joined(taken, &[]), joined(left, &[]));
    *from = left;
    taken
}

impl<G: Group, C: Check> MascotOf<G, C> {
    /// Random values with their inverses in the group, which are right.
    pub(super) async fn inverses_now(&self, count: usize) -> Result<(Shared<Self>, Vec<Element<Self>>), Stop> {
        let mut masked = self.with_keys(|keys| take(&mut keys.reserve.masked, count))?;
        while masked.expose().len() < count {
            let more = AT_ONCE.min(count - masked.expose().len());
            // A mask for the check of whatever these are multiplied by comes with them.
            let spare = self.with_keys(|keys| usize::from(keys.reserve.spare.expose().is_empty()))?;
            let made = self.make(more, spare).await?;
            masked = joined(masked.expose(), made.expose());
        }
        if masked.expose().is_empty() {
            return Ok((Shared::from_cells([]), Vec::new()));
        }
        let elements = self.show_inverses(masked.expose()).await?;
        let cell = |it: &Masked<G::Scalar>| [it.factor.value, it.factor.mac];
        Ok((Shared::from_cells(masked.expose().iter().map(cell)), elements))
    }

    /// Random values. Whoever has to make some makes with them what a program needs that makes one signature: a value with its inverse, and the
    /// mask of its product with a fixed factor.
    pub(super) async fn random_now(&self, count: usize) -> Result<Shared<Self>, Stop> {
        if !C::SACRIFICES {
            let (a, b, _) = self.triples_now(count.div_ceil(2)).await?;
            return Ok(a.then(&b).part(0..count));
        }
        loop {
            let there = self.with_keys(|keys| keys.reserve.spare.expose().len())?;
            if there >= count {
                break;
            }
            let made = self.make(1, SPARE_AT_ONCE.min(count - there + 1)).await?;
            self.with_keys(|keys| keys.reserve.masked = joined(keys.reserve.masked.expose(), made.expose()))?;
        }
        let taken = self.with_keys(|keys| take(&mut keys.reserve.spare, count))?;
        Ok(Shared::from_cells(taken.expose().iter().map(|Share { value, mac }| [*value, *mac])))
    }

    /// Makes values with masked products, and random values into the reserve.
    async fn make(&self, count: usize, spare: usize) -> Result<Secret<Vec<Masked<G::Scalar>>>, Stop> {
        let maker = self.maker().await?;
        let begin = |rng: &mut SecretRng| maker.masked(count, spare, rng);
        let (maker, Made::Masked(masked, spare)) = batch(&self.party, begin).await? else {
            return Err(Stop::Bug(Bug("a batch of masked products made something else")));
        };
        self.with_keys(|keys| {
            keys.maker = Some(maker);
            keys.reserve.spare = joined(keys.reserve.spare.expose(), spare.expose());
        })?;
        Ok(masked)
    }

    /// The elements, if a times each of them is the generator.
    async fn show_inverses(&self, masked: &[Masked<G::Scalar>]) -> Result<Vec<Element<Self>>, Stop> {
        let mut inverses: Vec<Scalar<Self>> = masked.iter().map(|it| it.product).collect();
        // With a c of zero nobody shows anything of b, so that no R is right. Nobody has one but by a lie: who shows its summand last can make it so.
        if inverses.contains(&G::Scalar::ZERO) {
            return Err(Stop::Cheated("a masked product is zero"));
        }
        Scalar::<Self>::vartime_batch_invert(&mut inverses);
        let summands = masked.iter().zip(&inverses).map(|(it, inverse)| it.mask * *inverse);
        let summands = Secret::new(summands.collect::<Vec<_>>());
        self.check_inverses(masked, G::mul_base_batch(summands.expose())).await
    }

    /// Shows our summands of the elements; the elements, if a times each of them is the generator.
    async fn check_inverses(
        &self,
        masked: &[Masked<G::Scalar>],
        own: Vec<Element<Self>>,
    ) -> Result<Vec<Element<Self>>, Stop> {
        let (shown, weights) = self.show_and_toss(encode_elements::<G>(&own), masked.len()).await?;
        let elements = Elements::<G>::sum(&self.party, own, shown.iter().map(Vec::as_slice))?.0;

        let weights: Vec<G::Scalar> = weights.into_iter().map(G::Scalar::from_u128).collect();
        let macs = masked.iter().zip(&weights).map(|(it, weight)| it.factor.mac * *weight);
        let macs = Secret::new(macs.collect::<Vec<_>>());
        let all = Secret::new(weights.iter().copied().sum::<G::Scalar>() * *self.key()?.expose());
        let sigma = G::msm(macs.expose(), &elements) - G::mul_base(all.expose());
        self.reveal_identity(sigma).await?;
        Ok(elements)
    }
}

//! Products of many values with one factor, each party's summand of which is fixed as its MAC key is: [`theta_ot::mascot::Fixed`].
//!
//! 1. All fix their summands of x: two rounds.
//! 2. Summands of z_l = a_l x for all values, and for one more, a_0, that is random: one round.
//! 3. They get MACs: one round.
//! 4. Coins r_l; y = a_0 + sum r_l a_l is opened with its check. What has to be zero is w = z_0 + sum r_l z_l - y x.
//! 5. w itself must not be shown: where it is not zero, it tells whoever made it so as much of an honest party's summand of x as it likes, and x is a key. With
//!    a triple (u, v, u v), d = w - u is opened, and then v w = u v + d v, each with its check. It is zero if w is, and else a random number.
//!
//! `spec/mpc.md`, "MASCOT", has the argument.

#[cfg(test)]
mod tests;

use theta_groups::{Group, Scalar as _, Secret};
use theta_ot::mascot::Share;
use theta_rounds::Bug;

use super::{Check, MascotOf};
use crate::{
    Shared, Stop,
    pairs::{fault, misuse, swap},
};

/// The most products in one message: 2.8 kB each.
const AT_ONCE: usize = 256;

impl<G: Group, C: Check> MascotOf<G, C> {
    /// The products, with MACs. They are right.
    pub(super) async fn products_with(
        &self,
        values: &Shared<Self>,
        factor: &Shared<Self>,
    ) -> Result<Shared<Self>, Stop> {
        let mut products = Secret::new(Vec::with_capacity(values.len()));
        for start in (0..values.len()).step_by(AT_ONCE) {
            let part = values.part(start..values.len().min(start + AT_ONCE));
            products.expose_mut().extend_from_slice(self.some_products_with(&part, factor).await?.cells());
        }
        Ok(Shared::from_cells(products.expose().iter().copied()))
    }

    async fn some_products_with(&self, values: &Shared<Self>, factor: &Shared<Self>) -> Result<Shared<Self>, Stop> {
        let (u, v, uv) = self.verified_triples(2).await?;
        // The second triple's u is a_0.
        let values = values.then(&u.at(1));
        let products = self.unchecked_products_with(&values, factor).await?;
        self.check_products(&values, factor, &products, [&u.at(0), &v.at(0), &uv.at(0)]).await?;
        Ok(products.split(values.len() - 1).0)
    }

    /// Steps 1 to 3.
    async fn unchecked_products_with(
        &self,
        values: &Shared<Self>,
        factor: &Shared<Self>,
    ) -> Result<Shared<Self>, Stop> {
        let party = &self.party;
        let own =
            |shared: &Shared<Self>| Secret::new(shared.cells().iter().map(|[share, _]| *share).collect::<Vec<_>>());
        let factor = Secret::new(factor.cells().iter().map(|[share, _]| *share).sum());
        let mut maker = self.maker().await?;
        let begun = party.draw(|rng| maker.fix(factor, rng));
        let (setting, out) = begun.map_err(|it| misuse(&it))?;
        let got = swap(party, out).await?;
        let (fixing, out) = setting.handle(maker.pairs(), &got).map_err(fault(party))?;
        let fixed = fixing.handle(&swap(party, out).await?).map_err(fault(party))?;
        let (multiplied, out) = fixed.multiply(own(values).expose()).map_err(|it| misuse(&it))?;
        let (_, summands) = multiplied.handle(&swap(party, out).await?).map_err(fault(party))?;
        let (authenticated, out) = maker.authenticate(summands.expose()).map_err(|it| misuse(&it))?;
        let (maker, shares) = authenticated.handle(&swap(party, out).await?).map_err(fault(party))?;
        self.with_keys(|keys| keys.maker = Some(maker))?;
        Ok(Shared::from_cells(shares.expose().iter().map(|Share { value, mac }| [*value, *mac])))
    }

    /// Steps 4 and 5.
    async fn check_products(
        &self,
        values: &Shared<Self>,
        factor: &Shared<Self>,
        products: &Shared<Self>,
        triple: [&Shared<Self>; 3],
    ) -> Result<(), Stop> {
        let (w, _) = self.combined(values, factor, products).await?;
        if self.random_multiple(&w, triple).await? == G::Scalar::ZERO {
            Ok(())
        } else {
            Err(Stop::Cheated("a product with a fixed factor is false"))
        }
    }

    /// Step 4: w, and the coins.
    async fn combined(
        &self,
        values: &Shared<Self>,
        factor: &Shared<Self>,
        products: &Shared<Self>,
    ) -> Result<(Shared<Self>, Vec<G::Scalar>), Stop> {
        // The coins are shown after all have what MACs were made of.
        let (_, weights) = self.show_and_toss(Vec::new(), values.len().saturating_sub(1)).await?;
        let mut weights: Vec<G::Scalar> = weights.into_iter().map(G::Scalar::from_u128).collect();
        weights.push(G::Scalar::ONE);
        let y = self.open_one(&values.times_each(&weights).sum()).await?;
        Ok((&products.times_each(&weights).sum() - &factor.times(&y), weights))
    }

    /// Step 5: v w, of a triple (u, v, u v) that serves nothing else.
    async fn random_multiple(&self, w: &Shared<Self>, [u, v, uv]: [&Shared<Self>; 3]) -> Result<G::Scalar, Stop> {
        let d = self.open_one(&(w - u)).await?;
        self.open_one(&(uv + &v.times(&d))).await
    }

    async fn open_one(&self, value: &Shared<Self>) -> Result<G::Scalar, Stop> {
        let [opened] = self.open_scalars(value).await?[..] else {
            return Err(Stop::Bug(Bug("one value is opened as one")));
        };
        Ok(opened)
    }
}

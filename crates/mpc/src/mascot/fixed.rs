//! Products of many values with one factor, each party's summand of which is fixed as its MAC key is: [`theta_ot::mascot::Fixed`].
//!
//! 1. All fix their summands of x: two rounds.
//! 2. Summands of z_l = a_l x for all values, and for one more, a_0, that is random: one round.
//! 3. They get MACs, and coins r_l are tossed: two rounds. A coin is shown when its owner has all that MACs are made of.
//! 4. All show their summands of y = a_0 + sum r_l a_l: one round. What has to be zero is w = z_0 + sum r_l z_l - y x.
//! 5. w itself must not be shown: where it is not zero, it tells whoever made it so as much of an honest party's summand of x as it likes, and x is a key. With
//!    a triple (u, v, u v), d = w - u is opened, together with y once more, and with the check of both: four rounds. Then v w = u v + d v is opened, which is
//!    zero if w is, and else a random number: four rounds.
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
    blackbox::encode,
    both,
    pairs::{Scalars, broadcast, fault, misuse, swap},
};

/// A coin for each value, and one, for the value that hides the others.
type Coins<G> = Vec<<G as Group>::Scalar>;

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
        let (products, coins) = self.unchecked_products_with(&values, factor).await?;
        self.check_products(&values, factor, (&products, &coins), [&u.at(0), &v.at(0), &uv.at(0)]).await?;
        Ok(products.split(values.len() - 1).0)
    }

    /// Steps 1 to 3.
    async fn unchecked_products_with(
        &self,
        values: &Shared<Self>,
        factor: &Shared<Self>,
    ) -> Result<(Shared<Self>, Coins<G>), Stop> {
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
        // The coins are shown after all have what MACs are made of.
        let (got, (_, coins)) = both(swap(party, out), self.show_and_toss(Vec::new(), values.len() - 1)).await?;
        let (maker, shares) = authenticated.handle(&got).map_err(fault(party))?;
        self.with_keys(|keys| keys.maker = Some(maker))?;
        let mut coins: Coins<G> = coins.into_iter().map(G::Scalar::from_u128).collect();
        coins.push(G::Scalar::ONE);
        Ok((Shared::from_cells(shares.expose().iter().map(|Share { value, mac }| [*value, *mac])), coins))
    }

    /// Steps 4 and 5.
    async fn check_products(
        &self,
        values: &Shared<Self>,
        factor: &Shared<Self>,
        products: (&Shared<Self>, &Coins<G>),
        triple: [&Shared<Self>; 3],
    ) -> Result<(), Stop> {
        match self.multiple_of_difference(values, factor, products, triple).await? {
            zero if zero == G::Scalar::ZERO => Ok(()),
            _ => Err(Stop::Cheated("a product with a fixed factor is false")),
        }
    }

    /// v w.
    async fn multiple_of_difference(
        &self,
        values: &Shared<Self>,
        factor: &Shared<Self>,
        (products, coins): (&Shared<Self>, &Coins<G>),
        [u, v, uv]: [&Shared<Self>; 3],
    ) -> Result<G::Scalar, Stop> {
        const ONE: Stop = Stop::Bug(Bug("one value is opened as one"));
        let combined = values.times_each(coins).sum();
        let shown = broadcast(&self.party, encode(combined.cells().iter().map(|[share, _]| share))).await?;
        let shown = Scalars::<G::Scalar>::sum(&self.party, 1, shown.iter().map(Vec::as_slice))?.0;
        let y = shown.first().copied().ok_or(ONE)?;
        let w = &products.times_each(coins).sum() - &factor.times(&y);
        // y is right if it is the same once more, with its check; and all have the same then.
        let [again, d] = self.open_scalars(&combined.then(&(&w - u))).await?[..] else { return Err(ONE) };
        if again != y {
            return Err(Stop::Cheated("two openings of one value differ"));
        }
        self.open_scalars(&(uv + &v.times(&d))).await?.first().copied().ok_or(ONE)
    }
}

//! Products of many values with one factor, each party's summand of which is fixed as its MAC key is: [`theta_ot::mascot::Fixed`].
//!
//! 1. All fix their summands of x: two rounds.
//! 2. Summands of z_l = a_l x for all values, and for one more, a_0, that is random: one round.
//! 3. They get MACs, and coins r_l are tossed: two rounds. A coin is shown when its owner has all that MACs are made of.
//! 4. All show their summands y_i of y = a_0 + sum r_l a_l, and each tells each other one what it has of its own values' products with the other's x_j, combined
//!    in the same way: one round. So the owner of x_j sees whether the other has multiplied it by what y_i says, and *before it shows anything else*: a
//!    party that used another value for some digits of x_j does not learn of it whether it has guessed them, unless it did.
//!    Nor does it learn so in any other program that runs at the same time: who has found it goes on with none.
//! 5. y is opened once more, and w = z_0 + sum r_l z_l - y x, with the check of both: four rounds. y has to be the same, and w zero. After step 4, w is
//!    nothing that anybody learns from: whoever made it another number knows which.
//!
//! `spec/mpc.md`, "MASCOT", has the argument.

#[cfg(test)]
mod tests;

use theta_groups::{Group, Scalar as _, Secret};
use theta_names::ShareIndex;
use theta_ot::mascot::{FalseOpenings, Products, Share};

use super::{Check, MascotOf};
use crate::{
    Misbehaviour, Shared, Stop,
    blackbox::{decode, encode},
    both,
    pairs::{false_openings, fault, misuse, swap},
};

/// The most products in one message: 2.8 kB each.
const AT_ONCE: usize = 256;

/// Products that nobody has checked.
struct Made<G: Group, C: Check> {
    /// With MACs.
    products: Shared<MascotOf<G, C>>,
    /// What they were made of.
    parts: Products<G::Scalar>,
    /// Our summand of the factor.
    factor: Secret<G::Scalar>,
    /// A coin for each value, and one, for the value that hides the others.
    coins: Vec<G::Scalar>,
}

impl<G: Group, C: Check> MascotOf<G, C> {
    /// The products, with MACs. They are right.
    pub(super) async fn products_with(
        &self,
        values: &Shared<Self>,
        factor: &Shared<Self>,
    ) -> Result<Shared<Self>, Stop> {
        let mut products = Secret::new(Vec::with_capacity(values.len()));
        for start in (0..values.len()).step_by(AT_ONCE) {
            let mask = self.random_now(1).await?;
            let values = values.part(start..values.len().min(start + AT_ONCE)).then(&mask);
            let made = self.unchecked_products_with(&values, factor).await?;
            self.check_products(&values, factor, &made).await?;
            products.expose_mut().extend_from_slice(made.products.split(values.len() - 1).0.cells());
        }
        Ok(Shared::from_cells(products.expose().iter().copied()))
    }

    /// Steps 1 to 3; the last value hides the others.
    async fn unchecked_products_with(&self, values: &Shared<Self>, factor: &Shared<Self>) -> Result<Made<G, C>, Stop> {
        let party = &self.party;
        let own = Secret::new(values.cells().iter().map(|[share, _]| *share).collect::<Vec<_>>());
        let factor = Secret::new(factor.cells().iter().map(|[share, _]| *share).sum());
        self.judge(&[])?;
        let mut maker = self.maker().await?;
        let begun = party.draw(|rng| maker.fix(factor, rng));
        let (setting, out) = begun.map_err(|it| misuse(&it))?;
        let got = swap(party, out).await?;
        let (fixing, out) = setting.handle(maker.pairs(), &got).map_err(fault(party))?;
        // Trees that are opened falsely for some digits of ours pass as often as those are guessed: that is as what step 4 finds.
        let opened = fixing.handle(&swap(party, out).await?);
        let cheats = match &opened {
            Err(FalseOpenings::Of(liars)) => liars.iter().copied().map(ShareIndex::position).collect(),
            _ => Vec::new(),
        };
        self.judge(&cheats)?;
        let fixed = opened.map_err(false_openings(party))?;
        let (multiplied, out) = fixed.multiply(own.expose()).map_err(|it| misuse(&it))?;
        let (fixed, parts) = multiplied.handle(&swap(party, out).await?).map_err(fault(party))?;
        let (authenticated, out) = maker.authenticate(parts.summands().expose()).map_err(|it| misuse(&it))?;
        // The coins are shown after all have what MACs are made of.
        let toss = self.show_and_toss(Vec::new(), values.len().saturating_sub(1));
        let (got, (_, coins)) = both(swap(party, out), toss).await?;
        let (maker, shares) = authenticated.handle(&got).map_err(fault(party))?;
        self.with_keys(|keys| keys.maker = Some(maker))?;
        let mut coins: Vec<G::Scalar> = coins.into_iter().map(G::Scalar::from_u128).collect();
        coins.push(G::Scalar::ONE);
        let products = Shared::from_cells(shares.expose().iter().map(|Share { value, mac }| [*value, *mac]));
        Ok(Made { products, parts, factor: Secret::new(*fixed.factor().expose()), coins })
    }

    /// Steps 4 and 5.
    async fn check_products(
        &self,
        values: &Shared<Self>,
        factor: &Shared<Self>,
        made: &Made<G, C>,
    ) -> Result<(), Stop> {
        let combined = values.times_each(&made.coins).sum();
        let y = self.show_what_was_multiplied(&combined, made).await?;
        let w = &made.products.times_each(&made.coins).sum() - &factor.times(&y);
        // y is right if it is the same once more, with its check; and all have the same then.
        match self.open_scalars(&combined.then(&w)).await?[..] {
            [again, _] if again != y => Err(Stop::Cheated("two openings of one value differ")),
            [_, zero] if zero == G::Scalar::ZERO => Ok(()),
            _ => Err(Stop::Cheated("a product with a fixed factor is false")),
        }
    }

    /// Step 4: y, if each other party has multiplied our factor by its summand.
    async fn show_what_was_multiplied(&self, combined: &Shared<Self>, made: &Made<G, C>) -> Result<G::Scalar, Stop> {
        let (party, Made { parts, factor, coins, .. }) = (&self.party, made);
        let own = combined.cells().iter().map(|[share, _]| *share).sum::<G::Scalar>();
        let others = party.threshold().indices().filter(|index| index.position() != party.position());
        let out = others.map(|peer| (peer, encode(&[own, parts.claim(peer, coins)]))).collect();
        let (mut y, mut cheats) = (own, Vec::new());
        for (peer, bytes) in swap(party, out).await? {
            // All are judged, whatever the first has done: what is said of one tells nothing of another.
            match decode::<G::Scalar>(&bytes).as_deref() {
                Some(&[value, claim]) if parts.is_right(peer, factor, coins, &value, &claim) => y += value,
                _ => cheats.push(peer.position()),
            }
        }
        self.judge(&cheats).map(|()| y)
    }

    /// The parties at these positions have cheated at digits of our summand of the factor. Goes on if nobody has, here or in another program: before anything is
    /// sent that depends on whether they have guessed those. Whoever has is named.
    fn judge(&self, cheats: &[usize]) -> Result<(), Stop> {
        let known = self.with_keys(|keys| keys.lease.judge(cheats))?;
        known.iter().for_each(|cheat| self.party.blame(*cheat, Misbehaviour::FalseTransfer));
        if known.is_empty() { Ok(()) } else { Err(Stop::Lost) }
    }
}

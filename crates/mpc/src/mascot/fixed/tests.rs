//! A party that multiplies what it likes, by what it likes: nobody has a product then.

use theta_groups::{Group, P256, Scalar as _};
use theta_names::ShareIndex;
use theta_rounds::{Abort, PartyId};

use super::super::MascotOf;
use crate::program::among;
use crate::{BlackBox, Check, MascotSetUps, Outcome, Party, Sacrifice, Shared, Stop};

type S = <P256 as Group>::Scalar;

/// What party 1 does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    Nothing,
    /// It fixes another summand of x than its own.
    Factor,
    /// It multiplies another summand of a than its own, towards all and for all digits, and says that it was its own.
    Value,
    /// The same, and it says so: then what it shows of y has no MAC.
    ValueAndSum,
    /// It gives another summand of the product a MAC than its own.
    Product,
    /// It gives its summand of the product a MAC, and shows another one.
    Shown,
}

/// Adds a number to our summand, and nothing to its MAC.
fn plus<C: Check>(shared: &Shared<MascotOf<P256, C>>, number: S) -> Shared<MascotOf<P256, C>> {
    Shared::from_cells(shared.cells().iter().map(|[value, mac]| [*value + number, *mac]))
}

/// Products of three random values with a random factor; whether they are right.
async fn products<C: Check>(party: Party, lie: Lie) -> Result<bool, Stop> {
    let black_box = MascotOf::<P256, C>::new(&party).await?;
    let is_liar = party.position() == 0;
    let error = |lies: &[Lie]| if is_liar && lies.contains(&lie) { S::ONE } else { S::ZERO };
    let (a, x) = black_box.random(4).await?.split(3);
    let (mask, ..) = black_box.triples_now(1).await?;
    let values = a.then(&mask);
    let multiplied = plus(&values, error(&[Lie::Value, Lie::ValueAndSum]));
    let factor = plus(&x, error(&[Lie::Factor]));
    let mut made = black_box.unchecked_products_with(&multiplied, &factor).await?;
    if lie == Lie::Product {
        // A number with a MAC: as if the liar had said so from the beginning.
        made.products = &made.products + &black_box.constants(&[S::ONE; 4]);
    }
    made.products = plus(&made.products, error(&[Lie::Shown]));
    let shown = plus(&values, error(&[Lie::ValueAndSum]));
    black_box.check_products(&shown, &x, &made).await?;
    let opened = black_box.open(&a.then(&made.products.split(3).0).then(&x)).await?;
    Ok((0..3).all(|i| opened[i] * opened[6] == opened[3 + i]))
}

fn lies_are_seen<C: Check>() {
    const FALSE: &str = "a product with a fixed factor is false";
    const MACS: &str = "the MACs of what was opened fail their check";
    for n in [2, 3] {
        let report = among((n, n), 1, |party| Box::pin(products::<C>(party, Lie::Nothing)));
        assert!(report.agreed(|right| *right).unwrap());
        let found = [(Lie::Factor, FALSE), (Lie::ValueAndSum, MACS), (Lie::Product, FALSE), (Lie::Shown, MACS)];
        for (lie, how) in found {
            for (_, party) in among((n, n), 2, move |party| Box::pin(products::<C>(party, lie))).honest() {
                let Some(Err(Abort::Cheated(seen))) = party.result else { panic!("{lie:?} among {n}") };
                assert_eq!(seen, how, "{lie:?} among {n}");
            }
        }
        // Each of the others sees by itself who has multiplied something else than it says.
        let report = among((n, n), 3, |party| Box::pin(products::<C>(party, Lie::Value)));
        let blames = report.blames_of(PartyId::of_share(ShareIndex::at(0).unwrap())).count();
        assert_eq!(blames, usize::from(n) - 1);
        let others = report.parties.iter().filter(|(id, _)| id.get() != 1);
        assert!(others.clone().count() > 0 && others.into_iter().all(|(_, it)| !matches!(it.result, Some(Ok(_)))));
    }
}

#[test]
fn other_factors_values_and_products_are_seen_in_mascot() {
    lies_are_seen::<Sacrifice>();
}

/// There a product with the key that was none let liars sign what they liked.
#[test]
fn other_factors_values_and_products_are_seen_in_mascot_minus() {
    lies_are_seen::<Outcome>();
}

/// A liar that has many programs run at once, and tries something else in each: after the first that it fails in, none says anything.
#[test]
fn who_has_cheated_in_one_program_learns_nothing_in_others() {
    static SET_UPS: [std::sync::LazyLock<MascotSetUps>; 2] =
        [const { std::sync::LazyLock::new(MascotSetUps::default) }; 2];
    let program = |party: Party, error: u64| async move {
        let whose = [ShareIndex::at(0), ShareIndex::at(1)].map(Option::unwrap);
        let black_box = MascotOf::<P256, Sacrifice>::on(&party, &SET_UPS[party.position()], &whose).await?;
        let (a, x) = black_box.random(3).await?.split(2);
        let lies = if party.position() == 0 { S::from_u64(error) } else { S::ZERO };
        let made = black_box.unchecked_products_with(&plus(&a, lies), &x).await?;
        black_box.check_products(&a, &x, &made).await?;
        black_box.end_well();
        Ok(())
    };
    let honest = |error| {
        let report = among((2, 2), error, move |party| Box::pin(program(party, error)));
        let named = report.blames_of(PartyId::of_share(ShareIndex::at(0).unwrap())).count();
        let result = report.parties.into_iter().find(|(id, _)| id.get() == 2).and_then(|(_, party)| party.result);
        (named, result.unwrap().is_ok())
    };
    assert_eq!(honest(0), (0, true));
    assert_eq!(honest(1), (1, false));
    assert_eq!(honest(0), (1, false), "nothing is wrong in this one");
    assert_eq!(honest(1), (1, false), "and this one is as that");
}

/// A liar that shows one y to be checked by the owners of the factor, and another one with its MAC.
#[test]
fn y_is_the_same_twice() {
    let twice = |party: Party| async move {
        let black_box = MascotOf::<P256, Sacrifice>::new(&party).await?;
        let (a, x) = black_box.random(3).await?.split(2);
        let lies = if party.position() == 0 { S::ONE } else { S::ZERO };
        let made = black_box.unchecked_products_with(&plus(&a, lies), &x).await?;
        if party.position() != 0 {
            return black_box.check_products(&a, &x, &made).await;
        }
        let combined = a.times_each(&made.coins).sum();
        let error = made.coins[0] + made.coins[1];
        let y = black_box.show_what_was_multiplied(&plus(&combined, error), &made).await?;
        // Nobody has objected. w is zero, and y another one: that is all that is wrong.
        let w = &made.products.times_each(&made.coins).sum() - &x.times(&y);
        let opened = black_box.open(&combined.then(&w)).await?;
        assert!(opened[0] != y && opened[1] == S::ZERO);
        Ok(())
    };
    let report = among((2, 2), 1, move |party| Box::pin(twice(party)));
    let honest = report.parties.iter().find(|(id, _)| id.get() == 2).and_then(|(_, party)| party.result.as_ref());
    assert_eq!(honest.unwrap(), &Err(Abort::Cheated("two openings of one value differ")));
}

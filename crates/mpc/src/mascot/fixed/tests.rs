//! A party that multiplies what it likes, by what it likes: nobody has a product then, and it does not see what it would like to.

use core::{future::Future, pin::Pin};

use theta_groups::{Group, P256, Scalar as _};
use theta_rounds::{
    Abort, Driver, LockStep, PartyId,
    simulator::{Conditions, Simulator},
};
use theta_sharing::Threshold;

use crate::{BlackBox, Mascot, MascotMinus, Outcome, Party, Program, Sacrifice, Shared, Stop};

use super::super::{Check, MascotOf};

type S = <P256 as Group>::Scalar;
type Running<O> = Pin<Box<dyn Future<Output = Result<O, Stop>> + Send>>;

/// What party 1 does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    Nothing,
    /// It fixes another summand of x than its own.
    Factor,
    /// It multiplies another summand of a than its own, towards all and for all digits.
    Value,
    /// It says that it has another summand of the product.
    Product,
    /// It gives its summand a MAC, and shows another one.
    Shown,
}

/// Adds a number to our summand, and nothing to its MAC.
fn plus<C: Check>(shared: &Shared<MascotOf<P256, C>>, number: S) -> Shared<MascotOf<P256, C>> {
    Shared::from_cells(shared.cells().iter().map(|[value, mac]| [*value + number, *mac]))
}

/// What every party of n comes to.
fn run<O: Send + 'static>(
    n: u16,
    seed: u64,
    begin: impl Fn(Party) -> Running<O> + Copy + Send + 'static,
) -> Vec<Result<O, Abort>> {
    let threshold = Threshold::new(n, n).unwrap();
    let mut simulator = Simulator::new(seed, Conditions::default());
    for index in threshold.indices() {
        let id = PartyId::of_share(index);
        let program = LockStep::new(Program::new(index, threshold, begin).unwrap());
        simulator.honest(id, Box::new(Driver::new(id, threshold.indices().map(PartyId::of_share), program)));
    }
    simulator.run().parties.into_values().map(|party| party.result.unwrap()).collect()
}

/// Products of three random values with a random factor; whether they are right.
async fn products<C: Check>(party: Party, lie: Lie) -> Result<bool, Stop> {
    let black_box = MascotOf::<P256, C>::new(&party).await?;
    let lie = if party.position() == 0 { lie } else { Lie::Nothing };
    let error = |when: Lie| if lie == when { S::ONE } else { S::ZERO };
    let (a, x) = black_box.random(4).await?.split(3);
    let (u, v, uv) = black_box.verified_triples(2).await?;
    let values = a.then(&u.at(1));
    let multiplied = plus(&values, error(Lie::Value));
    let (mut made, coins) = black_box.unchecked_products_with(&multiplied, &plus(&x, error(Lie::Factor))).await?;
    if lie == Lie::Product {
        // With a MAC: as if it had said so from the beginning.
        let others = black_box.constants(&[S::ONE; 4]);
        made = &made + &others;
    }
    let made = plus(&made, error(Lie::Shown));
    black_box.check_products(&values, &x, (&made, &coins), [&u.at(0), &v.at(0), &uv.at(0)]).await?;
    let opened = black_box.open(&a.then(&made.split(3).0).then(&x)).await?;
    Ok((0..3).all(|i| opened[i] * opened[6] == opened[3 + i]))
}

fn lies_are_seen<C: Check>() {
    for n in [2, 3] {
        let honest = run(n, 1, |party| Box::pin(products::<C>(party, Lie::Nothing)));
        assert!(honest.into_iter().all(|right| right.unwrap()));
        for (lie, how) in [
            (Lie::Factor, "a product with a fixed factor is false"),
            (Lie::Value, "a product with a fixed factor is false"),
            (Lie::Shown, "the MACs of what was opened fail their check"),
        ] {
            for result in run(n, 2, move |party| Box::pin(products::<C>(party, lie))) {
                assert_eq!(result.unwrap_err(), Abort::Cheated(how), "{lie:?}");
            }
        }
        // The first party alone adds a constant's summand, all the others nothing but its MAC.
        for result in run(n, 3, |party| Box::pin(products::<C>(party, Lie::Product))) {
            assert!(matches!(result.unwrap_err(), Abort::Cheated(_)));
        }
    }
}

#[test]
fn other_factors_values_and_products_are_seen_in_mascot() {
    lies_are_seen::<Sacrifice>();
}

#[test]
fn other_factors_values_and_products_are_seen_in_mascot_minus() {
    lies_are_seen::<Outcome>();
}

/// What the liar computes from what is opened after it has multiplied a + 1 in the place of a, and x: by w itself, if it were opened, and by what is.
async fn guesses(party: Party, opens_w: bool) -> Result<(S, S), Stop> {
    let black_box = Mascot::<P256>::new(&party).await?;
    let (a, x) = black_box.random(2).await?.split(1);
    let (u, v, uv) = black_box.verified_triples(2).await?;
    let values = a.then(&u.at(1));
    let lies = if party.position() == 0 { S::ONE } else { S::ZERO };
    let multiplied = plus(&a, lies).then(&u.at(1));
    let (made, coins) = black_box.unchecked_products_with(&multiplied, &x).await?;
    let shown = if opens_w {
        let y = black_box.open(&values.times_each(&coins).sum()).await?[0];
        black_box.open(&(&made.times_each(&coins).sum() - &x.times(&y))).await?[0]
    } else {
        black_box.multiple_of_difference(&values, &x, (&made, &coins), [&u.at(0), &v.at(0), &uv.at(0)]).await?
    };
    Ok((shown * coins[0].invert(), black_box.open(&x).await?[0]))
}

/// The check fails, and shows nothing of x, which w would have shown.
#[test]
fn a_check_that_fails_does_not_show_the_factor() {
    for (guess, x) in run(2, 7, |party| Box::pin(guesses(party, true))).into_iter().map(Result::unwrap) {
        assert_eq!(guess, x, "w is a known multiple of x");
    }
    let seen: Vec<S> = (7..12)
        .map(|seed| {
            let all = run(2, seed, |party| Box::pin(guesses(party, false)));
            let (guess, x) = *all[0].as_ref().unwrap();
            assert!(guess != x && guess != S::ZERO);
            guess * x.invert()
        })
        .collect();
    // A random multiple each time.
    assert!((1..5).all(|i| !seen[..i].contains(&seen[i])), "{seen:?}");
}

/// A lie that MASCOT- took before: an error in a product that is a multiple of the other factor, with which what is released for one digest signs another.
#[test]
fn mascot_minus_checks_what_is_multiplied_by_the_key() {
    let multiplies_by = |party: Party, add: u64| async move {
        let black_box = MascotMinus::<P256>::new(&party).await?;
        let (a, x) = black_box.random(2).await?.split(1);
        let x = if party.position() == 0 { plus(&x, S::from_u64(add)) } else { x };
        black_box.multiply_by(&a, &x).await.map(|_| ())
    };
    assert!(run(2, 1, move |party| Box::pin(multiplies_by(party, 0))).iter().all(Result::is_ok));
    assert!(run(2, 1, move |party| Box::pin(multiplies_by(party, 5))).iter().all(Result::is_err));
}

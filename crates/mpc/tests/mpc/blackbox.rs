//! What every black box can do.

use theta_groups::{Group, P256, Scalar, Secret};
use theta_mpc::{Stop, both};
use theta_names::ShareIndex;
use theta_rounds::{Abort, simulator::Behaviour};

use crate::group::{GroupOf, Made, party, same, with_each};

type S = <P256 as Group>::Scalar;

fn number(value: u64) -> S {
    S::from_u64(value)
}

#[test]
fn random_values_are_fresh_and_the_same_at_all() {
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        let report = GroupOf::new(n, t).run(same(|party| async move {
            let black_box = B::make(&party).await?;
            let (first, second) = both(black_box.random(5), black_box.random(4)).await?;
            black_box.open(&first.then(&second)).await
        }));
        let mut values = report.agreed(Clone::clone).unwrap();
        assert_eq!(values.len(), 9);
        values.sort_by_key(|value| value.encode());
        values.dedup();
        assert_eq!(values.len(), 9, "{}: a value that comes twice", B::NAME);
    }
    with_each!(P256, test);
}

#[test]
fn inputs_products_and_linear_operations_are_right() {
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        // Few products, and so many that they are opened by turns and verified in several steps.
        for count in [1_u64, 3, B::MANY] {
            let report = GroupOf::new(n, t).run(same(move |party| async move {
                let black_box = B::make(&party).await?;
                let len = usize::try_from(count).unwrap();
                let own = |dealer: u16, values: Vec<S>| {
                    (party.position() + 1 == usize::from(dealer)).then(|| Secret::new(values))
                };
                let index = |number: u16| ShareIndex::try_from(number).unwrap();
                let a = own(1, (0..count).map(|i| number(i + 2)).collect());
                let b = own(n, (0..count).map(|i| number(10 * i + 1)).collect());
                let a = black_box.input(index(1), len, a.as_ref()).await?;
                let b = black_box.input(index(n), len, b.as_ref()).await?;
                let (c, d) = both(black_box.multiply(&a, &b), black_box.multiply(&a, &a)).await?;
                let five = black_box.constants(&vec![number(5); len]);
                let result = &(&c.times(&number(3)) - &d) + &five;
                let (opened, sum) = both(black_box.open(&result), black_box.open(&result.sum())).await?;
                Ok((opened, sum))
            }));
            let (opened, sum) =
                report.agreed(Clone::clone).map_err(|e| format!("{} {n} {count}: {e}", B::NAME)).unwrap();
            let expected: Vec<S> =
                (0..count).map(|i| number(3 * (i + 2) * (10 * i + 1) + 5) - number((i + 2) * (i + 2))).collect();
            assert_eq!(opened, expected, "{} with {count}", B::NAME);
            assert_eq!(sum, vec![expected.iter().copied().sum()]);
        }
    }
    with_each!(P256, test);
}

/// So many that a party that hears only some of the others would be further ahead of them than what it sends has room.
#[test]
fn chains_of_products_inputs_and_openings_are_as_long_as_one_likes() {
    const LONG: u64 = 70;
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        let report = GroupOf::new(n, t).run(same(move |party| async move {
            let black_box = B::make(&party).await?;
            let dealer = ShareIndex::try_from(1).unwrap();
            let own = (party.position() == 0).then(|| Secret::new(vec![number(2)]));
            let two = black_box.input(dealer, 1, own.as_ref()).await?;
            let mut power = black_box.constants(&[number(1)]);
            for _ in 0..LONG {
                power = black_box.multiply(&power, &two).await?;
            }
            for _ in 0..LONG {
                power = &power + &black_box.input(dealer, 1, own.as_ref()).await?;
            }
            let mut opened = Vec::new();
            for _ in 0..LONG {
                opened = black_box.open(&power).await?;
            }
            for _ in 0..LONG {
                black_box.random(1).await?;
                black_box.open_points(&power.part(0..1).convert()).await?;
            }
            Ok(opened)
        }));
        let opened = report.agreed(Clone::clone).map_err(|e| format!("{} {n}: {e}", B::NAME)).unwrap();
        let power = (0..LONG).fold(number(1), |power, _| power * number(2));
        assert_eq!(opened, [power + number(2 * LONG)], "{} {n}", B::NAME);
    }
    with_each!(P256, test);
}

/// The same by bytes, where one product has a quarter of the longest message.
#[test]
fn chains_of_large_products_are_as_long_as_one_likes() {
    const MANY: u64 = 8_000;
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        let report = GroupOf::new(n, t).run(same(move |party| async move {
            let black_box = B::make(&party).await?;
            let mut values = black_box.constants(&(0..MANY).map(number).collect::<Vec<_>>());
            for _ in 0..6 {
                values = black_box.multiply(&values, &values).await?;
            }
            // One that takes more than all that may be ahead together by half, and one after it.
            for many in [28_000, 16_000] {
                let large = black_box.constants(&vec![number(1); many]);
                black_box.multiply(&large, &large).await?;
            }
            black_box.open(&values.part(2..4)).await
        }));
        let opened = report.agreed(Clone::clone).map_err(|e| format!("{} {n}: {e}", B::NAME)).unwrap();
        let power = |base: u64| (0..6).fold(number(base), |power, _| power * power);
        assert_eq!(opened, [power(2), power(3)], "{} {n}", B::NAME);
    }
    test::<theta_mpc::Rep3<P256, theta_mpc::Passive>>(3, 1);
    test::<theta_mpc::Rep3<P256, theta_mpc::Active>>(3, 1);
    test::<theta_mpc::Shamir<P256, theta_mpc::Passive>>(4, 1);
}

#[test]
fn elements_are_those_of_the_opened_values() {
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        let report = GroupOf::new(n, t).run(same(|party| async move {
            let black_box = B::make(&party).await?;
            let values = black_box.random(20).await?;
            let factors: Vec<S> = (1..=20).map(number).collect();
            let elements = black_box.open_points(&values.part(0..20).convert().times_each(&factors)).await?;
            Ok((black_box.open(&values).await?, elements))
        }));
        let (values, elements) = report.agreed(Clone::clone).unwrap();
        for (i, (value, element)) in values.iter().zip(&elements).enumerate() {
            assert!(*element == P256::mul_base(&(*value * number(i as u64 + 1))), "{}: element {i}", B::NAME);
        }
    }
    with_each!(P256, test);
}

#[test]
fn a_triple_is_a_triple() {
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        let report = GroupOf::new(n, t).run(same(|party| async move {
            let black_box = B::make(&party).await?;
            let (a, b, c) = black_box.triples(3).await?;
            black_box.verify().await?;
            black_box.open(&a.then(&b).then(&c)).await
        }));
        let all = report.agreed(Clone::clone).unwrap();
        assert!((0..3).all(|i| all[i] * all[i + 3] == all[i + 6]), "{}", B::NAME);
    }
    with_each!(P256, test);
}

#[test]
fn groups_that_do_not_fit_are_refused() {
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        let report = GroupOf::new(n, t).run(same(|party| async move {
            B::make(&party).await?;
            Ok(())
        }));
        for (_, party) in report.honest() {
            assert!(matches!(party.result, Some(Err(Abort::Input(_)))), "{} took {t} of {n}", B::NAME);
        }
    }
    use theta_mpc::{Active, Mascot, Passive, Rep3, SemiOt, Shamir};
    test::<Shamir<P256, Passive>>(2, 1);
    test::<Shamir<P256, Passive>>(4, 2);
    test::<Shamir<P256, Passive>>(3, 0);
    test::<Shamir<P256, Active>>(4, 1);
    test::<Shamir<P256, Active>>(17, 8);
    test::<Rep3<P256, Passive>>(4, 1);
    test::<Rep3<P256, Active>>(3, 2);
    test::<SemiOt<P256>>(3, 1);
    test::<SemiOt<P256>>(16, 15);
    test::<Mascot<P256>>(3, 1);
    test::<Mascot<P256>>(16, 15);
}

#[test]
fn a_black_box_for_openings_draws_nothing() {
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        let report = GroupOf::new(n, t).run(same(|party| async move {
            let black_box = B::make_for_openings(&party)?;
            assert!(matches!(black_box.random(1).await, Err(Stop::Input(_))));
            let ones = black_box.constants(&[S::ONE]);
            assert!(matches!(black_box.multiply(&ones, &ones).await, Err(Stop::Input(_))));
            black_box.open_recognised(&ones, |value| *value == S::ONE).await
        }));
        assert_eq!(report.agreed(Clone::clone).unwrap(), S::ONE);
    }
    with_each!(P256, test);
}

#[test]
fn a_party_that_sends_rubbish_is_named() {
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        let behaviours = [
            Behaviour::Truncate,
            Behaviour::Overlong,
            Behaviour::Empty,
            Behaviour::WrongChannel,
            Behaviour::UnknownSlot,
            Behaviour::TwoToSame,
        ];
        for behaviour in behaviours {
            // A second message may come when the program has ended; not with every seed.
            let is_named = |seed| {
                let report = GroupOf::new(n, t).seed(seed).liar(2, behaviour.clone()).run(same(|party| async move {
                    let black_box = B::make(&party).await?;
                    let values = black_box.random(2).await?;
                    black_box.open(&values).await
                }));
                report.check_blame().unwrap();
                report.blames_of(party(2)).count() > 0
            };
            assert!((0..10).any(is_named), "{}: {behaviour:?} is not noticed", B::NAME);
        }
    }
    with_each!(P256, test);
}

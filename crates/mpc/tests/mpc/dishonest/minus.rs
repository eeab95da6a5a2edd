//! MASCOT-: a false product makes no signature, and nobody a wrong one.

use theta_groups::{Group, P256, Scalar as _};
use theta_mpc::ecdsa::{bind, generate, prepare_nonces};
use theta_mpc::{BlackBox, Mascot, MascotMinus, Misbehaviour, Party, Stop};
use theta_names::Epoch;
use theta_rounds::Abort;
use theta_rounds::simulator::Report;

use crate::cheating::{TUPLES, instead, prepare, recorded};
use crate::ecdsa::{Material, request, sign_in};
use crate::group::{GroupOf, Made, Recorder, Sent, same};

type B = MascotMinus<P256>;
type S = <P256 as Group>::Scalar;

/// A key and eight tuples, which sign.
fn signs(n: u16) {
    let report = GroupOf::new(n, n - 1).run(same(|party: Party| async move {
        let black_box = B::make(&party).await?;
        let key = generate(&black_box, Epoch::FIRST).await?;
        let nonces = prepare_nonces(&black_box, Epoch::FIRST, 8).await?;
        let tuples = bind(&black_box, nonces, &key).await?;
        Ok::<Material<B>, Stop>((key.into(), tuples))
    }));
    let mut materials: Vec<Material<B>> = report.parties.into_values().map(|it| it.result.unwrap().unwrap()).collect();
    let public_key = *materials[0].0.public_key();
    for text in [b"one", b"two"] {
        let report = sign_in(GroupOf::new(n, n - 1), &mut materials, request(text));
        assert!(report.agreed(|signature| *signature).unwrap().vartime_verifies(&public_key, &request(text).digest));
    }
}

/// Rounds and bytes of party 1 for so many triples whose products are opened.
fn cost<B: Made<Group = P256>>(n: u16, count: usize) -> (u16, usize) {
    let sent = Sent::default();
    let report = GroupOf::new(n, n - 1).liar(1, Recorder(sent.clone())).run(same(move |party: Party| async move {
        let black_box = B::make(&party).await?;
        let (a, b, c) = black_box.triples(count).await?;
        let (factors, products) = (black_box.open(&a.then(&b)).await?, black_box.open_products(&c).await?);
        let (a, b) = factors.split_at(count);
        Ok(a.iter().zip(b).zip(products).all(|((a, b), c)| *a * *b == c))
    }));
    assert!(report.agreed(|right| *right).unwrap());
    let sent = sent.lock().unwrap();
    (sent.iter().map(|(_, round, _)| *round).max().unwrap(), sent.iter().map(|(_, _, payload)| payload.len()).sum())
}

#[test]
fn keys_tuples_and_signatures_are_right() {
    signs(2);
    signs(3);
}

#[test]
fn triples_take_less() {
    // A seventh of the bytes less, and the opening of products takes fewer rounds. What is beside triples falls out of a difference.
    fn of_eight<B: Made<Group = P256>>(n: u16) -> (u16, usize) {
        let ((_, few), (rounds, more)) = (cost::<B>(n, 2), cost::<B>(n, 10));
        (rounds, more - few)
    }
    for n in [2, 3] {
        let ((with, bytes), (without, fewer)) = (of_eight::<Mascot<P256>>(n), of_eight::<B>(n));
        assert!(without < with && 7 * fewer < 6 * bytes, "{without} rounds and {fewer} bytes, {with} and {bytes}");
    }
}

/// Whoever opens a product as if it had a MAC is told so.
#[test]
fn products_are_opened_as_such_alone() {
    let product = |checked: bool| {
        GroupOf::new(2, 1).run(same(move |party: Party| async move {
            let black_box = B::make(&party).await?;
            let a = black_box.constants(&[S::from_u64(6)]);
            let product = black_box.multiply(&a, &black_box.constants(&[S::from_u64(7)])).await?;
            let opened =
                if checked { black_box.open(&product).await? } else { black_box.open_products(&product).await? };
            Ok(opened == [S::from_u64(42)])
        }))
    };
    assert!(product(false).agreed(|right| *right).unwrap());
    let report = product(true);
    for (_, party) in report.honest() {
        let Some(Err(Abort::Cheated(phase))) = &party.result else { panic!("no failure") };
        assert_eq!(*phase, "the MACs of what was opened fail their check");
    }
}

/// What came of a lie.
#[derive(Default, Debug)]
struct Seen {
    before: usize,
    by_signature: usize,
    never: usize,
}

/// What is true after any lie: the honest have tuples that sign rightly, or nothing comes of them.
fn check(n: u16, report: Report<Material<B>, Misbehaviour>, seen: &mut Seen) {
    report.check_blame().unwrap();
    let mut materials: Vec<Material<B>> = Vec::new();
    for (_, party) in report.parties {
        materials.extend(party.result.and_then(Result::ok));
    }
    if materials.len() < usize::from(n) {
        seen.before += 1;
        return;
    }
    let public_key = *materials[0].0.public_key();
    let mut is_found = false;
    for _ in 0..TUPLES {
        let report = sign_in(GroupOf::new(n, n - 1), &mut materials, request(b"after a lie"));
        for (_, party) in report.honest() {
            match &party.result {
                Some(Ok(signature)) => {
                    assert!(signature.vartime_verifies(&public_key, &request(b"after a lie").digest));
                }
                Some(Err(Abort::Cheated(_))) => is_found = true,
                other => panic!("{}", other.is_some()),
            }
        }
    }
    *if is_found { &mut seen.by_signature } else { &mut seen.never } += 1;
}

#[test]
fn a_lie_is_seen_at_the_signature_at_the_latest() {
    for n in [2, 3] {
        let mut seen = Seen::default();
        for (to, round, payload) in &recorded::<B>(n, n - 1, 1) {
            // Of corrections the other party uses half.
            let places = if payload.len() > 10_000 { 12 } else { 2 };
            for place in (1..=places).map(|part| payload.len() * part / places - 1) {
                let mut lie = payload.clone();
                lie[place] ^= 1;
                check(n, prepare::<B>(GroupOf::new(n, n - 1).liar(1, instead(*to, *round, lie))), &mut seen);
            }
        }
        // Never seen is what depends on a bit that the liar guessed.
        assert!(seen.before > 50 && seen.by_signature > 0 && seen.never * 5 < seen.before, "{n} parties: {seen:?}");
    }
}

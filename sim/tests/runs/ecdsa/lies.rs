//! Holders of keys of ECDSA that lie: who it was is known where it can be, and what was asked for is signed where the threshold allows.

use std::collections::{BTreeMap, BTreeSet};

use theta_schemes::{Delivery, Suite};
use theta_sim::{Behaviour, EcdsaLie, Observation, Outcome, Scenario, Weather, run};

use super::presignatures::busy;
use crate::setting::quiet;

const LIAR: u16 = 1;
/// The lies in rounds of programs that rest on transfers.
const IN_PROGRAMS: [EcdsaLie; 6] = [
    EcdsaLie::OtherElement,
    EcdsaLie::ZeroProduct,
    EcdsaLie::Replay,
    EcdsaLie::Divided,
    EcdsaLie::OneCorrection,
    EcdsaLie::WrongDegree,
];

/// The programs in which a liar follows the protocol: those that fill the stocks.
const FILLINGS: u16 = 2;

/// So many requests are enough where programs are slow.
const FEW: usize = 5;

/// A busy group with such a key, of which node 1 lies; checks that its lies were told. And how many results the honest nodes should have.
fn beside(lie: EcdsaLie, delivery: Delivery, (k, n): (u16, u16)) -> (Outcome, usize) {
    let mut scenario = busy(0, false);
    (scenario.n, scenario.k) = (n, k);
    scenario.keys[0].delivery = delivery;
    if n < 2 * k {
        scenario.requests.truncate(FEW);
    }
    scenario.liars.insert(LIAR, Behaviour::Ecdsa(lie));
    let outcome = run(&scenario, false);
    assert_eq!(outcome.violation, None, "{lie:?}, {delivery:?} {k} of {n}");
    assert!(outcome.observations.lies().any(|(what, times)| what == lie.name() && times > 0), "{lie:?} was not told");
    (outcome, scenario.requests.len() * (usize::from(n) - 1))
}

/// With an honest majority all requests are signed. The checks of a program say that somebody lied, and views that are opened say who, where they come before
/// the request has ended; who sends a false share of a signature is named.
#[test]
fn beside_liars_most_holders_sign() {
    for delivery in [Delivery::All, Delivery::Passive] {
        // There are no transfers.
        for lie in EcdsaLie::ALL.into_iter().filter(|lie| *lie != EcdsaLie::OneCorrection) {
            let (outcome, all) = beside(lie, delivery, (2, 4));
            assert_eq!(outcome.results, all, "{lie:?}");
            assert!(outcome.observations.count(Observation::Presigned) > 0 && outcome.quarantined.is_empty());
            // With passive security nobody is named, as a liar can make others' shares look false.
            let may_be_named = if delivery == Delivery::All { [LIAR].into() } else { BTreeSet::new() };
            assert!(outcome.accused.is_subset(&may_be_named), "{lie:?}: {:?}", outcome.accused);
            assert!(lie != EcdsaLie::FalseShare || outcome.accused == may_be_named, "{lie:?}");
        }
    }
}

/// Three of which one lies, once there is a stock, are 2t + 1 and no more: what the two others have in stock without it still signs, and when that is used up
/// nothing does, as every program has the liar in it. Nobody else is named for it, and nobody is in quarantine (`spec/ecdsa.md`, What t liars can do).
#[test]
fn beside_a_liar_of_three_two_sign_from_stock_and_then_no_more() {
    let mut named = 0;
    for lie in IN_PROGRAMS.into_iter().filter(|lie| *lie != EcdsaLie::OneCorrection) {
        let mut scenario = busy(0, false);
        scenario.n = 3;
        scenario.liars.insert(LIAR, Behaviour::EcdsaAfter(lie, FILLINGS));
        let outcome = run(&scenario, false);
        assert_eq!(outcome.violation, None, "{lie:?}");
        assert!(outcome.observations.lies().any(|(what, times)| what == lie.name() && times > 0), "{lie:?}");
        let all = 2 * scenario.requests.len();
        assert!(outcome.results > 0 && outcome.results < all, "{lie:?}: {} results of {all}", outcome.results);
        assert!(outcome.observations.count(Observation::Presigned) > 0, "{lie:?}");
        assert!(
            outcome.accused.is_subset(&[LIAR].into()) && outcome.quarantined.is_empty(),
            "{lie:?}: {:?}",
            outcome.accused
        );
        named += outcome.accused.len();
    }
    assert!(named > 0, "opened views name the liar");
}

/// Without one a lie ends the program, its holders make no other, and of two the liar is known; whoever is left signs.
#[test]
fn beside_a_liar_of_three_two_sign_and_leave_it_alone() {
    for delivery in [Delivery::DishonestMajority, Delivery::PassiveDishonestMajority] {
        for lie in IN_PROGRAMS {
            let (outcome, all) = beside(lie, delivery, (2, 3));
            assert_eq!(outcome.results, all, "{lie:?}");
            let found = outcome.quarantined;
            assert!(
                !found.is_empty() && found.iter().all(|(set, named)| set.len() == 2 && *named == Some(LIAR)),
                "{found:?}"
            );
        }
    }
}

/// Where all must sign nobody has a signature after a lie. Of two it was the other one; of three nobody knows who, unless a message shows it.
#[test]
fn where_all_must_sign_a_lie_ends_in_quarantine() {
    let cases =
        [(Delivery::DishonestMajority, 2), (Delivery::DishonestMajority, 3), (Delivery::PassiveDishonestMajority, 2)];
    for (delivery, k) in cases {
        for lie in IN_PROGRAMS {
            let (outcome, _) = beside(lie, delivery, (k, k));
            assert_eq!(outcome.results, 0, "{lie:?}, {k} of {k}");
            let named = (k == 2).then_some(LIAR);
            assert_eq!(outcome.quarantined, [((1..=k).collect(), named)].into(), "{lie:?}");
        }
    }
}

/// False shares of presignatures, and such as are named twice, cost a program each: it shows no lie, and signs.
#[test]
fn where_all_must_sign_false_presignatures_delay_and_no_more() {
    for lie in [EcdsaLie::NamedTwice, EcdsaLie::FalseShare] {
        for k in [2, 3] {
            let (outcome, all) = beside(lie, Delivery::DishonestMajority, (k, k));
            assert_eq!((outcome.results, outcome.quarantined), (all, BTreeSet::new()), "{lie:?}, {k} of {k}");
            assert!(outcome.observations.count(Observation::Presigned) > 0);
        }
    }
}

/// Random scenarios have keys of each delivery of ECDSA, groups of which all must sign, and each lie.
#[test]
fn seeds_draw_deliveries_and_lies_of_holders() {
    let (mut deliveries, mut lies) = (BTreeMap::new(), BTreeSet::new());
    for seed in 0..2_000 {
        let Scenario { k, n, keys, liars, .. } = Scenario::of(seed);
        for key in keys.iter().filter(|key| key.suite.scheme() == "ECDSA") {
            *deliveries.entry((key.delivery.name(), k == n)).or_insert(0) += 1;
            let is_passive = [Delivery::Passive, Delivery::PassiveDishonestMajority].contains(&key.delivery);
            let by_k = [Delivery::DishonestMajority, Delivery::PassiveDishonestMajority].contains(&key.delivery);
            assert!(!is_passive || liars.is_empty(), "seed {seed}: passive security beside a liar");
            assert!(by_k || n >= 2 * k - 1, "seed {seed}: {k} of {n}");
        }
        lies.extend(
            liars.into_values().filter_map(|liar| if let Behaviour::Ecdsa(lie) = liar { Some(lie) } else { None }),
        );
    }
    let expected = [
        (Delivery::All, false),
        (Delivery::Passive, false),
        (Delivery::DishonestMajority, false),
        (Delivery::DishonestMajority, true),
        (Delivery::PassiveDishonestMajority, false),
        (Delivery::PassiveDishonestMajority, true),
    ];
    for (delivery, is_whole) in expected {
        assert!(deliveries.get(&(delivery.name(), is_whole)) >= Some(&10), "{deliveries:?}");
    }
    assert_eq!(lies, EcdsaLie::ALL.into());
}

/// Two of five lie where three must sign, so that one set of ten makes a signature; and for a minute the network loses most messages. What each coordinator
/// may name in one request is used up by then, and comes back whenever the request is asked for again.
#[test]
fn one_honest_set_of_ten_signs_after_a_bad_minute() {
    for seed in 0..3 {
        let mut scenario = quiet(seed, Suite::EcdsaP256);
        (scenario.n, scenario.k) = (5, 3);
        scenario.keys[0].delivery = Delivery::DishonestMajority;
        scenario.weather = Weather { delay: 100, loss: 700, duplicates: 0 };
        (scenario.calm, scenario.end) = (60_000, 130_000);
        scenario.liars = [(1, Behaviour::Ecdsa(EcdsaLie::WrongDegree)), (2, Behaviour::Equivocate)].into();
        let outcome = run(&scenario, false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        assert_eq!(outcome.results, 3 * scenario.requests.len(), "seed {seed}");
    }
}

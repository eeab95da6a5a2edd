//! Keys in quorum mode, beside a node that has every duty in turn and fails in it.

use std::collections::BTreeSet;

use theta_names::Delivery;
use theta_schemes::Suite;
use theta_sim::{Asked, Behaviour, Invariant, Sabotage, Scenario, run};

use crate::setting::{catches, quiet};

const REQUESTS: u64 = 12;

fn scenario(suite: Suite, liar: Behaviour) -> Scenario {
    let mut scenario = quiet(1, suite);
    scenario.keys[0].delivery = Delivery::Quorum;
    let first = scenario.requests[0].clone();
    let asked = |number| Asked { at: 100 + 200 * number, text: format!("text {number}"), ..first.clone() };
    scenario.requests = (0..REQUESTS).map(asked).collect();
    scenario.liars.insert(3, liar);
    scenario
}

/// Of shares and combined values, it sends false ones, those of other requests, two versions, only some, or none.
#[test]
fn whoever_is_drawn_may_lie_tell_some_or_be_silent() {
    let liars = [
        Behaviour::BitFlip,
        Behaviour::Replay,
        Behaviour::Equivocate,
        Behaviour::TwoVersions,
        Behaviour::Selective,
        Behaviour::Truncate,
        Behaviour::Silent,
    ];
    for suite in [
        Suite::Sg02Ristretto255,
        Suite::Bls04MinSig,
        Suite::Cks05Bls04MinSig,
        Suite::Cks05Ristretto255,
        Suite::Cks05Ed25519,
    ] {
        for liar in liars {
            let outcome = run(&scenario(suite, liar), false);
            assert_eq!(
                (outcome.results, outcome.violation),
                (3 * usize::try_from(REQUESTS).unwrap(), None),
                "{suite}, {liar:?}"
            );
        }
    }
}

/// Where both combiners or too many makers are silent, those who stand by do the work: if nobody begins with it, some request has no result before its
/// instance ends and its client asks again.
#[test]
fn nodes_that_only_stand_by_are_caught() {
    let mut scenario = scenario(Suite::Sg02Ristretto255, Behaviour::Silent);
    (scenario.n, scenario.k) = (5, 3);
    scenario.liars.insert(4, Behaviour::Silent);
    scenario.end = 12_000;
    catches(&scenario, Sabotage::NeverHedges, Invariant::Ends);
}

/// Random scenarios have keys in quorum mode, and others of the same suites without.
#[test]
fn seeds_draw_the_delivery() {
    let keys = (0..64).flat_map(|seed| Scenario::of(seed).keys);
    let drawn: BTreeSet<(Suite, bool)> = keys.map(|key| (key.suite, key.delivery == Delivery::Quorum)).collect();
    for quorum in [true, false] {
        for suite in [Suite::Sg02Ristretto255, Suite::Cks05Ristretto255] {
            assert!(drawn.contains(&(suite, quorum)), "{drawn:?}");
        }
    }
    assert!(drawn.iter().all(|(suite, quorum)| !quorum || suite.supports(Delivery::Quorum)));
}

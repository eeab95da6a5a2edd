//! Stocks where all holders must sign (2 of 2, 3 of 3), whose presignatures come of programs of MASCOT: each signs once, whatever is killed, refreshed,
//! restored or asked of two coordinators.

use theta_schemes::Delivery;
use theta_sim::{Aim, Fault, Invariant, Observation, Planned, Sabotage, Scenario};

use super::presignatures::{all_hold, busy, every_other_time};
use crate::setting::catches;

/// The times of faults are this many milliseconds apart.
const STEP: u64 = 167;
/// Three of these are groups of two, and one is a group of three.
const RUNS: u64 = 4;

/// A busy group of k of k.
fn whole(number: u64, kept: bool) -> Scenario {
    let mut scenario = busy(number, kept);
    let k = if number % 4 == 3 { 3 } else { 2 };
    (scenario.k, scenario.n) = (k, k);
    scenario.keys[0].delivery = Delivery::DishonestMajority;
    scenario.requests.truncate(6);
    scenario
}

#[test]
fn none_signs_twice_across_a_refresh() {
    let observations = all_hold(RUNS, |number| {
        let mut scenario = whole(number, true);
        scenario.ceremonies = vec![Planned { at: 1_000 + STEP * number, aim: Aim::Refresh(0) }];
        scenario.faults = every_other_time(number, 1_100 + STEP * number);
        scenario
    });
    assert_eq!(observations.count(Observation::Activated), RUNS, "shares were renewed");
}

#[test]
fn none_signs_twice_when_a_store_is_restored() {
    let observations = all_hold(RUNS, |number| {
        let mut scenario = whole(number, true);
        let (at, copied) = (1_200 + STEP * number, Some(800 + STEP * number));
        scenario.faults = vec![Fault::SetBack { copied, at, until: at + 300, node: 2, confirmed: Some(at + 2_000) }];
        scenario
    });
    assert_eq!(observations.count(Observation::SetBack), RUNS);
}

/// Each node is asked for other requests first.
#[test]
fn none_signs_twice_for_two_coordinators() {
    all_hold(RUNS, |number| {
        let mut scenario = whole(number, false);
        for (place, asked) in (0_u64..).zip(&mut scenario.requests) {
            asked.at = 1_500 + 10 * (place / 3) + number;
            asked.later_at = [1 + u16::try_from((place + number) % u64::from(scenario.k)).unwrap()].into();
        }
        scenario
    });
}

#[test]
fn a_node_that_uses_a_presignature_of_all_twice_is_caught() {
    for number in [1, 3] {
        catches(&whole(number, false), Sabotage::SignsAgain, Invariant::NonceOnce);
    }
}

//! Presignatures of ECDSA sign once: whatever is killed, restored or refreshed in the middle.

use theta_schemes::{Delivery, Suite};
use theta_sim::{Aim, Asked, Behaviour, Fault, Invariant, Observation, Observations, Planned, Sabotage, Scenario, run};

use crate::setting::{catches, quiet};

/// The times of faults are this many milliseconds apart.
const STEP: u64 = 29;

/// Requests that come faster than stocks are filled, on a reliable network.
pub(super) fn busy(seed: u64, kept: bool) -> Scenario {
    let suite = if seed.is_multiple_of(2) { Suite::EcdsaP256 } else { Suite::EcdsaSecp256k1 };
    let mut scenario = quiet(seed, suite);
    let first = scenario.requests[0].clone();
    let asked = |number: u64| Asked { at: 800 + 150 * number, text: format!("text {number}"), ..first.clone() };
    scenario.requests = (0..12).map(asked).collect();
    scenario.kept = kept;
    scenario.end = 60_000;
    scenario
}

/// Runs scenarios of which each has something else happen at another time; returns what happened in all of them.
pub(super) fn all_hold(runs: u64, scenario: impl Fn(u64) -> Scenario) -> Observations {
    let mut observations = Observations::default();
    for number in 0..runs {
        let outcome = run(&scenario(number), false);
        assert_eq!(outcome.violation, None, "run {number}");
        observations.absorb(&outcome.observations);
    }
    assert!(observations.count(Observation::Presigned) >= 4 * runs, "stocks were used");
    assert!(observations.count(Observation::Filled) > 0, "stocks were filled");
    observations
}

/// In every other run a node loses its power at this time.
pub(super) fn every_other_time(number: u64, at: u64) -> Vec<Fault> {
    let crash = Fault::Crash { at, until: at + 300, node: 2, writes: 1_000 };
    Some(crash).filter(|_| number.is_multiple_of(2)).into_iter().collect()
}

#[test]
fn none_signs_twice_when_nodes_are_killed_at_every_step() {
    let observations = all_hold(90, |number| {
        let (mut scenario, node) = killed(number, Delivery::All, STEP);
        // Another one in the middle of its start.
        let at = 1_000 + STEP * number;
        scenario.faults.push(Fault::Crash { at, until: at + 200, node: 1 + node % 4, writes: 1_000 });
        scenario
    });
    assert!(observations.count(Observation::Crashed) >= 90);
}

#[test]
fn none_signs_twice_across_a_refresh() {
    let observations = all_hold(40, |number| {
        let mut scenario = busy(number, true);
        scenario.ceremonies = vec![Planned { at: 500 + STEP * number, aim: Aim::Refresh(0) }];
        scenario.faults = every_other_time(number, 600 + STEP * number);
        scenario
    });
    assert!(observations.count(Observation::Activated) >= 40, "shares were renewed");
}

/// Shares move to holders in another order, a lost one comes back, the key gets another version: while stocks are used, and half of the time beside a node
/// that is killed.
#[test]
fn none_signs_twice_across_any_other_ceremony() {
    let aims = |number: u64| match number % 3 {
        0 => Aim::Reshare(0, 2, vec![2, 3, 4, 1]),
        1 => Aim::Recover(0, 4),
        _ => Aim::Rotate(0),
    };
    let observations = all_hold(30, |number| {
        let mut scenario = busy(number, true);
        scenario.ceremonies = vec![Planned { at: 500 + 2 * STEP * number, aim: aims(number) }];
        scenario.keys[0].lost_by = (number % 3 == 1).then_some(4);
        scenario.faults = every_other_time(number, 600 + 2 * STEP * number);
        scenario
    });
    assert_eq!(observations.count(Observation::Activated), 20, "the shares moved, or a version was made");
    assert_eq!(observations.count(Observation::Recovered), 10, "the lost share came back");
}

#[test]
fn none_signs_twice_when_a_store_is_restored() {
    let observations = all_hold(30, |number| {
        let mut scenario = busy(number, true);
        let at = 1_000 + STEP * number;
        let copied = (!number.is_multiple_of(5)).then_some(at - 400);
        let confirmed = copied.map(|_| at + 6_000);
        scenario.faults = vec![Fault::SetBack { copied, at, until: at + 300, node: 3, confirmed }];
        scenario
    });
    assert_eq!(observations.count(Observation::SetBack), 30);
}

/// Each node is asked for other requests first: coordinators take presignatures of different owners at once.
#[test]
fn none_signs_twice_for_two_coordinators() {
    all_hold(20, |number| {
        let mut scenario = busy(number, false);
        for (place, asked) in (0_u64..).zip(&mut scenario.requests) {
            asked.at = 1_500 + 10 * (place / 4) + number;
            asked.later_at = [1 + u16::try_from((place + number) % 4).unwrap()].into();
        }
        scenario
    });
}

/// Where exactly k holders compute each signature, and all but one of them may cheat: killed in the middle, lost for a while, or with a liar among four,
/// the others sign, and nobody names an honest node.
#[test]
fn a_dishonest_majority_signs_whatever_is_killed() {
    for number in 0..24 {
        let (mut scenario, node) = killed(number, Delivery::DishonestMajority, 10 * STEP);
        if number.is_multiple_of(2) {
            scenario.liars.insert(1 + node % 4, Behaviour::BitFlip);
        }
        signs_on_demand(scenario, number);
    }
}

/// A busy group with such a key, of which one node is killed, each time so much later, and its number.
fn killed(number: u64, delivery: Delivery, step: u64) -> (Scenario, u16) {
    let mut scenario = busy(number, number.is_multiple_of(3));
    scenario.keys[0].delivery = delivery;
    let (at, node) = (300 + step * number, 1 + u16::try_from(number % 4).unwrap());
    scenario.faults = vec![Fault::Crash { at, until: at + 200, node, writes: number % 7 }];
    (scenario, node)
}

/// What is asked for first holds, and nothing is made in advance.
fn signs_on_demand(mut scenario: Scenario, number: u64) {
    scenario.requests.truncate(4);
    let outcome = run(&scenario, false);
    assert_eq!(outcome.violation, None, "run {number}");
    assert_eq!(outcome.observations.count(Observation::Presigned), 0, "nothing is made in advance");
}

/// Keys with passive security: nodes that are killed in the middle follow the protocol, and the others sign whenever there are enough of them.
#[test]
fn none_signs_twice_with_passive_security() {
    all_hold(30, |number| killed(number, Delivery::Passive, 3 * STEP).0);
    for number in 0..12 {
        signs_on_demand(killed(number, Delivery::PassiveDishonestMajority, 10 * STEP).0, number);
    }
}

#[test]
fn a_node_that_uses_a_presignature_twice_is_caught() {
    for seed in 0..4 {
        catches(&busy(seed, false), Sabotage::SignsAgain, Invariant::NonceOnce);
    }
}

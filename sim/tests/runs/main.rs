//! Thousands of seeds in which all invariants must hold, and bugs that must be caught.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking, in their helpers too"
)]

mod consents;
mod dealers;
mod distances;
mod ecdsa;
mod hosts;
mod ledger;
mod members;
mod owners;
mod quorum;
mod set_back;
mod setting;
mod thefts;

use std::env;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use theta_schemes::Suite;
use theta_sim::{Asked, Invariant, Sabotage, Scenario, run};

use crate::setting::{catches, invariant, quiet};

/// The number of seeds, however slow the machine. A seed takes 60 ms of a core in the tests' build: a minute on two idle
/// cores. `cargo xtask sim` runs more.
const SEEDS: u64 = 2_000;

pub(crate) fn seeds() -> u64 {
    let Ok(number) = env::var("THETA_SEEDS") else { return SEEDS };
    number.parse().unwrap_or_else(|_| panic!("THETA_SEEDS is not a number: {number:?}"))
}

/// Runs every seed, on all cores.
#[test]
fn all_holds_in_thousands_of_runs() {
    let (wanted, next, done, failures) = (seeds(), AtomicU64::new(0), AtomicU64::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= wanted {
                        return;
                    }
                    if let Some(violation) = run(&Scenario::of(seed), false).violation {
                        failures.lock().unwrap().push(format!("seed {seed}: {violation}"));
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{failures:#?}\nreplay with: cargo run -p theta-sim -- --trace --seed SEED");
    assert!(wanted > 0 && done.into_inner() == wanted);
}

#[test]
fn a_seed_replays_exactly() {
    for seed in [0, 1, 5, 8, 13] {
        let scenario = Scenario::of(seed);
        let [first, second] = [false, true].map(|verbose| run(&scenario, verbose));
        assert_eq!((first.trace, first.events), (second.trace, second.events), "seed {seed}");
        assert!(first.lines.is_empty() && !second.lines.is_empty());
        assert_eq!(second.lines, run(&scenario, true).lines);
    }
    let [one, other] = [1, 2].map(|seed| run(&Scenario::of(seed), false).trace);
    assert_ne!(one, other);
}

#[test]
fn a_node_without_policy_is_caught() {
    let mut scenario = quiet(1, Suite::Sg02Ristretto255);
    scenario.keys[0].refused_by = [1].into();
    catches(&scenario, Sabotage::NoPolicy, Invariant::Permitted);
}

#[test]
fn a_node_that_asks_for_no_consents_is_caught() {
    let mut scenario = quiet(1, Suite::Bls04MinSig);
    scenario.keys[0].consents = true;
    let consent = |approver| theta_sim::Consent { approver, fault: None };
    scenario.requests[0].consents = vec![consent(0), consent(2)];
    // Two approvals of one approver count once.
    scenario.requests[1].consents = vec![consent(1), consent(1)];
    let sound = run(&scenario, false);
    assert_eq!((sound.results, sound.violation), (4, None));
    catches(&scenario, Sabotage::NoConsents, Invariant::Permitted);
}

#[test]
fn a_node_without_rates_is_caught() {
    let mut scenario = quiet(1, Suite::Sg02P256);
    scenario.keys[0].rated = true;
    scenario.calm = 10_000;
    let first = scenario.requests[0].clone();
    scenario.requests = (0..6).map(|number| Asked { text: format!("text {number}"), ..first.clone() }).collect();
    let sound = run(&scenario, false);
    assert_eq!((sound.results, sound.violation), (24, None));
    catches(&scenario, Sabotage::NoRates, Invariant::Permitted);
}

/// Each suite on a reliable network, with a node that sends messages of other requests.
#[test]
fn every_suite_is_served() {
    for suite in Suite::ALL {
        let mut scenario = quiet(1, suite);
        scenario.liars.insert(3, theta_sim::Behaviour::Replay);
        let outcome = run(&scenario, false);
        assert_eq!((outcome.results, outcome.violation), (9, None), "{suite}");
    }
}

#[test]
fn a_node_that_forgets_its_slots_is_caught() {
    let mut scenario = quiet(1, Suite::Bls04MinPk);
    scenario.keys[0].slots = true;
    scenario.requests.iter_mut().for_each(|asked| asked.slot = Some(7));
    // The second message comes after the node has restarted.
    scenario.requests[1].at = 2_500;
    scenario.faults = vec![theta_sim::Fault::Crash { at: 2_000, until: 2_200, node: 1, writes: 1_000 }];
    catches(&scenario, Sabotage::ForgetsSlots, Invariant::OneMessagePerSlot);
}

/// Different messages for one slot, each to some nodes first: at most one of them may be signed.
fn raced(seed: u64, suite: Suite, texts: &[&[u16]]) -> Scenario {
    let mut scenario = quiet(seed, suite);
    scenario.keys[0].slots = true;
    let first = scenario.requests[0].clone();
    let asked = |(number, to): (usize, &&[u16])| Asked {
        text: format!("message {number}"),
        slot: Some(7),
        later_at: (1..=4).filter(|node| !to.contains(node)).collect(),
        ..first.clone()
    };
    scenario.requests = texts.iter().enumerate().map(asked).collect();
    scenario.end = 60_000;
    scenario
}

/// Two messages, each to two of four nodes of which any two sign. Before slots had certificates both were signed.
#[test]
fn two_messages_for_one_slot_are_never_both_signed() {
    for seed in 0..10 {
        let split = run(&raced(seed, Suite::Bls04MinPk, &[&[1, 2], &[3, 4]]), false);
        assert_eq!((split.results, split.violation), (0, None), "seed {seed}: void");
        let won = run(&raced(seed, Suite::FrostEd25519, &[&[1, 2, 3], &[4]]), false);
        assert_eq!((won.results, won.violation), (4, None), "seed {seed}: three of four, and the fourth follows");
    }
    let (mut none, mut all) = (0, 0);
    for seed in 0..60 {
        let outcome = run(&raced(seed, Suite::Bls04MinPk, &[&[1, 2, 3, 4], &[1, 2, 3, 4]]), false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        assert!([0, 4].contains(&outcome.results), "seed {seed}: {}", outcome.results);
        if outcome.results == 0 { none += 1 } else { all += 1 }
    }
    assert!(none > 0 && all > 0, "{none} void, {all} signed");
}

#[test]
fn liars_who_promise_twice_get_no_second_message() {
    use theta_sim::Behaviour::{PromiseAsLiked, PromiseTwice, Silent};
    for behaviour in [PromiseTwice, PromiseAsLiked, Silent] {
        for seed in 0..15 {
            for texts in
                [&[&[1, 2, 4][..], &[3, 4][..]][..], &[&[1, 4], &[2, 4], &[3, 4]], &[&[1, 2, 3, 4], &[1, 2, 3, 4]]]
            {
                let mut scenario = raced(seed, Suite::Bls04MinSig, texts);
                scenario.liars.insert(4, behaviour);
                assert_eq!(run(&scenario, false).violation, None, "{behaviour:?} {seed} {texts:?}");
            }
        }
    }
}

/// Any two of four sign, so a node that does not wait for certificates helps to sign a message without one.
#[test]
fn a_node_that_waits_for_no_certificate_is_caught() {
    let scenario = raced(1, Suite::Bls04MinPk, &[&[2, 3, 4], &[1]]);
    catches(&scenario, Sabotage::NoCertificates, Invariant::OneMessagePerSlot);
}

/// The node loses power between promise and share, and receives the other message first after its restart.
#[test]
fn a_crash_between_promise_and_share_changes_nothing() {
    for seed in 0..20 {
        let mut scenario = raced(seed, Suite::Bls04MinPk, &[&[1, 2], &[3, 4]]);
        let crash = |node| theta_sim::Fault::Crash { at: 1_002 + 3 * seed, until: 1_900, node, writes: 1_000 };
        scenario.faults = vec![crash(1), crash(3)];
        let outcome = run(&scenario, false);
        assert_eq!(outcome.violation, None, "seed {seed}");
    }
}

/// Repeated nonces are used for two messages only by chance: one seed of many shows it.
#[test]
fn a_node_that_draws_its_nonces_again_is_caught() {
    let caught = (1..60).find(|seed| {
        let mut scenario = quiet(*seed, Suite::FrostEd25519);
        scenario.requests.truncate(2);
        scenario.requests[1].at = 2_500;
        scenario.faults = vec![theta_sim::Fault::Crash { at: 2_000, until: 2_200, node: 1, writes: 1_000 }];
        assert_eq!(run(&scenario, false).violation, None);
        let broken = run(&Scenario { sabotage: Some(Sabotage::SameNonces), ..scenario }, false);
        assert!(broken.violation.is_none() || invariant(&broken) == Some(Invariant::NonceOnce), "{broken:?}");
        broken.violation.is_some()
    });
    assert!(caught.is_some());
}

#[test]
fn another_result_is_caught() {
    catches(&quiet(1, Suite::Cks05Ristretto255), Sabotage::OtherResult, Invariant::OneResult);
}

#[test]
fn a_node_that_never_answers_is_caught() {
    let mut scenario = quiet(1, Suite::Cks05Ristretto255);
    scenario.requests[0].at = 2_000;
    catches(&scenario, Sabotage::Deaf, Invariant::Ends);
}

#[test]
fn disagreement_about_a_ceremony_is_caught() {
    let mut scenario = quiet(1, Suite::Cks05Ristretto255);
    scenario.kept = true;
    scenario.ceremonies = vec![theta_sim::Planned { at: 100, aim: theta_sim::Aim::Refresh(0) }];
    let outcome = run(&scenario, false);
    assert_eq!(outcome.ceremonies, 4, "{:?}", outcome.violation);
    catches(&scenario, Sabotage::OtherOutcome, Invariant::Agreement);
}

#[test]
fn a_node_without_limits_is_caught() {
    let mut scenario = quiet(1, Suite::Cks05Ristretto255);
    let first = scenario.requests[0].clone();
    // One node with the bug and a silent majority: nothing ends, so everything is kept.
    scenario.requests = (0..40).map(|number| Asked { text: format!("text {number}"), ..first.clone() }).collect();
    scenario.requests.iter_mut().for_each(|asked| asked.later_at = [2, 3, 4].into());
    catches(&scenario, Sabotage::NoLimits, Invariant::Bounded);
}

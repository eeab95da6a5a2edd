//! Nodes whose stores were replaced by older copies, or by empty ones.

use theta_schemes::Suite;
use theta_sim::{Aim, Asked, Fault, Invariant, Observation, Planned, Sabotage, Scenario, run};

use crate::setting::{catches, invariant, quiet};

/// A slot is taken, node 1 forgets it, and another message asks for the slot.
fn forgetful(seed: u64, copied: Option<u64>, confirmed: Option<u64>) -> Scenario {
    let mut scenario = quiet(seed, Suite::Bls04MinPk);
    scenario.kept = true;
    scenario.keys[0].slots = true;
    let first = scenario.requests[0].clone();
    let asked = |at, text: &str, slot| Asked { at, text: text.to_owned(), slot: Some(slot), ..first.clone() };
    scenario.requests = vec![asked(3_000, "first", 7), asked(9_500, "second", 7)];
    scenario.faults = vec![Fault::SetBack { copied, at: 8_000, until: 8_300, node: 1, confirmed }];
    if let Some(confirmed) = confirmed {
        scenario.requests.push(asked(confirmed + 2_000, "third", 8));
    }
    scenario.end = 60_000;
    scenario
}

#[test]
fn a_store_that_was_set_back_gives_no_share_for_a_slot() {
    for seed in 0..8 {
        for copied in [Some(500), None] {
            let outcome = run(&forgetful(seed, copied, None), false);
            assert_eq!((outcome.results, outcome.violation), (4, None), "seed {seed}, {copied:?}");
            assert_eq!(outcome.observations.count(Observation::SetBack), 1);
            assert!(
                outcome.observations.count(Observation::Distrusted) > 0,
                "seed {seed}, {copied:?}: it was never asked"
            );
        }
    }
}

#[test]
fn a_person_ends_the_distrust() {
    for seed in 0..8 {
        let outcome = run(&forgetful(seed, Some(500), Some(14_000)), false);
        assert_eq!(outcome.observations.count(Observation::Confirmed), 1);
        assert!(outcome.observations.count(Observation::Distrusted) > 0);
        // All nodes have the first message, none the second, all the third.
        assert_eq!((outcome.results, outcome.violation), (8, None), "seed {seed}");
    }
}

#[test]
fn a_node_that_trusts_any_copy_is_caught() {
    catches(&forgetful(1, Some(500), None), Sabotage::TrustsItself, Invariant::OneMessagePerSlot);
}

/// The copy is of an earlier epoch: the others continue with theirs, and the node follows them.
#[test]
fn an_old_epoch_does_not_come_back() {
    for seed in 0..5 {
        let mut scenario = quiet(seed, Suite::Cks05Ristretto255);
        scenario.kept = true;
        scenario.ceremonies = vec![Planned { at: 1_000, aim: Aim::Refresh(0) }];
        scenario.faults =
            vec![Fault::SetBack { copied: Some(500), at: 8_000, until: 8_300, node: 2, confirmed: Some(16_000) }];
        scenario.requests.last_mut().unwrap().at = 9_000;
        let outcome = run(&scenario, false);
        assert_eq!((outcome.ceremonies, outcome.violation), (4, None), "seed {seed}");
        assert_eq!(outcome.observations.count(Observation::Confirmed), 1);
        // Earlier requests are answered by all nodes, later ones by those with shares of the present epoch.
        assert_eq!((outcome.results, outcome.shares), (11, 3), "seed {seed}");
    }
}

/// Two of four nodes have lost their shares of a key with k = 3: the key is lost, and that is detected.
#[test]
fn a_key_with_too_few_shares_is_caught() {
    let mut scenario = quiet(1, Suite::Cks05Ristretto255);
    (scenario.kept, scenario.k) = (true, 3);
    scenario.requests.clear();
    scenario.keys[0].lost_by = Some(4);
    assert_eq!((run(&scenario, false).shares, run(&scenario, false).violation), (3, None));
    scenario.faults = vec![Fault::SetBack { copied: None, at: 2_000, until: 2_300, node: 3, confirmed: None }];
    assert_eq!(invariant(&run(&scenario, false)), Some(Invariant::Shares));
}

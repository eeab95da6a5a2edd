//! A thief copies whole stores and records all messages.

use theta_schemes::Suite;
use theta_sim::{Aim, Observation, Outcome, Planned, Scenario, Theft, run};

use crate::setting::quiet;

/// Three refreshes of a key of 2 of 4; these nodes are stolen at these times.
fn robbed(seed: u64, thefts: &[(u64, u16)]) -> Outcome {
    let mut scenario: Scenario = quiet(seed, Suite::Cks05Ristretto255);
    scenario.kept = true;
    scenario.ceremonies = [2_000, 10_000, 18_000].into_iter().map(|at| Planned { at, aim: Aim::Refresh(0) }).collect();
    scenario.thefts = thefts.iter().map(|(at, node)| Theft { at: *at, node: *node }).collect();
    scenario.end = 60_000;
    let outcome = run(&scenario, false);
    assert_eq!((outcome.ceremonies, &outcome.violation), (12, &None), "seed {seed}");
    assert_eq!(outcome.observations.count(Observation::Stolen), thefts.len() as u64);
    outcome
}

/// The thief steals another node in each epoch, at rest: it has shares of four epochs, and no key.
#[test]
fn one_node_stolen_in_every_epoch_tells_nothing() {
    for seed in 0..4 {
        let outcome = robbed(seed, &[(1_000, 1), (8_000, 2), (16_000, 3), (26_000, 4)]);
        assert_eq!(outcome.observations.count(Observation::EpochsRobbed), 1, "seed {seed}");
        assert_eq!(outcome.observations.count(Observation::KeyCombined), 0, "seed {seed}");
    }
}

/// One theft during the first refresh, which gives the shares of both epochs, and one in each later epoch.
#[test]
fn a_node_stolen_in_a_ceremony_counts_for_two_epochs() {
    let (mut meanwhile, mut epochs) = (0, 0);
    for seed in 0..16 {
        let outcome = robbed(seed, &[(2_900 + 40 * seed, 2), (16_000, 3), (26_000, 1)]);
        assert_eq!(outcome.observations.count(Observation::KeyCombined), 0, "seed {seed}");
        meanwhile += outcome.observations.count(Observation::StolenInCeremony);
        epochs += outcome.observations.count(Observation::EpochsRobbed);
    }
    assert!(meanwhile > 0 && epochs == 16, "{meanwhile} stolen while it ran");
}

/// With one theft more in an epoch than allowed the thief has the key: it does find the key if there is one.
#[test]
fn two_nodes_stolen_in_one_epoch_have_the_key() {
    for seed in 0..3 {
        let outcome = robbed(seed, &[(1_000, 1), (8_000, 2), (8_100, 3), (26_000, 4)]);
        assert_eq!(outcome.observations.count(Observation::KeyCombined), 1, "seed {seed}");
    }
}

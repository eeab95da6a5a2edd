//! Dealers that deal to some members only.

use theta_schemes::Suite;
use theta_sim::{Aim, Behaviour, CeremonyLie, Observation, Outcome, Planned, run};

use crate::setting::quiet;

/// Node 1 lies. The first ceremony succeeds, and all honest members hold right shares in the end.
fn dealt(seed: u64, aim: &Aim, lie: CeremonyLie) -> Outcome {
    let mut scenario = quiet(seed, Suite::Cks05Ristretto255);
    scenario.kept = true;
    scenario.ceremonies = vec![Planned { at: 100, aim: aim.clone() }];
    scenario.liars.insert(1, Behaviour::Ceremony(lie));
    let outcome = run(&scenario, false);
    let keys = if matches!(aim, Aim::Create(_) | Aim::Rotate(_)) { 2 } else { 1 };
    assert_eq!((outcome.ceremonies, &outcome.violation), (3, &None), "seed {seed}, {aim:?}, {lie:?}");
    assert_eq!(outcome.shares, 3 * keys, "seed {seed}, {aim:?}, {lie:?}");
    assert!(outcome.observations.count(Observation::Lied) > 0, "seed {seed}, {aim:?}, {lie:?}");
    outcome
}

fn aims() -> [Aim; 4] {
    [Aim::Create(Suite::Cks05P256), Aim::Refresh(0), Aim::Rotate(0), Aim::Reshare(0, 2, vec![4, 3, 1, 2])]
}

/// Nobody can prove that the member's key did not come late, so the dealer is not accused; but it achieves nothing.
#[test]
fn who_is_left_out_has_its_share_all_the_same() {
    for seed in 0..4 {
        for aim in aims() {
            for position in 1..3 {
                let outcome = dealt(seed, &aim, CeremonyLie::left_out((2, 4), position));
                assert!(outcome.accused.is_empty(), "seed {seed}, {aim:?}: {:?}", outcome.accused);
            }
        }
    }
}

#[test]
fn who_deals_falsely_to_one_member_is_named() {
    for seed in 0..4 {
        for aim in aims() {
            let outcome = dealt(seed, &aim, CeremonyLie::false_dealing());
            assert_eq!(outcome.accused, [1].into(), "seed {seed}, {aim:?}");
        }
    }
}

#[test]
fn who_deals_to_some_members_only_keeps_nobody_from_its_share() {
    for seed in 0..4 {
        for aim in aims() {
            dealt(seed, &aim, CeremonyLie::withheld_dealing());
        }
    }
}

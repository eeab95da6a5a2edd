//! Owners of lost shares.

use theta_schemes::Suite;
use theta_sim::{Aim, Behaviour, CeremonyLie, Observation, Planned, run};

use crate::setting::quiet;

/// The owner of a lost share asks each helper for another list of masks. No mask hides two answers, and it learns nothing.
#[test]
fn an_owner_that_asks_each_for_something_else_gets_nothing() {
    for seed in 1..4 {
        let mut scenario = quiet(seed, Suite::Cks05Ristretto255);
        scenario.kept = true;
        scenario.n = 5;
        scenario.keys[0].lost_by = Some(3);
        scenario.ceremonies = vec![Planned { at: 100, aim: Aim::Recover(0, 3) }];
        let honest = run(&scenario, false);
        assert_eq!((honest.ceremonies, honest.violation), (5, None), "seed {seed}");
        scenario.liars.insert(3, Behaviour::Ceremony(CeremonyLie::divided_request()));
        // The helpers give up after 960 ticks.
        scenario.end = 330_000;
        let outcome = run(&scenario, false);
        assert!(outcome.observations.count(Observation::Lied) > 0, "seed {seed}");
        assert_eq!((outcome.ceremonies, outcome.violation), (0, None), "seed {seed}");
    }
}

//! Groups whose messages go through hosts that nobody trusts.

mod chain;

use theta_sim::{Observation, Scenario, run};

#[test]
fn all_holds_through_hosts_that_lie_and_the_seed_decides() {
    let hosted = |seed| Scenario { hosts: true, ..Scenario::of(seed) };
    let mut forged = 0;
    for seed in 0..30 {
        let outcome = run(&hosted(seed), false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        forged += outcome.observations.count(Observation::Forged);
        if seed < 3 {
            assert_eq!(outcome.trace, run(&hosted(seed), false).trace, "seed {seed} again");
            assert_ne!(outcome.trace, run(&Scenario::of(seed), false).trace, "seed {seed}, without hosts");
        }
    }
    assert!(forged > 1_000, "{forged} false frames");
}

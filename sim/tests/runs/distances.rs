//! Groups whose nodes are as far from each other as a profile says.

use theta_sim::{Distances, Scenario, Weather, run};
use theta_wan::Profile;

#[test]
fn all_holds_between_continents_and_the_seed_decides() {
    let far = |seed| {
        let drawn = Scenario::of(seed);
        let weather = Weather { loss: 0, ..drawn.weather };
        let profile = Profile::find("continents").unwrap();
        Scenario { distances: Some(Distances::new(profile)), weather, ..drawn }
    };
    for seed in 0..30 {
        let outcome = run(&far(seed), false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        if seed < 3 {
            assert_eq!(outcome.trace, run(&far(seed), false).trace, "seed {seed} again");
            assert_ne!(
                outcome.trace,
                run(&Scenario { distances: None, ..far(seed) }, false).trace,
                "seed {seed}, near"
            );
        }
    }
}

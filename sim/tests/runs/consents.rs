//! Requests and changes are sent again.

use theta_names::KeyState;
use theta_schemes::Suite;
use theta_sim::{Aim, Observation, Planned, StateWish, run};

use crate::setting::quiet;

/// One more ceremony of a version than nodes remember reports of: afterwards only the record of used requests is left.
const FORGETFUL: u64 = 17;

#[test]
fn what_is_sent_again_does_nothing() {
    let mut scenario = quiet(1, Suite::Cks05Ristretto255);
    scenario.kept = true;
    scenario.keys.push(quiet(1, Suite::Sg02Ristretto255).keys.remove(0));
    scenario.requests = Vec::new();
    scenario.ceremonies = vec![Planned { at: 100, aim: Aim::Rotate(0) }];
    let refresh = |number| Planned { at: 4_000 * (1 + number), aim: Aim::Refresh(0) };
    scenario.ceremonies.extend((0..FORGETFUL).map(refresh));
    let wish = |(number, state)| StateWish { at: 200 + 2_000 * number, key: 1, state };
    scenario.changes = (0_u64..).zip([KeyState::Disabled, KeyState::Active, KeyState::Disabled]).map(wish).collect();
    scenario.again_from = Some(0);
    scenario.end = 150_000;
    let outcome = run(&scenario, false);
    assert_eq!(outcome.violation, None);
    assert_eq!(outcome.ceremonies, 4 * (1 + 17), "each request holds one ceremony at each of four nodes");
    for observation in [Observation::AskedAgain, Observation::UsedUp, Observation::ChangedAgain, Observation::OutOfDate]
    {
        assert!(outcome.observations.count(observation) > 0, "{observation:?}");
    }
}

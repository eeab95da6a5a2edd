//! Scenarios from which tests start.

use theta_schemes::Suite;
use theta_sim::{Asked, HeldKey, Invariant, Outcome, Sabotage, Scenario, Weather, run};

/// Four nodes with k = 2, a reliable network, and a few requests.
pub(crate) fn quiet(seed: u64, suite: Suite) -> Scenario {
    let key = HeldKey {
        suite,
        delivery: Default::default(),
        refused_by: Default::default(),
        slots: false,
        consents: false,
        rated: false,
        lost_by: None,
    };
    let asked = |number: u64| Asked {
        at: 100 + 400 * number,
        key: 0,
        text: format!("text {number}"),
        slot: None,
        later_at: Default::default(),
        consents: Vec::new(),
        bare_at: Default::default(),
        hashed: false,
    };
    Scenario {
        n: 4,
        k: 2,
        kept: false,
        keys: vec![key],
        requests: (0..3).map(asked).collect(),
        ceremonies: Vec::new(),
        changes: Vec::new(),
        again_from: None,
        thefts: Vec::new(),
        weather: Weather { delay: 20, loss: 0, duplicates: 0 },
        faults: Vec::new(),
        liars: Default::default(),
        calm: 4_000,
        end: 30_000,
        sabotage: None,
        ..Scenario::of(seed)
    }
}

pub(crate) fn invariant(outcome: &Outcome) -> Option<Invariant> {
    outcome.violation.as_ref().map(|violation| violation.invariant)
}

/// Checks that the scenario holds, and that with the bug this invariant breaks.
pub(crate) fn catches(scenario: &Scenario, sabotage: Sabotage, expected: Invariant) {
    let sound = run(scenario, false);
    assert_eq!(sound.violation, None, "without {sabotage:?}");
    let broken = run(&Scenario { sabotage: Some(sabotage), ..scenario.clone() }, false);
    assert_eq!(invariant(&broken), Some(expected), "{sabotage:?}: {:?}", broken.violation);
}

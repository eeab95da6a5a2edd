//! A node is killed at a step of its own, one run for each step: presignatures sign once, and whatever was asked for is signed.

use std::env;

use theta_schemes::Delivery;
use theta_sim::{Fault, Observation, Scenario, Step, run};

use super::presignatures::busy;

/// Four requests, two of them at once, while stocks are filled and used.
fn brief(delivery: Delivery, (k, n): (u16, u16), kept: bool) -> Scenario {
    let mut scenario = busy(1, kept);
    (scenario.k, scenario.n) = (k, n);
    scenario.keys[0].delivery = delivery;
    scenario.requests.truncate(4);
    for (at, asked) in [1_200, 1_210, 1_900, 1_910].into_iter().zip(&mut scenario.requests) {
        asked.at = at;
    }
    scenario
}

/// How far the steps are apart after which nodes are killed where programs are slow; `THETA_STEPS=1` tries each, in minutes.
fn apart(steps: usize) -> usize {
    let Ok(number) = env::var("THETA_STEPS") else { return steps };
    number.parse().unwrap_or_else(|_| panic!("THETA_STEPS is not a number: {number:?}"))
}

/// Kills a node after each of these steps, until it takes no more; each node in turn.
fn killed(step: fn(u64) -> Step, apart: usize, at_least: u64, scenario: &Scenario) {
    let (mut runs, mut used) = (0, 0);
    for number in (1..).step_by(apart) {
        let node = 1 + u16::try_from(runs % u64::from(scenario.n)).unwrap();
        let faults = vec![Fault::Kill { node, step: step(number), pause: 200 }];
        let scenario = Scenario { faults, ..scenario.clone() };
        let outcome = run(&scenario, false);
        assert_eq!(outcome.violation, None, "node {node} after step {number}");
        let all = scenario.requests.len() * usize::from(scenario.n);
        assert_eq!(outcome.results, all, "node {node} after step {number}");
        if outcome.observations.count(Observation::Crashed) == 0 {
            break;
        }
        runs += 1;
        used += outcome.observations.count(Observation::Presigned);
    }
    assert!(runs >= at_least, "{runs} runs");
    assert!(used >= 2 * runs, "stocks were used: {used} in {runs} runs");
}

#[test]
fn none_signs_twice_whatever_message_was_the_last() {
    killed(Step::Sent, 1, 200, &brief(Delivery::All, (2, 3), false));
    killed(Step::Sent, 1, 40, &brief(Delivery::Passive, (2, 3), false));
}

/// The node's store has the record of what is used up in groups of even size, and of the ceremonies.
#[test]
fn none_signs_twice_whatever_write_was_the_last() {
    killed(Step::Written, 1, 30, &brief(Delivery::All, (2, 4), true));
}

/// The same where all must sign.
#[test]
fn none_signs_twice_of_two_of_two_whatever_step_was_the_last() {
    let delivery = Delivery::DishonestMajority;
    killed(Step::Sent, apart(9), 15, &brief(delivery, (2, 2), false));
    killed(Step::Written, apart(5), 10, &brief(delivery, (2, 2), true));
}

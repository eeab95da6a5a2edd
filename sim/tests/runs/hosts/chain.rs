//! Groups whose hosts have a chain: signing rules follow its order.

use std::collections::BTreeSet;

use theta_schemes::Suite;
use theta_sim::{Asked, Behaviour, Chain, Invariant, Observation, Sabotage, Scenario, run};

use crate::setting::{catches, quiet};

/// Two messages for one slot at once; half of the nodes hear of one first, half of the other.
fn race(seed: u64) -> Scenario {
    let mut scenario = quiet(seed, Suite::Bls04MinPk);
    scenario.keys[0].slots = true;
    let asked = |text: &str, later: [u16; 2]| Asked {
        text: text.to_owned(),
        slot: Some(7),
        later_at: BTreeSet::from(later),
        ..scenario.requests[0].clone()
    };
    scenario.requests = vec![asked("one", [1, 2]), asked("other", [3, 4])];
    scenario.chain = Some(Chain { interval: 300, halt: 0..0, forked: BTreeSet::new() });
    scenario
}

#[test]
fn all_holds_with_a_chain_and_the_seed_decides() {
    let (mut waited, mut lost, mut forks, mut halts) = (0, 0, 0, 0);
    for seed in 0..120 {
        let scenario = Scenario::of(seed).with_chain();
        let outcome = run(&scenario, false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        waited += outcome.observations.count(Observation::RaceWaited);
        lost += outcome.observations.count(Observation::RaceLost);
        let chain = scenario.chain.as_ref().unwrap();
        forks += u32::from(!chain.forked.is_empty());
        halts += u32::from(!chain.halt.is_empty());
        if seed < 3 {
            assert_eq!(outcome.trace, run(&scenario, false).trace, "seed {seed} again");
        }
    }
    assert!(waited > 300 && lost > 10, "{waited} requests waited for the order, {lost} came second in it");
    assert!(forks > 10 && halts > 30, "{forks} chains forked, {halts} stood still");
}

#[test]
fn no_race_makes_a_slot_void_where_there_is_an_order() {
    let mut lost = 0;
    for seed in 0..20 {
        let outcome = run(&race(seed), false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        assert_eq!(outcome.results, 4, "one of the two messages is signed, and all nodes have it");
        lost += outcome.observations.count(Observation::RaceLost);
    }
    assert!(lost > 10, "the other one is refused by those that hear of it in time: {lost}");
    catches(&race(1), Sabotage::NoOrder, Invariant::Ends);
}

#[test]
fn a_liar_that_claims_for_everything_decides_nothing() {
    for seed in 0..20 {
        let mut scenario = race(seed);
        scenario.liars.insert(4, Behaviour::Silent);
        let outcome = run(&scenario, false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        assert!(outcome.results >= 3, "all honest nodes have a signature");
    }
}

#[test]
fn a_chain_that_forks_gives_no_slot_two_messages() {
    let mut signed = 0;
    for seed in 0..20 {
        let mut scenario = race(seed);
        scenario.chain = Some(Chain { interval: 300, halt: 0..0, forked: BTreeSet::from([2, 3]) });
        let outcome = run(&scenario, false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        signed += outcome.results;
    }
    assert!(signed < 20 * 4, "some slots are void, as they are without an order");
}

#[test]
fn a_chain_that_stands_still_and_goes_on_loses_nothing() {
    let mut scenario = race(3);
    scenario.chain = Some(Chain { interval: 300, halt: 0..9_000, forked: BTreeSet::new() });
    let outcome = run(&scenario, false);
    assert_eq!((outcome.violation, outcome.results), (None, 4));
}

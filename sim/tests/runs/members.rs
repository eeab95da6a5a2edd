//! Members that get other machines and new cards: the machine before is nobody's any more, whoever runs it.

use theta_schemes::Suite;
use theta_sim::{
    Aim, Arrival, Departure, Exchange, Fate, Invariant, LedgerLie, Observation, Planned, Renewal, Sabotage, Scenario,
    Word, run,
};

use crate::setting::{invariant, quiet};

/// Four members; the machine of one is lost while a ceremony of all may run, and another one recovers its share.
fn with_exchange(seed: u64, fate: Fate) -> Scenario {
    let mut scenario = quiet(seed, Suite::Cks05Ristretto255);
    let node = 1 + u16::try_from(seed % 4).unwrap();
    scenario.kept = true;
    scenario.requests.clear();
    scenario.keys[0].lost_by = Some(node);
    scenario.exchanges = vec![Exchange { node, at: 1_800, until: 2_000 + 300 * seed, by: Word::Operator, fate }];
    let create = Planned { at: 1_500, aim: Aim::Create(Suite::Sg02Ristretto255) };
    scenario.ceremonies = vec![create, Planned { at: 8_000, aim: Aim::Recover(0, node) }];
    scenario
}

#[test]
fn another_machine_takes_the_place_and_recovers_its_share() {
    for seed in 0..4 {
        let outcome = run(&with_exchange(seed, Fate::Gone), false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        let happened = |observation| outcome.observations.count(observation);
        let all = [Observation::Replaced, Observation::Recovered, Observation::ShareRegained].map(happened);
        assert_eq!(all, [1, 1, 1], "seed {seed}");
    }
}

/// The machine was only said to be gone, and goes on with its keys and its store: before the group has replaced it, and afterwards.
#[test]
fn a_machine_that_comes_back_counts_no_more() {
    for seed in 0..4 {
        for back in [1_900, 12_000] {
            let outcome = run(&with_exchange(seed, Fate::Back(back)), false);
            assert_eq!(outcome.violation, None, "seed {seed}");
            assert_eq!(outcome.observations.count(Observation::Replaced), 1, "seed {seed}");
            assert!(outcome.observations.count(Observation::Unseated) > 0, "seed {seed}: it never spoke");
        }
    }
}

#[test]
fn a_thief_with_the_old_keys_is_believed_by_nobody() {
    let mut refused = 0;
    for seed in 0..6 {
        let outcome = run(&with_exchange(seed, Fate::Stolen(1_900, LedgerLie::FalseCertificates)), false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        assert_eq!(outcome.observations.count(Observation::Replaced), 1, "seed {seed}");
        refused += outcome.observations.count(Observation::FalseAnswer);
    }
    assert!(refused > 0, "the thief told no client anything");
}

#[test]
fn a_client_that_looks_at_no_votes_believes_the_thief_and_is_caught() {
    let caught = (0..20).any(|seed| {
        let sound = with_exchange(seed, Fate::Stolen(1_900, LedgerLie::FalseCertificates));
        let broken = run(&Scenario { sabotage: Some(Sabotage::Credulous), ..sound }, false);
        matches!(invariant(&broken), Some(Invariant::Certified | Invariant::Ledger))
    });
    assert!(caught);
}

#[test]
fn a_member_renews_its_card_while_another_one_is_replaced() {
    for seed in 0..4 {
        let mut scenario = with_exchange(seed, Fate::Gone);
        let node = 1 + scenario.exchanges[0].node % 4;
        scenario.renewals = vec![Renewal { node, at: 1_900 }];
        let outcome = run(&scenario, false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        let counts =
            [Observation::Replaced, Observation::Renewed].map(|observation| outcome.observations.count(observation));
        assert_eq!(counts, [1, 1], "seed {seed}");
    }
}

/// Two of three: without the machine that is lost nothing can be decided, its own replacement included.
fn of_three(seed: u64, (by, fate): (Word, Fate)) -> Scenario {
    let mut scenario = with_exchange(seed, fate);
    (scenario.n, scenario.end) = (3, 300_000);
    let node = 1 + u16::try_from(seed % 3).unwrap();
    scenario.keys[0].lost_by = Some(node);
    scenario.exchanges = vec![Exchange { node, at: 1_800, until: 2_400 + 300 * seed, by, fate }];
    scenario.ceremonies = vec![Planned { at: 8_000, aim: Aim::Recover(0, node) }];
    scenario
}

#[test]
fn in_a_small_group_a_warrant_lets_another_machine_vote() {
    for seed in 0..3 {
        let outcome = run(&of_three(seed, (Word::Warrant, Fate::Gone)), false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        let happened = |observation| outcome.observations.count(observation);
        let all = [Observation::Warranted, Observation::Replaced, Observation::Recovered, Observation::ShareRegained]
            .map(happened);
        assert_eq!(all, [1, 1, 1, 1], "seed {seed}");
        assert!(happened(Observation::ByWarrant) > 0, "seed {seed}");
    }
}

/// The same without one: what the warrant is for.
#[test]
fn in_a_small_group_the_operators_word_alone_decides_nothing() {
    let outcome = run(&of_three(0, (Word::Operator, Fate::Gone)), false);
    assert_eq!((outcome.violation, outcome.observations.count(Observation::Replaced)), (None, 0));
}

#[test]
fn a_machine_that_lives_after_all_does_no_harm_under_a_warrant() {
    for seed in 0..3 {
        for fate in [Fate::Back(1_900), Fate::Back(12_000), Fate::Stolen(1_900, LedgerLie::TwoFaced)] {
            let outcome = run(&of_three(seed, (Word::Warrant, fate)), false);
            assert_eq!(outcome.violation, None, "seed {seed}, {fate:?}");
            assert_eq!(outcome.observations.count(Observation::Replaced), 1, "seed {seed}, {fate:?}");
        }
    }
}

/// Three of five: a second machine is lost before the first is replaced, and the operators sign for both.
#[test]
fn two_machines_are_stood_in_for_by_two_warrants() {
    for seed in 0..3 {
        let mut scenario = of_three(seed, (Word::Warrant, Fate::Gone));
        (scenario.n, scenario.k) = (5, 3);
        let lost = |node, at| Exchange { node, at, until: at + 200, by: Word::Warrant, fate: Fate::Gone };
        scenario.keys[0].lost_by = Some(1);
        scenario.exchanges = vec![lost(1, 1_800), lost(2, 1_900)];
        scenario.ceremonies = vec![Planned { at: 8_000, aim: Aim::Recover(0, 1) }];
        let outcome = run(&scenario, false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        let happened = |observation| outcome.observations.count(observation);
        assert_eq!([Observation::Warranted, Observation::Replaced].map(happened), [2, 2], "seed {seed}");
    }
}

/// Somebody joins, the shares move to it and to all but one of the others, and that one leaves.
#[test]
fn one_comes_and_another_goes() {
    for seed in 0..4 {
        let mut scenario = with_exchange(seed, Fate::Gone);
        let leaver = 1 + u16::try_from(seed % 4).unwrap();
        scenario.exchanges.clear();
        scenario.keys[0].lost_by = None;
        scenario.arrivals = vec![Arrival { at: 1_500 }];
        scenario.departures = vec![Departure { node: leaver, at: 1_000 }];
        let holders = (1..=5).filter(|node| *node != leaver).collect();
        scenario.ceremonies = vec![Planned { at: 2_000, aim: Aim::Reshare(0, 2, holders) }];
        let outcome = run(&scenario, false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        let happened = |observation| outcome.observations.count(observation);
        assert_eq!(
            [Observation::Joined, Observation::Activated, Observation::Left].map(happened),
            [1, 1, 1],
            "seed {seed}"
        );
        assert_eq!(outcome.shares, 4, "seed {seed}");
    }
}

/// Who holds a share does not leave.
#[test]
fn a_holder_stays() {
    let mut scenario = with_exchange(0, Fate::Gone);
    scenario.exchanges.clear();
    scenario.keys[0].lost_by = None;
    scenario.ceremonies.clear();
    scenario.departures = vec![Departure { node: 2, at: 1_000 }];
    let outcome = run(&scenario, false);
    assert_eq!((outcome.violation, outcome.observations.count(Observation::Left)), (None, 0));
}

//! Everybody follows the protocol, though some are silent or restart.

use std::collections::BTreeSet;
use std::sync::Arc;

use theta_protocols::ecdsa::{PROGRAM, SHARE};
use theta_rounds::simulator::Behaviour;
use theta_schemes::Suite;

use super::support::{Group, LEVEL, Liar, Recorder, Slots, id};

#[test]
fn a_group_signs_on_demand() {
    for suite in [Suite::EcdsaP256, Suite::EcdsaSecp256k1] {
        for (k, n) in [(2, 3), (3, 5), (2, 5), (4, 7)] {
            let group = Group::new(suite, k, n);
            group.check(b"m", &group.run(b"m", 1, Vec::new())).unwrap();
            assert!(group.ready().iter().all(|ready| *ready == 0), "nothing is made in advance");
        }
    }
}

/// What all parties send in a run, by slot.
fn sent(group: &Group, message: &[u8], seed: u64) -> Vec<(u16, theta_rounds::Slot)> {
    let slots = Slots::default();
    let spies: Vec<Liar> = (1..=group.n).map(|number| (number, recorder(number, &slots))).collect();
    group.run(message, seed, spies);
    Arc::try_unwrap(slots).unwrap().into_inner().unwrap()
}

fn recorder(number: u16, slots: &Slots) -> Box<dyn theta_rounds::simulator::Adversary> {
    Box::new(Recorder(number, Arc::clone(slots)))
}

#[test]
fn a_signature_with_a_presignature_is_one_share_of_k_holders() {
    for (k, n) in [(2, 3), (3, 5)] {
        let group = Group::warm(Suite::EcdsaP256, k, n);
        assert_eq!(group.ready(), vec![LEVEL; n.into()]);
        for turn in 0..3_u8 {
            let sent = sent(&group, &[turn], turn.into());
            let shares: BTreeSet<u16> = sent.iter().filter(|(_, slot)| slot.kind == SHARE).map(|(by, _)| *by).collect();
            assert_eq!(shares.len(), usize::from(k));
            assert!(sent.iter().all(|(_, slot)| slot.kind < PROGRAM), "no program runs");
        }
        assert_eq!(group.ready(), vec![LEVEL - 3; n.into()], "each is used up at all holders");
    }
}

#[test]
fn a_stock_that_runs_low_is_filled_when_the_signature_is_there() {
    let group = Group::warm(Suite::EcdsaP256, 2, 3);
    group.check(b"one", &group.run(b"one", 1, Vec::new())).unwrap();
    assert_eq!(group.follow(1), 3);
    assert_eq!(group.ready(), [2 * LEVEL - 1; 3]);
    group.check(b"two", &group.run(b"two", 1, Vec::new())).unwrap();
    assert_eq!(group.follow(1), 0, "it is full enough");
}

/// One of three is silent: what was made in advance still serves, by the pairs of which it is none.
#[test]
fn presignatures_serve_without_a_silent_holder() {
    for silent in 1..=3 {
        let group = Group::warm(Suite::EcdsaP256, 2, 3);
        for turn in 0..2_u8 {
            let report = group.run(&[turn], turn.into(), vec![(silent, Box::new(Behaviour::Silent))]);
            group.check(&[turn], &report).unwrap();
        }
    }
}

/// With 3t + 1 holders t silent ones do not keep the others from making presignatures.
#[test]
fn a_third_may_be_silent_from_the_start() {
    for (k, n, silent) in [(2, 4, vec![1]), (2, 5, vec![3, 4]), (3, 7, vec![2, 5])] {
        let mut group = Group::cold(Suite::EcdsaSecp256k1, k, n);
        group.ticks = 40;
        for turn in 0..3_u8 {
            let liars = silent.iter().map(|number| (*number, Box::new(Behaviour::Silent) as Box<_>)).collect();
            group
                .check(&[turn], &group.run(&[turn], turn.into(), liars))
                .unwrap_or_else(|error| panic!("{k} of {n}: {error}"));
        }
    }
}

#[test]
fn a_restarted_holder_is_no_culprit() {
    for seed in 0..20 {
        let group = Group::cold(Suite::EcdsaP256, 2, 4);
        let mut simulator = group.simulator(seed);
        for number in 1..=4 {
            simulator.honest(id(number), group.machine(number, b"m"));
        }
        simulator.restart(30 * seed, id(2), group.restarted(2, b"m"));
        group.check(b"m", &simulator.run()).unwrap();
    }
}

/// Many requests at once, each with its own coordinator: no presignature serves two.
#[test]
fn results_of_many_requests_are_all_different() {
    let group = Group::warm(Suite::EcdsaP256, 2, 3);
    let mut seen = BTreeSet::new();
    for turn in 0..20_u8 {
        let report = group.run(&[turn], turn.into(), Vec::new());
        group.check(&[turn], &report).unwrap();
        let party = report.parties.values().next().unwrap();
        let r = party.result.as_ref().unwrap().as_ref().unwrap().result.expose()[..32].to_vec();
        assert!(seen.insert(r), "an R that was there before");
        group.follow(turn.into());
    }
}

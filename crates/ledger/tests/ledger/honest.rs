//! Everybody keeps to the rules; the network does not.

use theta_ledger::{Action, DropReason, Refusal};

use crate::net::{Net, node};
use crate::states::{activated, create, set};

#[test]
fn all_decide_the_same_at_once() {
    for n in 1..=7 {
        let mut net = Net::new(n, n.div_ceil(3), u64::from(n));
        net.tick();
        let holders: Vec<u16> = (1..=n).collect();
        net.ask_all(&create("a", 1, 1, &holders));
        assert!(net.run_until(12, |net| net.all_at(1)), "{n} nodes");
        net.ask_all(&activated(1, 1, n, 5));
        assert!(net.run_until(12, |net| net.all_at(2)), "{n} nodes");
        net.agree();
    }
}

#[test]
fn what_as_many_as_it_takes_were_asked_all_decide_if_they_agree() {
    let mut net = Net::new(4, 2, 1);
    let action = create("a", 1, 2, &[1, 2, 3]);
    net.grant(1..=4, &action);
    net.ask([3], &action);
    assert!(!net.run_until(40, |net| net.all_at(1)), "one of them may lie");
    net.ask([4], &action);
    assert!(net.run_until(40, |net| net.all_at(1)));
}

#[test]
fn what_too_few_agree_to_is_given_up_and_said() {
    let mut net = Net::new(4, 2, 2);
    let action = create("a", 1, 2, &[1, 2, 3]);
    net.ask([1, 2], &action);
    assert!(net.run_until(300, |net| {
        [1, 2].iter().all(|number| net.nodes[&node(*number)].dropped == [(action.clone(), DropReason::TooFew)])
    }));
    assert!(net.all_at(0));
    // And the ledger goes on.
    net.ask_all(&create("b", 2, 2, &[1, 2, 3]));
    assert!(net.run_until(60, |net| net.all_at(1)));
}

#[test]
fn of_two_that_exclude_each_other_one_is_decided_everywhere() {
    for seed in 0..20 {
        let mut net = Net::new(4, 2, seed);
        let (one, other) = (create("a", 1, 2, &[1, 2, 3]), create("a", 2, 2, &[2, 3, 4]));
        net.grant(1..=4, &one);
        net.grant(1..=4, &other);
        net.ask([1, 2], &one);
        net.ask([3, 4], &other);
        assert!(net.run_until(60, |net| net.all_at(1)), "seed {seed}");
        let decided = net.nodes[&node(1)].disk.entries[0].entry.action.clone();
        let refused = if decided == one { other } else { one };
        assert!(net.run_until(300, |net| net.nodes.values().any(|node| {
            let exists = DropReason::Refused(Refusal::Exists("a".parse().unwrap()));
            node.dropped.contains(&(refused.clone(), exists))
        })));
    }
}

#[test]
fn a_node_that_was_away_reads_what_was_decided() {
    let mut net = Net::new(4, 2, 3);
    net.stop(node(4));
    net.ask([1, 2, 3], &create("a", 1, 2, &[1, 2, 3]));
    assert!(net.run_until(60, |net| net.all_at(1)));
    net.ask([1, 2, 3], &activated(1, 2, 3, 5));
    assert!(net.run_until(60, |net| net.all_at(2)));
    for generation in 1..=40 {
        let state = if generation % 2 == 1 { theta_names::KeyState::Disabled } else { theta_names::KeyState::Active };
        net.ask([1, 2, 3], &set("a", None, state, generation));
        assert!(net.run_until(60, |net| net.all_at(2 + generation)), "{generation}");
    }
    net.start(node(4));
    assert!(net.run_until(20, |net| net.all_at(42)));
}

#[test]
fn a_minority_decides_nothing_and_loses_nothing() {
    let mut net = Net::new(4, 2, 4);
    net.cut = [node(1), node(2)].into();
    let action = create("a", 1, 2, &[1, 2, 3]);
    net.ask_all(&action);
    assert!(!net.run_until(100, |net| net.nodes.values().any(|node| !node.disk.entries.is_empty())));
    net.cut.clear();
    assert!(net.run_until(60, |net| net.all_at(1)));
}

/// Two of four have voted: it may be decided as soon as a third one comes, whatever they want by then.
#[test]
fn a_node_knows_for_which_actions_it_has_voted() {
    let mut net = Net::new(4, 2, 3);
    for away in [3, 4] {
        net.stop(node(away));
    }
    net.tick();
    let (voted, other) = (create("a", 1, 2, &[1, 2, 3, 4]), create("b", 1, 2, &[1, 2, 3, 4]));
    net.ask([1, 2], &voted);
    net.run_until(12, |_| false);
    let speaks = |net: &Net, action: &Action| {
        [1, 2].map(|number| net.nodes[&node(number)].replica.as_ref().unwrap().speaks_for(&action.digest()))
    };
    assert_eq!((speaks(&net, &voted), speaks(&net, &other)), ([true; 2], [false; 2]));
    for away in [3, 4] {
        net.start(node(away));
    }
    net.grant(1..=4, &voted);
    assert!(net.run_until(60, |net| net.all_at(1)));
    assert_eq!(speaks(&net, &voted), [false; 2], "it is decided");
}

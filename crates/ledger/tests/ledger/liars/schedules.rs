//! Attacks that once came through: what one liar, one crash or one restart could do to everybody.

use std::cell::RefCell;
use std::rc::Rc;

use theta_agreement::VoteKind;
use theta_ledger::{Action, AdoptedKey, DropReason, Input, LedgerState, Refusal};
use theta_names::{Delivery, Epoch, KeyState, Version};
use theta_statements::KeyChange;

use crate::liars::{Votes, read_votes, write_votes};
use crate::net::{Liar, Net, genesis, node};
use crate::states::{activated, advance, certified, change, create, public, set};

/// Passes on only the votes for which it holds; and drops all else.
fn choosy(keep: impl Fn(u16, VoteKind, u32, u64) -> bool + 'static) -> Liar {
    Box::new(move |to, bytes, _| {
        let Some(votes) = read_votes(&bytes) else { return Vec::new() };
        let Votes { height, votes } = votes;
        let votes: Vec<_> = votes.into_iter().filter(|(b, _, _)| keep(to.get(), b.kind, b.view, height)).collect();
        if votes.is_empty() { Vec::new() } else { vec![write_votes(&Votes { height, votes })] }
    })
}

/// A1: the leader shows its proposal to 3 and 4 alone, its prevote to 1 alone, and is silent from then on. Node 1 locks a value
/// that it does not have, so it can show nobody its polka; 3 and 4 forget the value four views later.
#[test]
fn a1_a_lock_without_the_value_ends_the_ledger() {
    let mut net = Net::new(4, 2, 1);
    net.liars.insert(
        node(2),
        choosy(|to, kind, view, _| {
            view == 0 && ((kind == VoteKind::Proposal && to != 1) || (kind == VoteKind::Prevote && to == 1))
        }),
    );
    net.ask_all(&create("a", 1, 2, &[1, 2, 3]));
    for round in 0..20 {
        if net.run_until(200, |net| net.all_at(1)) {
            return;
        }
        net.ask_all(&create("b", 2 + round, 2, &[1, 2, 3]));
    }
    let state: Vec<String> = net.honest().map(|(_, node)| format!("{:?}", node.replica)).collect();
    panic!("blocked after 4000 ticks: {state:?}");
}

fn held_by_four(seed: u64) -> Net {
    let mut net = Net::new(5, 2, seed);
    net.ask_all(&create("a", 1, 4, &[1, 2, 3, 4]));
    assert!(net.run_until(60, |net| net.all_at(1)));
    net.ask_all(&activated(1, 4, 4, 7));
    assert!(net.run_until(60, |net| net.all_at(2)));
    net
}

fn refresh(nonce: u8) -> Action {
    change(nonce, KeyChange::Refresh { key: "a".parse().unwrap(), version: None })
}

/// A2: n = 5, t = 1, q = 4; a key of 4 of 4, one holder of which is down. When decisions took the votes of as many holders as the key's
/// threshold, the four others locked a refresh that could never be decided, nor anything else.
#[test]
fn a2_a_demand_that_one_crashed_node_leaves_unmet_ends_the_ledger() {
    let mut net = held_by_four(2);
    net.stop(node(4));
    net.ask([1, 2, 3, 5], &refresh(9));
    net.run_until(30, |_| false);
    for round in 0..10 {
        net.ask([1, 2, 3, 5], &create("b", 50 + round, 2, &[1, 2, 3]));
        if net.run_until(300, |net| net.all_at(3)) {
            return;
        }
    }
    panic!("blocked after 3000 ticks");
}

/// A2b: a liar among the holders votes first and does not precommit.
#[test]
fn a2b_a_holder_that_withholds_its_precommit_ends_the_ledger() {
    let mut net = held_by_four(3);
    net.liars.insert(node(4), choosy(|_, kind, _, height| kind != VoteKind::Precommit || height < 3));
    net.ask_all(&refresh(9));
    net.run_until(30, |_| false);
    for round in 0..10 {
        net.ask_all(&create("b", 50 + round, 2, &[1, 2, 3]));
        if net.run_until(300, |net| net.all_at(3)) {
            return;
        }
    }
    panic!("blocked after 3000 ticks");
}

/// A4: what a node writes it can read.
#[test]
fn a4_an_adopted_key_can_be_decided() {
    let suite = "sh00-2048".parse().unwrap();
    let (key, version, public) = ("rsa".parse().unwrap(), Version::FIRST, b"a modulus".to_vec());
    let adopt = Action::Adopt(AdoptedKey {
        key,
        version,
        epoch: Epoch::FIRST,
        suite,
        delivery: Delivery::All,
        k: 2,
        holders: vec![1, 2, 3],
        public,
    });
    assert_eq!(Action::decode(&adopt.encode()), Ok(adopt.clone()));
    let mut net = Net::new(4, 2, 5);
    net.ask_all(&adopt);
    assert!(net.run_until(100, |net| net.all_at(1)));
}

/// A5: after an action that too few wanted nobody works any more, and the disk does not grow.
#[test]
fn a5_when_nothing_is_wanted_the_ledger_rests() {
    let mut net = Net::new(4, 2, 6);
    net.ask([1, 2], &create("a", 1, 2, &[1, 2, 3]));
    net.run_until(400, |_| false);
    assert!(net.nodes[&node(1)].dropped.iter().any(|(_, why)| *why == DropReason::TooFew));
    let said = |net: &Net| net.nodes[&node(1)].disk.said.len();
    let before = said(&net);
    let sent = net.sent;
    net.run_until(4000, |_| false);
    assert_eq!(
        said(&net),
        before,
        "records grow: {} bytes were sent meanwhile, {:?}",
        net.sent - sent,
        net.nodes[&node(1)].replica
    );
}

/// A6: heights that were told before the memory was lost arrive afterwards.
#[test]
fn a6_old_news_does_not_make_a_node_vote_twice() {
    let mut net = Net::new(4, 2, 7);
    net.ask_all(&create("a", 1, 2, &[1, 2, 3]));
    assert!(net.run_until(60, |net| net.all_at(1)));
    net.ask_all(&activated(1, 2, 3, 7));
    assert!(net.run_until(60, |net| net.all_at(2)));
    for generation in 1..=3 {
        let state = if generation % 2 == 1 { KeyState::Disabled } else { KeyState::Active };
        net.ask_all(&set("a", None, state, generation));
        assert!(net.run_until(60, |net| net.all_at(2 + generation)));
    }
    // At height 6 all say something; nothing is decided yet, as 1 is heard by nobody and 2 is down.
    net.stop(node(2));
    net.liars.insert(node(1), choosy(|_, kind, _, _| kind == VoteKind::Proposal));
    net.ask([1, 3, 4], &create("b", 2, 2, &[1, 2, 3]));
    net.run_until(5, |_| false);
    assert!(net.nodes[&node(4)].disk.said.iter().any(|said| said.height == 6));
    // Node 4 loses all; what 1, 2 and 3 told it of height 0 was on its way for long.
    let disk = &mut net.nodes.get_mut(&node(4)).unwrap().disk;
    (disk.entries, disk.said, disk.lacks) = (Vec::new(), Vec::new(), true);
    net.start(node(4));
    for from in [1, 2, 3] {
        let status = [&[1_u8, 1][..], &0_u64.to_be_bytes()].concat();
        net.send(node(from), node(4), status);
    }
    net.run_until(12, |_| false);
    net.ask([4], &create("b", 2, 2, &[1, 2, 3]));
    net.run_until(30, |_| false);
    let four = &net.nodes[&node(4)];
    assert!(
        !four.disk.said.iter().any(|said| said.height <= 6),
        "it speaks at a height at which it had spoken: {:?}; blamed by 3: {:?}",
        four.replica,
        net.nodes[&node(3)].blamed
    );
}

/// A7: a key is not adopted while one of its name is being made.
#[test]
fn a7_no_version_takes_the_place_of_another() {
    let mut state = LedgerState::new(&genesis(4, 2));
    let adopt = |version, holders: Vec<u16>, k| {
        let suite = "frost-ed25519".parse().unwrap();
        let (key, version) = ("a".parse().unwrap(), Version::new(version).unwrap());
        Action::Adopt(AdoptedKey {
            key,
            version,
            epoch: Epoch::FIRST,
            suite,
            delivery: Delivery::All,
            k,
            holders,
            public: public(2, 3, 8),
        })
    };
    advance(&mut state, create("a", 1, 2, &[1, 2, 3]));
    assert_eq!(state.check(&adopt(1, vec![1, 2, 3], 2)), Err(Refusal::Busy(1)));
    advance(&mut state, activated(1, 2, 3, 5));
    // Nor when it has been made: the version is there.
    assert_eq!(state.check(&adopt(1, vec![1, 2, 3], 2)), Err(Refusal::Exists("a".parse().unwrap())));
}

#[test]
fn a7b_adopt_twice() {
    let state = LedgerState::new(&genesis(4, 2));
    let (key, version) = ("a".parse().unwrap(), Version::FIRST);
    let adopt = Action::Adopt(AdoptedKey {
        key,
        version,
        epoch: Epoch::FIRST,
        suite: "frost-ed25519".parse().unwrap(),
        delivery: Delivery::All,
        k: 3,
        holders: vec![1, 1, 2],
        public: public(3, 3, 8),
    });
    assert!(matches!(state.check(&adopt), Err(Refusal::Holders(_))));
}

/// A record of a precommit has the prevotes and the entry, and is longer than that of a proposal.
const LOCKED: usize = 650;

/// A8: n = 2, k = 2: one node is locked, the other restarts, and the client's request is not repeated.
#[test]
fn a8_who_is_shown_a_polka_takes_part() {
    let mut bad = Vec::new();
    for (n, seed) in [(2, 0), (2, 1), (2, 2), (3, 3), (3, 4), (3, 5)] {
        let mut net = Net::new(n, n, seed);
        net.ask_all(&create("a", 1, 1, &[1, 2]));
        // Until somebody is locked, and nobody hears of the others' precommits.
        let locked = Rc::new(RefCell::new(0));
        for _ in 0..3 {
            net.cut = [node(1)].into();
            net.tick();
        }
        net.cut.clear();
        net.loss = 50;
        for _ in 0..40 {
            net.tick();
            if net.nodes.values().any(|node| node.disk.said.iter().any(|said| said.encode().len() > LOCKED)) {
                *locked.borrow_mut() += 1;
                break;
            }
        }
        net.loss = 100;
        net.run_until(300, |_| false);
        net.loss = 0;
        for number in 1..=n {
            let fresh = !net.nodes[&node(number)].disk.said.iter().any(|said| said.encode().len() > LOCKED);
            if fresh {
                net.start(node(number));
            }
        }
        let any = *locked.borrow() > 0 && net.all_at(0);
        if any && !net.run_until(2000, |net| net.all_at(1)) {
            bad.push((n, seed, net.nodes.values().map(|node| format!("{:?}", node.replica)).collect::<Vec<_>>()));
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}

/// A9: a client's reason that is too long.
#[test]
fn a9_nobody_honest_is_blamed_for_a_long_reason() {
    let mut net = Net::new(4, 2, 8);
    let action = create("a", 1, 2, &[1, 2, 3]);
    let reason = vec![7; 600_000];
    net.feed(node(2), &|replica, disk| replica.handle(Input::Propose(action.clone(), reason.clone()), disk));
    net.run_until(20, |_| false);
    assert!(net.nodes.values().all(|node| node.blamed.is_empty()), "{:?}", net.nodes[&node(1)].blamed);
}

/// A10: what a liar's false entries cost.
#[test]
fn a10_false_entries_cost_little() {
    let state = LedgerState::new(&genesis(64, 22));
    let all: Vec<u16> = (1..=64).collect();
    let mut entry = certified(&state, create("a", 1, 2, &[1, 2, 3]), &all);
    // All true but the last.
    let mut signatures = entry.certificate.signatures().clone();
    signatures.last_entry().unwrap().insert([7; 64]);
    entry.certificate =
        theta_agreement::VoteCertificate::new(entry.certificate.ballot(), *entry.certificate.digest(), signatures);
    let message = [&[1_u8, 3][..], &entry.encode()].concat();
    let mut net = Net::new(64, 22, 1);
    net.tick();
    let begun = std::time::Instant::now();
    for _ in 0..64 {
        net.feed(node(1), &|replica, disk| replica.handle(Input::Message(node(2), &message), disk));
    }
    let blames = net.nodes[&node(1)].blamed[&node(2)].len();
    println!("64 false entries of n=64: {:?}, {blames} blames", begun.elapsed());
    assert!(blames < 5, "{blames} blames in one tick; {:?} of CPU", begun.elapsed());
}

/// A11: a new node reads 300 entries.
#[test]
fn a11_catching_up_costs_what_it_reads() {
    let mut net = Net::new(10, 4, 11);
    net.stop(node(10));
    let nine: Vec<u16> = (1..=9).collect();
    net.ask(nine.clone(), &create("a", 1, 2, &[1, 2, 3]));
    assert!(net.run_until(60, |net| net.all_at(1)));
    net.ask(nine.clone(), &activated(1, 2, 3, 7));
    assert!(net.run_until(60, |net| net.all_at(2)));
    for generation in 1..=300 {
        let state = if generation % 2 == 1 { KeyState::Disabled } else { KeyState::Active };
        net.ask(nine.clone(), &set("a", None, state, generation));
        assert!(net.run_until(60, |net| net.all_at(2 + generation)));
    }
    let size: usize = net.nodes[&node(1)].disk.entries.iter().map(|entry| entry.encode().len()).sum();
    net.run_until(20, |_| false);
    let before = net.sent;
    net.start(node(10));
    assert!(net.run_until(60, |net| net.all_at(302)));
    println!("history {size} bytes, sent {}", net.sent - before);
    assert!(net.sent - before < 5 * size, "history {size} bytes, sent {}", net.sent - before);
}

/// A12: what was dropped is not decided afterwards, unless a liar has kept to itself that enough members had voted for it.
#[test]
fn a12_what_was_given_up_is_not_decided_later() {
    let mut net = Net::new(4, 2, 12);
    net.liars.insert(node(2), choosy(|_, kind, _, _| kind == VoteKind::Precommit));
    net.stop(node(4));
    let action = create("a", 1, 2, &[1, 2, 3]);
    net.ask([1, 3], &action);
    net.run_until(300, |_| false);
    let dropped = net.nodes[&node(1)].dropped.clone();
    assert_eq!(dropped, [(action, DropReason::TooFew)]);
    net.start(node(4));
    assert!(!net.run_until(300, |net| net.all_at(1)), "dropped as TooFew, then decided");
}

/// A13: a node that is told of something before its first tick.
#[test]
fn a13_before_the_first_tick_nothing_is_refused_for_its_time() {
    let mut net = Net::new(4, 2, 13);
    net.run_until(3, |_| false);
    net.stop(node(1));
    let action = create("a", 1, 2, &[1, 2, 3]);
    net.grant([1], &action);
    net.start(node(1));
    net.ask([2, 3, 4], &action);
    net.deliver();
    let nil = net.nodes[&node(1)].disk.said.iter().any(|said| said.encode().len() == 8 + 5 + 4 + 64 + 1);
    assert!(!nil, "it prevoted nil for want of a clock");
}

/// A14: entries of a store that was set back, with records of what was said later.
#[test]
fn a14_records_of_later_heights_show_that_the_store_was_set_back() {
    let mut net = Net::new(4, 2, 14);
    net.ask_all(&create("a", 1, 2, &[1, 2, 3]));
    assert!(net.run_until(60, |net| net.all_at(1)));
    net.stop(node(2));
    net.stop(node(3));
    net.ask([1, 4], &activated(1, 2, 3, 7));
    net.run_until(20, |_| false);
    let disk = &mut net.nodes.get_mut(&node(4)).unwrap().disk;
    assert!(disk.said.iter().any(|said| said.height == 2));
    disk.entries.clear();
    net.start(node(4));
    let debug = format!("{:?}", net.nodes[&node(4)].replica);
    assert!(debug.contains("Lost"), "{debug}");
    // The records go with the entries that come now; what they showed stays on the disk.
    net.nodes.get_mut(&node(4)).unwrap().disk.said.clear();
    net.start(node(4));
    let debug = format!("{:?}", net.nodes[&node(4)].replica);
    assert!(debug.contains("Lost"), "{debug}");
}

/// A15: a store that was set back without knowing it (a disk's snapshot) reads entries that carry its own votes, which it does not
/// remember.
#[test]
fn a15_who_sees_its_own_votes_and_does_not_remember_them_stops_voting() {
    let mut net = Net::new(4, 2, 15);
    net.ask_all(&create("a", 1, 2, &[1, 2, 3]));
    assert!(net.run_until(60, |net| net.all_at(1)));
    let (entries, said) = (net.nodes[&node(4)].disk.entries.clone(), net.nodes[&node(4)].disk.said.clone());
    net.ask_all(&activated(1, 2, 3, 7));
    assert!(net.run_until(60, |net| net.all_at(2)));
    let disk = &mut net.nodes.get_mut(&node(4)).unwrap().disk;
    (disk.entries, disk.said) = (entries, said);
    net.start(node(4));
    assert!(net.run_until(60, |net| net.all_at(2)));
    let votes = net.nodes[&node(4)].disk.entries[1].certificate.signatures().keys().any(|party| party.get() == 4);
    let debug = format!("{:?}", net.nodes[&node(4)].replica);
    assert!(!votes || !debug.contains("Kept"), "its own vote is in the certificate: {votes}, {debug}");
}

//! Small groups of which a machine is gone.

mod ends;
mod several;

use std::collections::BTreeSet;

use theta_agreement::MemberKeys;
use theta_ledger::{
    Action, CertifiedEntry, Genesis, Input, LedgerError, LedgerState, StandIn, Warrant, WarrantRefusal,
};

use crate::keys::operator;
use crate::members::{card_of, content_of, founded, founding, name, replace, sign};
use crate::net::{Net, genesis, keys, keys_of, node};
use crate::runs::{liar, stir};
use crate::states::{create, voted_for};

/// Until when warrants are signed here.
pub(crate) const END: u64 = 1_900_000;

/// Machine 8 in the place of machine 7.
pub(crate) fn stand_in(number: u16, machine: u8) -> StandIn {
    StandIn { node: node(number), gone: content_of(number, 7).ceremony_key, card: card_of(number, machine) }
}

pub(crate) fn unsigned(state: &LedgerState, numbers: &[u16]) -> Warrant {
    let stand_ins = numbers.iter().map(|number| stand_in(*number, 8)).collect();
    Warrant::new(*state.id(), state.height() + 1, END, stand_ins).unwrap()
}

pub(crate) fn signed(warrant: Warrant, operators: &[u16]) -> Warrant {
    operators.iter().fold(warrant, |warrant, number| warrant.with_signature(node(*number), &operator(&name(*number))))
}

pub(crate) fn warrant(state: &LedgerState, numbers: &[u16], operators: &[u16]) -> Warrant {
    signed(unsigned(state, numbers), operators)
}

#[test]
fn so_many_can_be_stood_in_for_that_no_two_histories_come_about() {
    for n in 1..=13_usize {
        for k in 1..=n {
            let state = LedgerState::new(&genesis(n.try_into().unwrap(), k.try_into().unwrap()));
            let (t, q, r) = (k - 1, state.quorum(), state.most_stand_ins());
            // Two quorums have an honest member with one machine in common.
            assert!(r == 0 || 2 * q - n > t + r, "{n} {k}");
            if n < 3 * t + 1 {
                assert_eq!(r, (3 * t + 1 - n).min(n - t - 1), "{n} {k}");
                assert!(n < 2 * t + 1 || n - t + r >= q, "{n} {k}: the honest members and those are a quorum");
            }
            assert_eq!(state.is_small(), n < 3 * t + 1);
            assert!(k < n || n == 1 || r == 0, "{n} of {n}: the one honest member may be the one that is gone");
        }
    }
}

#[test]
fn a_warrant_takes_a_quorum_of_operators() {
    let state = founded(3, 2);
    assert_eq!((state.quorum(), state.most_stand_ins()), (3, 1));
    let verdict = |numbers: &[u16], operators: &[u16]| state.check_warrant(&warrant(&state, numbers, operators));
    assert_eq!(verdict(&[3], &[1, 2, 3]), Ok(()));
    assert_eq!(verdict(&[3], &[1, 2]), Err(WarrantRefusal::TooFew { got: 2, needed: 3 }));
    // A signature of nobody's neither counts nor spoils.
    assert_eq!(verdict(&[3], &[1, 2, 3, 4]), Ok(()));
    assert_eq!(verdict(&[3], &[1, 2, 4]), Err(WarrantRefusal::Signature(node(4))));
    assert_eq!(verdict(&[2, 3], &[1, 2, 3]), Err(WarrantRefusal::TooMany { got: 2, most: 1 }));
    // One operator signs for itself alone.
    let forged = warrant(&state, &[3], &[1, 2]).with_signature(node(3), &operator(&name(2)));
    assert_eq!(state.check_warrant(&forged), Err(WarrantRefusal::Signature(node(3))));
    let other = founded(3, 1);
    let elsewhere = signed(unsigned(&other, &[3]), &[1, 2, 3]);
    assert_eq!(state.check_warrant(&elsewhere), Err(WarrantRefusal::Ledger));
    let early = Warrant::new(*state.id(), 2, END, vec![stand_in(3, 8)]).unwrap();
    assert_eq!(state.check_warrant(&signed(early, &[1, 2, 3])), Err(WarrantRefusal::Early(2)));
    // A key that is not on the node cannot be exchanged with the machine.
    let mut content = content_of(3, 8);
    content.operator_key = operator("thief").id().unwrap();
    let thief = StandIn { card: sign(content, &keys_of(3, 8)), ..stand_in(3, 8) };
    let thief = signed(Warrant::new(*state.id(), 1, END, vec![thief]).unwrap(), &[1, 2, 3]);
    assert!(matches!(state.check_warrant(&thief), Err(WarrantRefusal::StandIn { .. })));
    // Where a quorum can be had without liars, and where one may be all that is honest, nobody is stood in for.
    for (n, k) in [(4, 2), (3, 3), (2, 2)] {
        let state = founded(n, k);
        let all: Vec<u16> = (1..=n).collect();
        let refused = state.check_warrant(&warrant(&state, &[1], &all));
        assert_eq!(refused, Err(WarrantRefusal::TooMany { got: 1, most: 0 }), "{k} of {n}");
    }
}

#[test]
fn operators_sign_one_after_the_other_or_each_a_copy() {
    let state = founded(3, 2);
    let copies = [1, 2, 3].map(|number| signed(unsigned(&state, &[3]), &[number]));
    let merged = copies.iter().fold(unsigned(&state, &[3]), Warrant::merged);
    assert_eq!(merged, warrant(&state, &[3], &[3, 1, 2]));
    let mail = format!("Dear all,\n{}", merged.to_text());
    assert_eq!(Warrant::all_from_text(&mail), Ok(vec![merged.clone()]));
    let bytes = merged.encode();
    assert!((0..bytes.len()).all(|len| Warrant::decode(&bytes[..len]).is_err()));
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let read = Warrant::decode(&changed);
        assert!(read.is_err() || state.check_warrant(&read.unwrap()).is_err(), "byte {at}");
    }
    // Signatures for something else are not taken over.
    let other = signed(Warrant::new(*state.id(), 2, END, vec![stand_in(3, 8)]).unwrap(), &[1]);
    assert_eq!(merged.clone().merged(&other), merged);
}

#[test]
fn who_follows_sees_under_which_warrant_was_decided() {
    let state = founded(3, 2);
    let votes = |machine| -> Vec<MemberKeys> { vec![keys(1), keys(2), keys_of(3, machine)] };
    let served = warrant(&state, &[3], &[1, 2, 3]);
    let for_it = |voters: &[MemberKeys]| voted_for(&state, (replace(3, 8), 1_500_000), served.encode(), (&[], voters));
    let mut entry = for_it(&votes(8));
    assert_eq!(state.clone().advance(&entry), Err(LedgerError::Certificate(1)));
    entry.warrants = vec![served.clone()];
    assert_eq!(theta_ledger::CertifiedEntry::decode(&entry.encode()).as_ref(), Ok(&entry));
    // Either machine, each once: what the first said before it was gone stays said.
    let mut before = for_it(&votes(7));
    before.warrants.clone_from(&entry.warrants);
    assert_eq!(state.clone().advance(&before), Ok(()));
    let mut state = state;
    state.advance(&entry).unwrap();
    // It has come about, and serves nothing any more.
    assert_eq!(state.check_warrant(&served), Err(WarrantRefusal::Done));
    assert_eq!(state.members()[2], keys_of(3, 8).member().clone());
}

/// Two of three, in trouble: machine 7 of node 3 is gone.
pub(crate) fn bereaved(seed: u64) -> Net {
    let mut net = Net::of(Genesis::of(&founding(3, 2)).unwrap(), 3, seed);
    net.run_until(20, |_| false);
    net.stop(node(3));
    net
}

pub(crate) fn bring(net: &mut Net, to: u16, warrant: &Warrant) {
    net.feed(node(to), &|replica, disk| replica.handle(Input::Warrant(warrant.clone()), disk));
}

pub(crate) fn state_of(net: &Net, number: u16) -> LedgerState {
    net.nodes[&node(number)].replica.as_ref().unwrap().state().clone()
}

#[test]
fn a_machine_that_is_gone_ends_nothing() {
    let mut net = bereaved(1);
    net.ask([1, 2], &create("a", 1, 2, &[1, 2, 3]));
    net.exchange(node(3), 8);
    assert!(!net.run_until(200, |net| !net.all_at(0)), "two of three decide nothing");
    // One of the operators brings it to its own node: that tells the others.
    let served = warrant(&state_of(&net, 1), &[3], &[1, 2, 3]);
    bring(&mut net, 2, &served);
    assert!(net.run_until(400, |net| net.all_at(1)));
    assert_eq!(state_of(&net, 1).members()[2], keys_of(3, 8).member().clone());
    let entry = &net.nodes[&node(1)].disk.entries[0];
    assert_eq!(entry.warrants, std::slice::from_ref(&served), "never silent");
    assert_eq!(Warrant::decode(&entry.entry.reason).as_ref(), Ok(&served));
    // From then on it is a member as any other.
    net.ask_all(&create("b", 2, 2, &[1, 2, 3]));
    assert!(net.run_until(200, |net| net.all_at(2)));
    assert!(net.nodes[&node(1)].disk.entries[1].warrants.is_empty());
    assert!(net.nodes.values().all(|node| node.blamed.is_empty()));
}

#[test]
fn a_warrant_outlives_the_restart_of_all_who_know_it() {
    let mut net = bereaved(7);
    let served = warrant(&state_of(&net, 1), &[3], &[1, 2, 3]);
    net.cut = BTreeSet::from([node(1)]);
    bring(&mut net, 1, &served);
    assert_eq!(net.nodes[&node(1)].disk.warrants, [served.encode()]);
    for number in [1, 2] {
        net.stop(node(number));
        net.start(node(number));
    }
    // The others come back when the operator who brought it has gone home.
    net.cut.clear();
    net.exchange(node(3), 8);
    let replaced = |net: &Net| [1, 2, 3].iter().all(|number| state_of(net, *number).height() == 1);
    assert!(net.run_until(400, replaced));
    assert_eq!(state_of(&net, 2).members()[2], keys_of(3, 8).member().clone());
    assert!(net.nodes.values().all(|node| node.disk.warrants.is_empty()), "it has served");
    assert!(net.nodes.values().all(|node| node.blamed.is_empty()));
}

#[test]
fn a_warrant_that_ended_while_its_node_was_off_is_dropped() {
    let mut net = bereaved(8);
    let served = warrant(&state_of(&net, 1), &[3], &[1, 2, 3]);
    bring(&mut net, 1, &served);
    net.stop(node(1));
    net.now = END + 3 * 86_400;
    net.start(node(1));
    assert_eq!(net.nodes[&node(1)].disk.warrants.len(), 1);
    net.cut = BTreeSet::from([node(1)]);
    assert!(net.run_until(20, |net| net.nodes[&node(1)].disk.warrants.is_empty()));
    assert!(net.nodes[&node(1)].replica.as_ref().unwrap().stand_ins().is_empty());
}

#[test]
fn what_a_client_may_have_seen_decided_stays_decided() {
    let (mut seen_by_client, mut seen_alone) = (0, 0);
    for seed in 0..120 {
        let mut net = Net::of(Genesis::of(&founding(3, 2)).unwrap(), 3, seed);
        let action = create("a", 1, 2, &[1, 2, 3]);
        net.ask_all(&action);
        net.loss = 40;
        // It is gone at any moment, perhaps as the only one that knows the entry: the client has it.
        for _ in 0..10 + seed % 40 {
            net.tick();
            if net.nodes[&node(3)].disk.entries.len() == 1 {
                break;
            }
        }
        let seen = net.nodes[&node(3)].disk.entries.first().cloned();
        seen_by_client += u32::from(seen.is_some());
        let others = [1, 2].map(|number| state_of(&net, number).height());
        seen_alone += u32::from(seen.is_some() && others == [0, 0]);
        net.loss = 0;
        net.exchange(node(3), 8);
        let level = |net: &Net| {
            let heights = [1, 2].map(|number| state_of(net, number).height());
            heights[0] == heights[1]
        };
        net.run_until(60, level);
        let served = signed(Warrant::new(net.genesis.id(), 1, END, vec![stand_in(3, 8)]).unwrap(), &[1, 2, 3]);
        for number in 1..=3 {
            bring(&mut net, number, &served);
        }
        let replaced =
            |net: &Net| [1, 2, 3].iter().all(|number| state_of(net, *number).members()[2] == *keys_of(3, 8).member());
        assert!(net.run_until(600, replaced), "seed {seed}");
        if let Some(seen) = seen {
            assert_eq!(net.nodes[&node(1)].disk.entries[0].entry, seen.entry, "seed {seed}: two histories");
        }
        assert!(net.nodes.values().all(|node| node.blamed.is_empty()), "seed {seed}");
    }
    assert!(seen_alone > 5 && seen_by_client > seen_alone, "{seen_alone} of {seen_by_client}");
}

#[test]
fn a_machine_that_lives_after_all_is_silent_when_it_hears_of_it() {
    let mut net = bereaved(5);
    let served = warrant(&state_of(&net, 1), &[3], &[1, 2, 3]);
    // The old machine starts again, and is told.
    net.start(node(3));
    for number in 1..=3 {
        bring(&mut net, number, &served);
    }
    net.ask_all(&create("a", 1, 2, &[1, 2, 3]));
    assert!(!net.run_until(200, |net| !net.all_at(0)));
}

#[test]
fn liars_and_two_machines_of_a_member_divide_nobody() {
    let (mut decided, mut replaced) = (0, 0);
    for seed in 0..24 {
        // Three of six: five are a quorum, and one can be stood in for. The other one that may lie, may be away.
        let mut net = Net::of(Genesis::of(&founding(6, 3)).unwrap(), 6, seed);
        let number = 1 + u16::try_from(seed % 2).unwrap();
        let kind = liar(&mut net, number);
        net.liars.insert(node(number), kind);
        let mut asked = 0;
        for _ in 0..20 + seed % 30 {
            stir(&mut net, 6, &mut asked);
        }
        let seen = net.nodes[&node(6)].disk.entries.clone();
        net.exchange(node(6), 8);
        let served = signed(Warrant::new(net.genesis.id(), 1, END, vec![stand_in(6, 8)]).unwrap(), &[1, 2, 3, 4, 5, 6]);
        for step in 0..640 {
            let is_change = |entry: &CertifiedEntry| matches!(entry.entry.action, Action::Members(_));
            if net.honest().any(|(_, honest)| honest.disk.entries.iter().any(is_change)) {
                break;
            }
            for number in 1..=6 {
                net.feed(node(number), &|replica, disk| match replica.state().check_warrant(&served) {
                    Ok(()) => replica.handle(Input::Warrant(served.clone()), disk),
                    Err(_) => Vec::new(),
                });
                if step > 40 && net.nodes[&node(number)].replica.is_none() {
                    net.start(node(number));
                }
            }
            if step > 40 {
                net.cut.clear();
                (net.loss, net.delay) = (0, 1);
                net.tick();
            } else {
                stir(&mut net, 6, &mut asked);
            }
        }
        let longest = net.honest().map(|(_, honest)| &honest.disk.entries).max_by_key(|entries| entries.len()).unwrap();
        for entry in seen {
            let known = longest.get(usize::try_from(entry.entry.height).unwrap() - 1);
            assert!(known.is_none_or(|known| known.entry == entry.entry), "seed {seed}: two histories");
        }
        decided += longest.len();
        replaced += longest.iter().filter(|entry| matches!(entry.entry.action, Action::Members(_))).count();
        let mut blamed = net.honest().flat_map(|(_, honest)| honest.blamed.keys());
        assert!(blamed.all(|culprit| net.liars.contains_key(culprit)), "seed {seed}");
    }
    assert!(decided > 30 && replaced == 24, "{decided} entries, {replaced} machines");
}

//! More than one warrant, and machines that were stolen.

use std::cell::RefCell;

use theta_agreement::{Ballot, VoteKind};
use theta_ledger::{
    Action, Effect, Genesis, Input, LedgerError, LedgerState, MemberChange, StandIn, Warrant, WarrantRefusal,
};

use super::{END, signed, stand_in, state_of, unsigned, warrant};
use crate::keys::operator;
use crate::liars::{Votes, sign_with, write_votes};
use crate::members::{add, advance, content_of, founded, founding, name, sign};
use crate::net::{Net, keys_of, node};
use crate::states::create;

/// A warrant for these machines of these members.
pub(super) fn by(state: &LedgerState, machines: &[(u16, u8)], operators: &[u16]) -> Warrant {
    let card = |(number, machine): &(u16, u8)| {
        let mut content = content_of(*number, *machine);
        content.made += u64::from(*machine);
        StandIn { card: sign(content, &keys_of(*number, *machine)), ..stand_in(*number, 8) }
    };
    let all = machines.iter().map(card).collect();
    signed(Warrant::new(*state.id(), state.height() + 1, END, all).unwrap(), operators)
}

/// What comes of bringing it to a node.
pub(super) fn offer(net: &mut Net, to: u16, warrant: &Warrant) -> Result<(), WarrantRefusal> {
    let refused = RefCell::new(Ok(()));
    net.feed(node(to), &|replica, disk| {
        let mut effects = replica.handle(Input::Warrant(warrant.clone()), disk);
        effects.retain(|effect| match effect {
            Effect::Unserving(why) => {
                *refused.borrow_mut() = Err(why.clone());
                false
            }
            _ => true,
        });
        effects
    });
    refused.into_inner()
}

pub(super) fn group(n: u16, k: u16) -> Net {
    let mut net = Net::of(Genesis::of(&founding(n, k)).unwrap(), n, 1);
    net.run_until(20, |_| false);
    net
}

#[test]
fn a_second_machine_is_lost_before_the_first_is_replaced() {
    // Three of five: all are a quorum, and two can be stood in for.
    let mut net = group(5, 3);
    net.stop(node(4));
    let state = state_of(&net, 1);
    let all = [1, 2, 3, 4, 5];
    for number in 1..=3 {
        offer(&mut net, number, &warrant(&state, &[4], &all)).unwrap();
    }
    net.stop(node(5));
    net.run_until(50, |_| false);
    let both = warrant(&state, &[4, 5], &all);
    net.exchange(node(4), 8);
    net.exchange(node(5), 8);
    // To one of them: it tells the others.
    offer(&mut net, 2, &both).unwrap();
    assert!(net.run_until(400, |net| net.all_at(2)));
    for number in [4_u16, 5] {
        assert_eq!(state_of(&net, 1).members()[usize::from(number) - 1], *keys_of(number, 8).member());
    }
}

#[test]
fn warrants_for_different_members_do_not_serve_together() {
    let mut net = group(5, 3);
    let state = state_of(&net, 1);
    let all = [1, 2, 3, 4, 5];
    let [four, five, both] = [&[4][..], &[5], &[4, 5]].map(|numbers| warrant(&state, numbers, &all));
    for number in [4, 5] {
        net.exchange(node(number), 8);
    }
    // Mails cross: no operator should have signed both.
    assert_eq!(offer(&mut net, 1, &four), Ok(()));
    assert_eq!(offer(&mut net, 1, &five), Err(WarrantRefusal::Besides));
    assert_eq!(offer(&mut net, 2, &five), Ok(()));
    assert_eq!(offer(&mut net, 2, &four), Err(WarrantRefusal::Besides));
    assert_eq!(offer(&mut net, 3, &both), Ok(()));
    assert!(net.run_until(400, |net| net.all_at(2)));
    // Whoever follows refuses what was decided under two that are not nested.
    let mut entry = net.nodes[&node(1)].disk.entries[0].clone();
    assert!(!entry.warrants.is_empty() && entry.warrants.len() < 3);
    assert_eq!(state.clone().advance(&entry), Ok(()));
    entry.warrants = vec![four, five];
    let besides = theta_ledger::LedgerError::Warrant(1, WarrantRefusal::Besides);
    let mut follower = state;
    assert_eq!(follower.advance(&entry), Err(besides));
}

/// Machine 8 of member 7 and machine 9 of member 8 vote: each by another warrant.
#[test]
fn machines_of_two_warrants_decide_together() {
    let mut net = group(8, 4);
    let state = state_of(&net, 1);
    net.stop(node(6));
    let all: Vec<u16> = (1..=8).collect();
    let first = by(&state, &[(7, 8), (8, 8)], &all);
    let second = by(&state, &[(7, 9), (8, 9)], &all);
    net.exchange(node(7), 8);
    net.exchange(node(8), 9);
    for number in [1, 2, 3, 4, 5, 7, 8] {
        offer(&mut net, number, &first).unwrap();
        offer(&mut net, number, &second).unwrap();
    }
    assert!(net.run_until(200, |net| net.all_at(1)));
    let entry = &net.nodes[&node(1)].disk.entries[0];
    assert_eq!(entry.warrants.len(), 2);
    let mut follower = state.clone();
    follower.advance(entry).unwrap();
    for one in 0..2 {
        let mut entry = entry.clone();
        entry.warrants.remove(one);
        assert_eq!(state.clone().advance(&entry), Err(LedgerError::Certificate(1)));
    }
}

/// A thief of the machine that is gone answers before the one in its place does.
#[test]
fn a_machine_that_was_stolen_keeps_nobody_from_voting() {
    let mut net = group(3, 2);
    let state = state_of(&net, 1);
    net.exchange(node(3), 8);
    for number in 1..=3 {
        offer(&mut net, number, &warrant(&state, &[3], &[1, 2, 3])).unwrap();
    }
    let thief = keys_of(3, 7);
    let decided = (0..40).any(|_| {
        for view in 0..16 {
            let ballots = [VoteKind::Prevote, VoteKind::Precommit].map(|kind| Ballot::new(kind, view));
            let votes = ballots
                .map(|ballot| (ballot, Vec::new(), sign_with(&thief, state.id(), (1, state.head()), ballot, &[])));
            let bytes = write_votes(&Votes { height: 1, votes: votes.to_vec() });
            for to in 1..=2 {
                net.feed(node(to), &|replica, disk| replica.handle(Input::Message(node(3), &bytes), disk));
            }
        }
        net.tick();
        net.all_at(1)
    });
    assert!(decided);
}

/// A thief of the machine that is gone says under the member's number what is an offence. It is not the other machine's: whoever listened to neither
/// any more would wait for the member for ever.
#[test]
fn offences_of_a_machine_that_was_stolen_are_not_the_other_ones() {
    let mut net = group(3, 2);
    let state = state_of(&net, 1);
    net.exchange(node(3), 8);
    for number in 1..=3 {
        offer(&mut net, number, &warrant(&state, &[3], &[1, 2, 3])).unwrap();
    }
    let ballot = Ballot::new(VoteKind::Prevote, 0);
    let bytes = write_votes(&Votes { height: 1, votes: vec![(ballot, Vec::new(), [7; 64])] });
    let decided = (0..40).any(|_| {
        for to in 1..=2 {
            net.feed(node(to), &|replica, disk| replica.handle(Input::Message(node(3), &bytes), disk));
        }
        net.tick();
        net.all_at(1)
    });
    assert!(decided);
}

#[test]
fn a_warrant_is_one_whoever_signed_which_copy() {
    let mut net = group(6, 3);
    net.stop(node(6));
    let state = state_of(&net, 1);
    for without in 1..=5 {
        let some: Vec<u16> = (1..=6).filter(|number| *number != without).collect();
        offer(&mut net, 1, &by(&state, &[(6, 8)], &some)).unwrap();
    }
    for machine in 9..12 {
        assert_eq!(offer(&mut net, 1, &by(&state, &[(6, machine)], &[1, 2, 3, 4, 5, 6])), Ok(()));
    }
    assert_eq!(offer(&mut net, 1, &by(&state, &[(6, 12)], &[1, 2, 3, 4, 5, 6])), Err(WarrantRefusal::Full));
    // All machines are told of, the newest last.
    let stand_ins = net.nodes[&node(1)].replica.as_ref().unwrap().stand_ins();
    let made: Vec<u64> = stand_ins.iter().map(|(_, card)| card.content().made).collect();
    assert_eq!(made, [1_000_008, 1_000_009, 1_000_010, 1_000_011]);
    assert!(stand_ins.iter().all(|(number, _)| *number == node(6)));
}

#[test]
fn an_operator_does_not_take_back_what_the_others_say() {
    let mut state = founded(6, 3);
    let served = warrant(&state, &[6], &[1, 2, 3, 4, 5, 6]);
    // Five of six are a quorum. The first one's operator has another key from now on.
    let mut own = content_of(1, 8);
    own.operator_key = operator("other").id().unwrap();
    let change = MemberChange::Replace { node: 1, card: sign(own, &keys_of(1, 8)) };
    advance(&mut state, Action::Members(change), &[1, 2, 3, 4, 5]);
    assert_eq!(state.check_warrant(&served), Ok(()));
    assert_eq!(state.vartime_signers(&served), [2, 3, 4, 5, 6].map(node).into());
    // A false copy does not overwrite a true signature.
    let state = founded(3, 2);
    let forged = unsigned(&state, &[3]).with_signature(node(2), &operator(&name(1)));
    let forged = forged.with_signature(node(3), &operator(&name(3)));
    assert_eq!(state.check_warrant(&warrant(&state, &[3], &[1, 2]).merged(&forged)), Ok(()));
}

/// A connection delivers in order, and of each peer one that is news is looked at in a tick.
#[test]
fn a_second_warrant_is_passed_on() {
    let mut net = group(3, 2);
    let state = state_of(&net, 1);
    for machine in [8, 9] {
        offer(&mut net, 1, &by(&state, &[(3, machine)], &[1, 2, 3])).unwrap();
    }
    net.stop(node(2));
    net.run_until(3, |_| false);
    // It has nothing, and hears the other one alone, which tells both each time.
    net.start(node(2));
    net.stop(node(3));
    for _ in 0..17 {
        net.now += 1;
        let (now, told) = (net.now, RefCell::new(Vec::new()));
        net.feed(node(1), &|replica, disk| {
            for effect in replica.handle(Input::Tick(now), disk) {
                if let Effect::Send(_, bytes) = effect {
                    told.borrow_mut().push(bytes);
                }
            }
            Vec::new()
        });
        net.feed(node(2), &|replica, disk| replica.handle(Input::Tick(now), disk));
        for bytes in told.borrow().iter() {
            net.feed(node(2), &|replica, disk| replica.handle(Input::Message(node(1), bytes), disk));
        }
    }
    assert_eq!(net.nodes[&node(2)].replica.as_ref().unwrap().stand_ins().len(), 2);
}

#[test]
fn two_members_need_two_machines() {
    let state = founded(8, 4);
    let mut content = content_of(8, 8);
    content.tls_key = content_of(7, 8).tls_key;
    let twin = StandIn { card: sign(content, &keys_of(8, 8)), ..stand_in(8, 8) };
    let all: Vec<u16> = (1..=8).collect();
    let served = signed(Warrant::new(*state.id(), 1, END, vec![stand_in(7, 8), twin]).unwrap(), &all);
    assert!(matches!(state.check_warrant(&served), Err(WarrantRefusal::StandIn { .. })));
}

/// With another number of members a warrant would be for too many, and nobody be left who can decide.
#[test]
fn nobody_joins_or_leaves_while_machines_vote_in_the_place_of_others() {
    let mut net = group(5, 3);
    let state = state_of(&net, 1);
    for number in [4, 5] {
        net.exchange(node(number), 8);
    }
    net.stop(node(5));
    for number in 1..=4 {
        offer(&mut net, number, &by(&state, &[(4, 8), (5, 8)], &[1, 2, 3, 4, 5])).unwrap();
    }
    // Machine 8 of node 5 does not run yet, so that nothing is decided. The others ask for both, and then it comes.
    let remove = Action::Members(MemberChange::Remove { node: 3 });
    net.ask_all(&add(6));
    net.ask_all(&remove);
    net.run_until(30, |_| false);
    net.start(node(5));
    offer(&mut net, 5, &by(&state, &[(4, 8), (5, 8)], &[1, 2, 3, 4, 5])).unwrap();
    assert!(net.run_until(400, |net| net.all_at(2)));
    let replaced = |entry: &theta_ledger::CertifiedEntry| {
        matches!(entry.entry.action, Action::Members(MemberChange::Replace { .. }))
    };
    assert!(net.nodes[&node(1)].disk.entries.iter().all(replaced));
}

/// A replica that hears of a second machine for a member wants that whose card is newer.
#[test]
fn of_two_machines_the_newer_one_comes_into_the_place() {
    let mut net = group(3, 2);
    net.stop(node(3));
    let state = state_of(&net, 1);
    let [first, second] = [8, 9].map(|machine| by(&state, &[(3, machine)], &[1, 2, 3]));
    offer(&mut net, 1, &first).unwrap();
    net.run_until(40, |_| false);
    // Machine 8 never came.
    net.exchange(node(3), 9);
    offer(&mut net, 1, &second).unwrap();
    assert!(net.run_until(400, |net| net.all_at(1)));
    assert_eq!(state_of(&net, 2).members()[2], *keys_of(3, 9).member());
    net.ask_all(&create("a", 1, 2, &[1, 2, 3]));
    assert!(net.run_until(200, |net| net.all_at(2)));
}

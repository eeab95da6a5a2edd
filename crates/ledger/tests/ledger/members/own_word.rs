//! What a member does by its own word, or its operator's: renewed cards, machines in the place of others.

use theta_ledger::{Action, Demand, LedgerError, MemberChange, MemberRefusal, Refusal};

use super::{
    NOW, add, advance, by_operator, content_of, first_key, founded, name, refused, remove, renewed, replace, sign,
    voted,
};
use crate::keys::operator;
use crate::net::{keys_of, node};
use crate::states::{self, consented, machines};

#[test]
fn a_member_renews_its_card_with_its_own_key_and_no_other() {
    let mut state = founded(4, 2);
    let moved = renewed(2, 5, |card| card.peer_address = "other.example:1".parse().unwrap());
    assert_eq!(state.demand(&moved, &[]), Ok(Demand::nothing()));
    // It has no other reason: the card is all.
    assert_eq!(state.demand(&moved, b"because"), Err(MemberRefusal::Unproven.into()));
    advance(&mut state, moved.clone(), &[1, 3, 4]);
    let seat = &state.seats()[&node(2)];
    assert_eq!((seat.card().unwrap().content().peer_address.as_str(), seat.since()), ("other.example:1", 0));
    // An old card does not undo a newer one.
    assert_eq!(refused(&state, &moved), MemberRefusal::OldCard(2));
    assert_eq!(refused(&state, &renewed(2, 4, |_| ())), MemberRefusal::OldCard(2));
    let other = |what| MemberRefusal::OtherCard { node: 2, what };
    assert_eq!(refused(&state, &renewed(2, 9, |card| card.name = "x".parse().unwrap())), other("name"));
    // Whoever has stolen the key of a node is not its operator from then on.
    let thief = renewed(2, 9, |card| card.operator_key = operator("thief").id().unwrap());
    assert_eq!(refused(&state, &thief), other("operator's key"));
    let Action::Members(MemberChange::Renew { card, .. }) = renewed(3, 9, |_| ()) else { unreachable!() };
    let stolen = Action::Members(MemberChange::Renew { node: 2, card });
    assert_eq!(refused(&state, &stolen), other("key of ceremonies"));
    // A card that was changed on the way.
    let bytes = renewed(2, 9, |_| ()).encode();
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(state.check(&Action::decode(&bytes).unwrap()), Ok(()));
    assert_eq!(refused(&state, &Action::decode(&changed).unwrap()), MemberRefusal::Signature);
}

#[test]
fn cards_end_and_changes_are_counted() {
    let mut state = founded(4, 2);
    let late = state.next_entry(add(5), Vec::new(), 2_000_001);
    let ended = Err(LedgerError::Refused(1, Refusal::Member(MemberRefusal::Ended)));
    assert_eq!(state.check_entry(&late), ended);
    let in_time = state.next_entry(add(5), Vec::new(), 2_000_000);
    assert_eq!(state.check_entry(&consented(&state, in_time, &machines(&[1, 2, 3]))), Ok(()));
    for later in 1..=8 {
        advance(&mut state, renewed(1, later, |_| ()), &[1, 2, 3]);
    }
    let ninth = |time| state.check_entry(&state.next_entry(renewed(1, 9, |_| ()), Vec::new(), time));
    let often = Err(LedgerError::Refused(9, Refusal::Member(MemberRefusal::TooOften(1))));
    assert_eq!((ninth(NOW), ninth(NOW + 86_399), ninth(NOW + 86_400)), (often.clone(), often, Ok(())));
    assert_eq!(state.check_entry(&state.next_entry(renewed(2, 1, |_| ()), Vec::new(), NOW)), Ok(()));
    // Whoever has stolen a node's key cannot keep its operator from replacing the machine.
    let replaced = consented(&state, state.next_entry(replace(1, 8), Vec::new(), NOW), &machines(&[2, 3, 4]));
    assert_eq!(state.check_entry(&replaced), Ok(()));
    // By its word alone twice a day; what the members agree to is not counted.
    for machine in 8..10 {
        assert_eq!(state.check_entry(&by_operator(&state, 1, machine)), Ok(()));
        let entry = by_operator(&state, 1, machine);
        let entry = states::voted_for(&state, (entry.action, NOW), entry.reason, (&[], &machines(&[2, 3, 4])));
        state.advance(&entry).unwrap();
    }
    let third = state.check_entry(&by_operator(&state, 1, 10));
    assert_eq!(third, Err(LedgerError::Refused(11, Refusal::Member(MemberRefusal::TooOften(1)))));
    for machine in 10..16 {
        advance(&mut state, replace(1, machine), &[2, 3, 4]);
    }
}

#[test]
fn a_members_own_word_fills_no_ledger() {
    let mut state = founded(4, 2);
    for later in 1..=40 {
        let time = NOW + later * 50_000;
        let action = renewed(1, later, |card| card.until = 9_000_000);
        state.advance(&voted(&state, action, time, &machines(&[1, 2, 3]))).unwrap();
    }
    let next = |time| {
        let action = renewed(1, 41, |card| card.until = 9_000_000);
        state.check_entry(&state.next_entry(action, Vec::new(), time))
    };
    let often = Err(LedgerError::Refused(41, Refusal::Member(MemberRefusal::TooOften(1))));
    let month = 30 * 86_400;
    assert_eq!((next(NOW + 49_999 + month), next(NOW + 50_000 + month)), (often, Ok(())));
}

#[test]
fn an_operator_replaces_its_own_machine_and_no_other() {
    let state = founded(4, 2);
    let Action::Members(change) = replace(2, 8) else { unreachable!() };
    let by = |whom: u16| operator(&name(whom)).sign(&change.signed_by_operator(state.id(), &first_key(2))).to_vec();
    let demand = |action: &Action, reason: &[u8]| state.demand(action, reason).map(|demand| demand.needed);
    let unproven = || Err(MemberRefusal::Unproven.into());
    assert_eq!(demand(&replace(2, 8), &by(2)), Ok(0));
    assert_eq!((demand(&replace(2, 8), &by(3)), demand(&replace(2, 8), &[0; 64])), (unproven(), unproven()));
    // Without a word of its own it takes that of the members.
    assert_eq!(demand(&replace(2, 8), &[]), Ok(3));
    // Whoever follows the ledger sees it, whoever voted for it.
    let mut entry = voted(&state, replace(2, 8), NOW, &machines(&[1, 2, 3]));
    assert_eq!(state.clone().advance(&entry), Ok(()));
    entry = states::voted_for(&state, (replace(2, 8), NOW), by(3), (&[], &machines(&[1, 2, 3])));
    assert_eq!(state.clone().advance(&entry), Err(LedgerError::Refused(1, MemberRefusal::Unproven.into())));
    entry = states::voted_for(&state, (replace(2, 8), NOW), by(2), (&[], &machines(&[1, 2, 3])));
    assert_eq!(state.clone().advance(&entry), Ok(()));
    // In another group it is nobody's word.
    let other = operator(&name(2)).sign(&change.signed_by_operator(founded(5, 2).id(), &first_key(2)));
    assert_eq!(demand(&replace(2, 8), &other), unproven());
    // The rest is for each node's policy.
    assert_eq!((demand(&remove(2), &by(2)), demand(&add(5), &by(2))), (Ok(3), Ok(3)));
}

/// What an operator signed for a machine that it then threw away is good for nothing once another one is there.
#[test]
fn an_operators_word_is_for_the_machine_that_it_has_now() {
    let mut state = founded(4, 2);
    let thrown_away = by_operator(&state, 2, 8);
    assert_eq!(state.check_entry(&thrown_away), Ok(()));
    advance(&mut state, replace(2, 9), &[1, 2, 3]);
    let again = state.next_entry(thrown_away.action, thrown_away.reason, NOW);
    assert_eq!(state.check_entry(&again), Err(LedgerError::Refused(2, MemberRefusal::Unproven.into())));
}

/// No member keeps another from coming, moving or being replaced by naming what is the other's.
#[test]
fn a_members_own_word_bars_nobody() {
    let mut state = founded(4, 2);
    let new = content_of(5, 7);
    advance(&mut state, renewed(2, 5, |card| card.api_address = new.peer_address.clone()), &[1, 2, 3]);
    assert_eq!(state.check(&add(5)), Ok(()));
    // The key of another operator does not come by one's own operator's word.
    let mut own = content_of(2, 8);
    own.operator_key = new.operator_key;
    let change = MemberChange::Replace { node: 2, card: sign(own, &keys_of(2, 8)) };
    let reason = operator(&name(2)).sign(&change.signed_by_operator(state.id(), &first_key(2))).to_vec();
    assert_eq!(state.demand(&Action::Members(change), &reason), Err(MemberRefusal::Unproven.into()));
    assert_eq!(state.check(&add(5)), Ok(()));
}

/// A clock that is years ahead, or a thief, does not make a card that no other one follows.
#[test]
fn a_card_is_not_of_the_future() {
    let state = founded(4, 2);
    let made = |made: u64| {
        let action = renewed(2, 5, |card| (card.made, card.until) = (made, u64::MAX));
        state.check_entry(&state.next_entry(action, Vec::new(), NOW))
    };
    let future = Err(LedgerError::Refused(1, MemberRefusal::Future.into()));
    assert_eq!((made(NOW + 172_800), made(NOW + 172_801), made(u64::MAX)), (Ok(()), future.clone(), future));
}

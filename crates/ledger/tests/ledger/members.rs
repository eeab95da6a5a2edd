//! Members who come, go and change.

use theta_agreement::MemberKeys;
use theta_ledger::founding::{Card, CardContent, Founding, FoundingError, NodeSignatures};
use theta_ledger::{
    Action, CertifiedEntry, Consent, Demand, DropReason, Genesis, Input, LedgerError, LedgerState, MemberChange,
    MemberRefusal, Outcome, Refusal, Warrant,
};
use theta_names::KeyState;
use theta_statements::{KeyChange, StateChange};

use crate::keys::operator;
use crate::net::{Net, keys, keys_of, node};
use crate::states::{self, activated, consented, create, machines, set};

pub(crate) fn name(number: u16) -> String {
    format!("node {number:02}")
}

pub(crate) fn content_of(number: u16, machine: u8) -> CardContent {
    CardContent {
        name: name(number).parse().unwrap(),
        ceremony_key: keys_of(number, machine).member().verifying_key().bytes().try_into().unwrap(),
        tls_key: [machine.wrapping_mul(40).wrapping_add(u8::try_from(number).unwrap()); 32],
        operator_key: operator(&name(number)).id().unwrap(),
        peer_address: format!("n{number}.example:7100").parse().unwrap(),
        api_address: format!("n{number}.example:7101").parse().unwrap(),
        made: 1_000_000,
        until: 2_000_000,
    }
}

/// The key of ceremonies of a member's first machine.
pub(crate) fn first_key(number: u16) -> [u8; 32] {
    content_of(number, 7).ceremony_key
}

pub(crate) fn sign(content: CardContent, keys: &MemberKeys) -> Card {
    let signature = keys.sign(&content.signed());
    content.with_signature(signature, &NodeSignatures).unwrap()
}

pub(crate) fn card_of(number: u16, machine: u8) -> Card {
    sign(content_of(number, machine), &keys_of(number, machine))
}

pub(crate) fn founding(n: u16, k: u16) -> Founding {
    Founding::assemble("test", k, (1..=n).map(|number| card_of(number, 7)).collect()).unwrap()
}

pub(crate) fn founded(n: u16, k: u16) -> LedgerState {
    LedgerState::new(&Genesis::of(&founding(n, k)).unwrap())
}

/// A member's next card: something changed, made so much later.
fn renewed(number: u16, later: u64, change: impl Fn(&mut CardContent)) -> Action {
    let mut content = content_of(number, 7);
    content.made += later;
    change(&mut content);
    Action::Members(MemberChange::Renew { node: number, card: sign(content, &keys(number)) })
}

pub(crate) fn replace(number: u16, machine: u8) -> Action {
    Action::Members(MemberChange::Replace { node: number, card: card_of(number, machine) })
}

pub(crate) fn add(number: u16) -> Action {
    Action::Members(MemberChange::Add(card_of(number, 7)))
}

const fn remove(number: u16) -> Action {
    Action::Members(MemberChange::Remove { node: number })
}

/// The next entry, at this time, with the consents and the votes of these machines.
pub(crate) fn voted(state: &LedgerState, action: Action, time: u64, voters: &[MemberKeys]) -> CertifiedEntry {
    states::voted(state, (action, time), voters, voters)
}

const NOW: u64 = 1_500_000;

/// The entry in which a member's operator replaces its machine.
pub(crate) fn by_operator(state: &LedgerState, number: u16, machine: u8) -> theta_ledger::Entry {
    let Action::Members(change) = replace(number, machine) else { unreachable!() };
    let gone = state.seats()[&node(number)].card().unwrap().content().ceremony_key;
    let reason = operator(&name(number)).sign(&change.signed_by_operator(state.id(), &gone)).to_vec();
    state.next_entry(Action::Members(change), reason, NOW)
}

pub(crate) fn advance(state: &mut LedgerState, action: Action, voters: &[u16]) {
    let entry = voted(state, action, NOW, &machines(voters));
    state.advance(&entry).unwrap();
}

fn refused(state: &LedgerState, action: &Action) -> MemberRefusal {
    match state.check(action) {
        Err(Refusal::Member(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_ledger_of_a_founding_has_its_fingerprint() {
    let founding = founding(4, 2);
    let state = founded(4, 2);
    assert_eq!(state.id().as_bytes(), founding.fingerprint().as_bytes());
    let seats: Vec<_> = state.seats().iter().map(|(node, seat)| (node.get(), seat.card().unwrap().clone())).collect();
    assert_eq!(seats, (1..=4).map(|number| (number, card_of(number, 7))).collect::<Vec<_>>());
    assert_eq!(state.next_number(), Some(node(5)));
    // The same members without cards are another ledger, and its members do not change.
    let plain = LedgerState::new(&crate::net::genesis(4, 2));
    assert_ne!(plain.id(), state.id());
    assert_eq!(refused(&plain, &add(5)), MemberRefusal::NoFounding);
}

#[test]
fn whoever_has_the_founding_follows_all_changes() {
    let mut state = founded(4, 2);
    advance(&mut state, add(5), &[1, 2, 3]);
    // Who came counts from the next height on, and a quorum is larger now.
    let by =
        |state: &LedgerState, voters: &[u16]| state.clone().advance(&voted(state, remove(1), NOW, &machines(voters)));
    assert_eq!((state.quorum(), by(&state, &[1, 2, 3])), (4, Err(LedgerError::Certificate(2))));
    assert_eq!(by(&state, &[1, 2, 3, 5]), Ok(()));
    advance(&mut state, remove(1), &[2, 3, 4, 5]);
    let numbers: Vec<u16> = state.members().iter().map(|member| member.node().get()).collect();
    assert_eq!(numbers, [2, 3, 4, 5]);
    // Who has left does not count, and its number is nobody's.
    assert_eq!(by(&state, &[1, 2, 3]), Err(LedgerError::Refused(3, Refusal::NoMember(1))));
    let of = |voters: &[u16]| state.clone().advance(&voted(&state, add(6), NOW, &machines(voters)));
    assert_eq!((of(&[1, 2, 3]), of(&[2, 3, 5])), (Err(LedgerError::Certificate(3)), Ok(())));
    assert_eq!(state.next_number(), Some(node(6)));
    // A machine in a member's place counts, and the one before it does not.
    advance(&mut state, replace(2, 8), &[2, 3, 4]);
    assert_eq!(state.seats()[&node(2)].since(), 3);
    let entry = |machine| voted(&state, add(6), NOW, &[keys_of(2, machine), keys(3), keys(4)]);
    assert_eq!(state.clone().advance(&entry(7)), Err(LedgerError::Certificate(4)));
    assert_eq!(state.clone().advance(&entry(8)), Ok(()));
}

#[test]
fn no_member_has_what_another_has_or_had() {
    let mut state = founded(4, 2);
    let with = |change: &dyn Fn(&mut CardContent)| {
        let mut content = content_of(5, 7);
        change(&mut content);
        Action::Members(MemberChange::Add(sign(content, &keys(5))))
    };
    let one = content_of(1, 7);
    let double = |what| MemberRefusal::Double { node: 1, what };
    assert_eq!(refused(&state, &with(&|card| card.name = "NODE 01".parse().unwrap())), double("name"));
    assert_eq!(refused(&state, &with(&|card| card.tls_key = one.tls_key)), double("TLS key"));
    assert_eq!(refused(&state, &with(&|card| card.operator_key = one.operator_key)), double("operator's key"));
    // An address is nobody's: who names another's cannot answer there, and keeps nobody away by it.
    for address in [&one.peer_address, &one.api_address] {
        assert_eq!(state.check(&with(&|card| card.peer_address = address.clone())), Ok(()));
    }
    assert_eq!(refused(&state, &Action::Members(MemberChange::Add(card_of(1, 7)))), MemberRefusal::SpentKey);
    // A key that was a member's comes back neither to its place nor to another.
    advance(&mut state, replace(1, 8), &[1, 2, 3]);
    assert_eq!(refused(&state, &replace(1, 7)), MemberRefusal::SpentKey);
    assert_eq!(refused(&state, &replace(1, 8)), MemberRefusal::SpentKey);
    let other = Action::Members(MemberChange::Replace { node: 2, card: card_of(1, 9) });
    assert_eq!(refused(&state, &other), MemberRefusal::OtherCard { node: 2, what: "name" });
}

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
fn who_holds_a_key_does_not_leave() {
    let mut state = founded(4, 2);
    advance(&mut state, create("a", 1, 2, &[1, 2, 3]), &[1, 2, 3]);
    assert_eq!(refused(&state, &remove(1)), MemberRefusal::Busy { node: 1, ceremony: 1 });
    advance(&mut state, activated(1, 2, 3, 9), &[1, 2, 3]);
    assert_eq!(refused(&state, &remove(1)), MemberRefusal::Holder { node: 1, keys: "a@1".to_owned() });
    assert_eq!(state.check(&remove(4)), Ok(()));
    advance(&mut state, set("a", None, KeyState::Destroyed, 1), &[1, 2, 3]);
    advance(&mut state, remove(1), &[1, 2, 3]);
    advance(&mut state, remove(2), &[2, 3, 4]);
    // k = 2 are left.
    assert_eq!(refused(&state, &remove(3)), MemberRefusal::TooFew { k: 2 });
}

/// What waits for its destruction keeps its holders until then, and not until some entry after it.
#[test]
fn who_holds_what_is_doomed_leaves_when_its_time_has_come() {
    let mut state = founded(4, 2);
    advance(&mut state, create("a", 1, 2, &[1, 2, 3]), &[1, 2, 3]);
    advance(&mut state, activated(1, 2, 3, 9), &[1, 2, 3]);
    let (key, doom) = ("a".parse().unwrap(), NOW + 10_000);
    let change = StateChange { key, version: None, state: KeyState::Destroyed, generation: 1, not_before: doom };
    advance(&mut state, Action::SetState(change), &[1, 2, 3]);
    // A ceremony of what is doomed does not outlive it, and keeps nobody either.
    let recover = KeyChange::Recover { key: "a".parse().unwrap(), version: None, node: 1 };
    advance(&mut state, states::change(7, recover), &[1, 2, 3]);
    let at = |state: &LedgerState, time| state.clone().advance(&voted(state, remove(1), time, &machines(&[1, 2, 3])));
    let busy = MemberRefusal::Busy { node: 1, ceremony: 4 };
    assert_eq!(at(&state, doom - 1), Err(LedgerError::Refused(5, busy.into())));
    let end = Action::End { ceremony: 4, outcome: Outcome::Aborted };
    let mut ended = state.clone();
    advance(&mut ended, end, &[1, 2, 3]);
    let holds = MemberRefusal::Holder { node: 1, keys: "a@1".to_owned() };
    assert_eq!(at(&ended, doom - 1), Err(LedgerError::Refused(6, holds.into())));
    for state in [&state, &ended] {
        assert_eq!((state.check(&remove(1)), at(state, doom)), (Ok(()), Ok(())));
        let mut after = state.clone();
        after.advance(&voted(state, remove(1), doom, &machines(&[1, 2, 3]))).unwrap();
        assert_eq!(after.keys()[&"a".parse().unwrap()].state, KeyState::Destroyed);
        assert!(after.running().is_empty() && !after.seats().contains_key(&node(1)));
    }
}

/// Who shows a TLS key that was a member's is told by which entry it ceased to be.
#[test]
fn the_keys_of_those_who_left_are_remembered() {
    let mut state = founded(4, 2);
    let tls = |number, machine| content_of(number, machine).tls_key;
    assert!(state.former().is_empty());
    advance(&mut state, replace(2, 8), &[1, 2, 3]);
    advance(&mut state, renewed(3, 5, |card| card.peer_address = "other.example:1".parse().unwrap()), &[1, 3, 4]);
    assert_eq!(state.former().iter().collect::<Vec<_>>(), [(&tls(2, 7), &1)], "an address is no key");
    advance(&mut state, renewed(3, 6, |card| card.tls_key = [0xee; 32]), &[1, 3, 4]);
    assert_eq!(state.former(), &[(tls(2, 7), 1), (tls(3, 7), 3)].into());
    // Whoever comes back to a key is a member with it.
    advance(&mut state, renewed(3, 7, |_| ()), &[1, 3, 4]);
    assert_eq!(state.former(), &[(tls(2, 7), 1), ([0xee; 32], 4)].into());
    advance(&mut state, remove(4), &[1, 3, 4]);
    assert_eq!(state.former(), &[(tls(2, 7), 1), ([0xee; 32], 4), (tls(4, 7), 5)].into());
}

/// A machine that nobody speaks to reads entries wherever it finds them: those that are certified it takes, and no others.
#[test]
fn entries_prove_themselves_whoever_had_them() {
    let mut net = Net::of(Genesis::of(&founding(4, 2)).unwrap(), 4, 5);
    let mut state = founded(4, 2);
    let first = voted(&state, replace(2, 8), NOW, &machines(&[1, 3, 4]));
    let few = voted(&state, replace(2, 8), NOW, &machines(&[1, 3]));
    state.advance(&first).unwrap();
    let second = voted(&state, add(5), NOW, &machines(&[1, 3, 4]));
    let mut feed = |entries: &[&CertifiedEntry]| {
        let entries: Vec<CertifiedEntry> = entries.iter().copied().cloned().collect();
        net.feed(node(2), &|replica, disk| replica.handle(Input::Entries(entries.clone()), disk));
        net.nodes[&node(2)].replica.as_ref().unwrap().state().height()
    };
    assert_eq!((feed(&[&few]), feed(&[&second])), (0, 0));
    // What comes after a false one is not looked at.
    assert_eq!(feed(&[&few, &first]), 0);
    assert_eq!((feed(&[&first, &second]), feed(&[&first])), (2, 2));
}

#[test]
fn what_is_read_is_what_was_written() {
    let actions = [add(5), replace(2, 8), renewed(2, 1, |_| ()), remove(3)];
    for action in actions {
        let bytes = action.encode();
        assert_eq!(Action::decode(&bytes).as_ref(), Ok(&action));
        assert!((0..bytes.len()).all(|len| Action::decode(&bytes[..len]).is_err()));
    }
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

fn all_know(net: &Net, members: usize) -> bool {
    net.nodes.values().filter_map(|node| node.replica.as_ref()).all(|it| it.state().members().len() == members)
}

#[test]
fn a_group_of_replicas_takes_in_replaces_and_lets_go() {
    let mut net = Net::of(Genesis::of(&founding(4, 2)).unwrap(), 4, 3);
    net.ask_all(&add(5));
    assert!(net.run_until(100, |net| net.all_at(1)));
    // It knows the founding, and reads the rest.
    net.join(node(5));
    assert!(net.run_until(100, |net| net.all_at(1) && all_know(net, 5)));
    // One loses everything. Its operator brings another machine, and nobody else is asked.
    let Action::Members(change) = replace(3, 8) else { unreachable!() };
    let ledger = net.genesis.id();
    let reason = operator(&name(3)).sign(&change.signed_by_operator(&ledger, &first_key(3))).to_vec();
    net.exchange(node(3), 8);
    net.feed(node(3), &|replica, disk| replica.handle(Input::Propose(replace(3, 8), reason.clone()), disk));
    assert!(net.run_until(200, |net| net.all_at(2)), "{:?}", net.nodes[&node(3)].dropped);
    // Four of five decide, the new ones among them.
    net.stop(node(1));
    net.grant(2..=5, &remove(1));
    net.ask([2, 3, 4, 5], &remove(1));
    assert!(net.run_until(200, |net| net.all_at(3) && all_know(net, 4)));
    // Who has left hears of it, and votes no more.
    net.start(node(1));
    net.ask_all(&create("a", 1, 2, &[2, 3, 4]));
    assert!(net.run_until(200, |net| net.all_at(4)));
    let certificate = &net.nodes[&node(2)].disk.entries[3].certificate;
    assert!(certificate.signatures().keys().all(|party| party.get() != 1));
    assert!(net.nodes.values().all(|node| node.blamed.is_empty()));
    let told = net.nodes[&node(1)].dropped.iter().all(|(_, why)| matches!(why, DropReason::Refused(_)));
    assert!(told);
}

#[test]
fn a_warrant_of_nobody_is_none() {
    assert!(matches!(Warrant::new(*founded(3, 2).id(), 1, NOW, Vec::new()), Err(FoundingError::Text(_))));
}

/// What t members want they do not get, and what a quorum agreed to before other changes it has not agreed to after them.
#[test]
fn who_joins_and_leaves_takes_the_consents_of_a_quorum() {
    let mut state = founded(4, 2);
    for action in [add(5), remove(4), replace(4, 8)] {
        let with = |consenting: &[u16]| {
            let entry = states::voted_for(
                &state,
                (action.clone(), NOW),
                b"because".to_vec(),
                (&machines(consenting), &machines(&[1, 2, 3, 4])),
            );
            state.clone().advance(&entry)
        };
        let few = |got| Err(LedgerError::Refused(1, Refusal::Consents { needed: 3, got }));
        assert_eq!((with(&[]), with(&[1]), with(&[1, 2]), with(&[1, 2, 3])), (few(0), few(1), few(2), Ok(())));
    }
    // A machine that was replaced consents to nothing, as it votes for nothing.
    advance(&mut state, replace(4, 8), &[1, 2, 3]);
    let by = |machine: u8| {
        let consenting = [keys(1), keys(2), keys_of(4, machine)];
        let voters = machines(&[1, 2, 3]);
        let entry = states::voted_for(&state, (add(5), NOW), Vec::new(), (&consenting, &voters));
        state.clone().advance(&entry)
    };
    assert!(matches!(by(7), Err(LedgerError::Refused(2, Refusal::Consents { .. }))));
    assert_eq!(by(8), Ok(()));
    // Once the members have changed, what was agreed to before is not agreed to any more.
    let old = state.consent_subject(&remove(3));
    advance(&mut state, renewed(1, 3, |_| ()), &[1, 2, 3]);
    let consents = [1, 2, 3].map(|number| Consent::give(&old, &keys(number), NOW)).to_vec();
    let entry = theta_ledger::Entry { consents, ..state.next_entry(remove(3), Vec::new(), NOW) };
    assert!(matches!(state.check_entry(&entry), Err(LedgerError::Refused(3, Refusal::Consents { .. }))));
    let entry = consented(&state, entry, &machines(&[1, 2, 3]));
    assert_eq!(state.check_entry(&entry), Ok(()));
}

/// A liar tells of the replacement first, with its own consent, so that its operator's word is not news.
#[test]
fn an_operators_word_is_news_though_the_change_is_not() {
    let mut net = Net::of(Genesis::of(&founding(4, 2)).unwrap(), 4, 5);
    net.stop(node(3));
    // One member wants it by its policy: too few.
    net.ask([4], &replace(3, 8));
    net.grant([1, 2], &replace(3, 8));
    net.run_until(20, |_| false);
    assert!(net.all_at(0));
    assert!(net.nodes[&node(1)].replica.as_ref().unwrap().wants(&replace(3, 8).digest()));
    let Action::Members(change) = replace(3, 8) else { unreachable!() };
    let reason = operator(&name(3)).sign(&change.signed_by_operator(&net.genesis.id(), &first_key(3))).to_vec();
    net.feed(node(2), &|replica, disk| replica.handle(Input::Propose(replace(3, 8), reason.clone()), disk));
    assert!(net.run_until(100, |net| net.all_at(1)));
    assert_eq!(net.nodes[&node(1)].disk.entries[0].entry.reason, reason);
}

/// Nobody takes part in a change of members that too few want, whatever t members say.
#[test]
fn members_do_not_join_by_the_word_of_a_few() {
    let mut net = Net::of(Genesis::of(&founding(4, 2)).unwrap(), 4, 6);
    net.grant(1..=4, &add(5));
    net.ask([1, 2], &add(5));
    assert!(!net.run_until(60, |net| !net.all_at(0)));
    let waits = net.nodes[&node(1)].replica.as_ref().unwrap().awaited(&add(5).digest());
    assert_eq!(waits, [node(3), node(4)]);
    net.ask([3], &add(5));
    assert!(net.run_until(100, |net| net.all_at(1)));
}

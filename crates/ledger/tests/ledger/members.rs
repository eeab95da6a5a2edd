//! Members who come, go and change.

mod own_word;
mod replicas;

use theta_agreement::MemberKeys;
use theta_ledger::founding::{Card, CardContent, Founding, FoundingError, NodeSignatures};
use theta_ledger::{
    Action, CertifiedEntry, Consent, Genesis, LedgerError, LedgerState, MemberChange, MemberRefusal, Outcome, Refusal,
    Warrant,
};
use theta_names::KeyState;
use theta_statements::{KeyChange, StateChange};

use crate::keys::operator;
use crate::net::{keys, keys_of, node};
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

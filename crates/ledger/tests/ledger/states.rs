//! What may follow from what.

use theta_agreement::{Ballot, MemberKeys, VoteCertificate, VoteKind};
use theta_ledger::{
    Action, AdoptedKey, CertifiedEntry, Consent, Demand, Entry, LedgerError, LedgerState, Outcome, Refusal,
};
use theta_names::{Delivery, Epoch, KeyState, Version};
use theta_statements::{CeremonyRequest, KeyChange, StateChange};

use crate::liars::sign_with;
use crate::net::{genesis, keys};

pub(crate) fn create(name: &str, nonce: u8, k: u16, holders: &[u16]) -> Action {
    let change = KeyChange::Create {
        key: name.parse().unwrap(),
        suite: "frost-ed25519".parse().unwrap(),
        delivery: Delivery::All,
        k,
        holders: holders.to_vec(),
    };
    Action::Begin(CeremonyRequest { nonce: [nonce; 32], change })
}

pub(crate) fn change(nonce: u8, change: KeyChange) -> Action {
    Action::Begin(CeremonyRequest { nonce: [nonce; 32], change })
}

pub(crate) fn public(k: u16, n: u16, key: u8) -> Vec<u8> {
    format!("key {key}, {k} of {n}").into_bytes()
}

pub(crate) fn activated(ceremony: u64, k: u16, n: u16, key: u8) -> Action {
    let outcome = Outcome::Activated { public: public(k, n, key), certificate: b"certificate".to_vec() };
    Action::End { ceremony, outcome }
}

pub(crate) fn set(name: &str, version: Option<u32>, state: KeyState, generation: u64) -> Action {
    let version = version.map(|number| Version::new(number).unwrap());
    Action::SetState(StateChange { key: name.parse().unwrap(), version, state, generation, not_before: 0 })
}

/// An entry with the consents that it takes, of these machines.
pub(crate) fn consented(state: &LedgerState, entry: Entry, machines: &[MemberKeys]) -> Entry {
    let (demand, subject) = (state.demand(&entry.action, &entry.reason), state.consent_subject(&entry.action));
    let demand = demand.unwrap_or_else(|_| Demand::nothing());
    let able = machines.iter().filter(|keys| demand.is_of(keys.party().node())).take(demand.needed);
    let mut consents: Vec<_> = able.map(|keys| Consent::give(&subject, keys, entry.time)).collect();
    consents.sort_by_key(|consent| consent.node);
    Entry { consents, ..entry }
}

/// The next entry, at this time, with the consents that it takes and the votes of these machines.
pub(crate) fn voted(
    state: &LedgerState,
    (action, time): (Action, u64),
    consenting: &[MemberKeys],
    voters: &[MemberKeys],
) -> CertifiedEntry {
    voted_for(state, (action, time), Vec::new(), (consenting, voters))
}

/// The same with a reason.
pub(crate) fn voted_for(
    state: &LedgerState,
    (action, time): (Action, u64),
    reason: Vec<u8>,
    (consenting, voters): (&[MemberKeys], &[MemberKeys]),
) -> CertifiedEntry {
    let entry = consented(state, state.next_entry(action, reason, time), consenting);
    let (ballot, digest) = (Ballot::new(VoteKind::Precommit, 0), entry.digest(state.id()));
    let place = (entry.height, &entry.previous);
    let signed = voters.iter().map(|keys| (keys.party(), sign_with(keys, state.id(), place, ballot, &digest)));
    let certificate = VoteCertificate::new(ballot, digest, signed.collect());
    CertifiedEntry { entry, certificate, warrants: Vec::new() }
}

/// The machines of these numbers.
pub(crate) fn machines(numbers: &[u16]) -> Vec<MemberKeys> {
    numbers.iter().map(|number| keys(*number)).collect()
}

/// An entry that these nodes signed, with the consents of whoever has to give one.
pub(crate) fn certified(state: &LedgerState, action: Action, signers: &[u16]) -> CertifiedEntry {
    let all: Vec<u16> = state.members().iter().map(|member| member.node().get()).collect();
    voted(state, (action, 5), &machines(&all), &machines(signers))
}

pub(crate) fn advance(state: &mut LedgerState, action: Action) {
    let all: Vec<u16> = state.members().iter().map(|member| member.node().get()).collect();
    let entry = certified(state, action, &all);
    state.advance(&entry).unwrap();
}

fn refused(state: &LedgerState, action: &Action) -> Refusal {
    state.check(action).unwrap_err()
}

#[test]
fn a_key_lives_through_its_states() {
    let mut state = LedgerState::new(&genesis(4, 2));
    let name = "sign".parse().unwrap();
    advance(&mut state, create("sign", 1, 2, &[1, 2, 3]));
    assert_eq!(state.running().len(), 1);
    assert_eq!(refused(&state, &create("sign", 2, 2, &[1, 2, 3])), Refusal::Exists("sign".parse().unwrap()));
    advance(&mut state, activated(1, 2, 3, 9));
    assert!(state.running().is_empty());
    let line = &state.keys()[&name];
    assert_eq!((line.primary(), line.generation), (Some(Version::FIRST), 0));

    // One successor an epoch: the second refresh waits for the first.
    let refresh = |nonce| change(nonce, KeyChange::Refresh { key: name.clone(), version: None });
    advance(&mut state, refresh(3));
    assert_eq!(refused(&state, &refresh(4)), Refusal::Busy(3));
    // Once.
    assert_eq!(refused(&state, &refresh(3)), Refusal::Used(3));
    advance(&mut state, activated(3, 2, 3, 9));
    assert_eq!(refused(&state, &refresh(3)), Refusal::Used(3));
    let version = &state.keys()[&name].versions[&Version::FIRST];
    assert_eq!(version.serving().unwrap().epoch, Epoch::FIRST.next().unwrap());
    assert_eq!(version.epochs.len(), 2);

    advance(&mut state, change(5, KeyChange::Rotate { key: name.clone() }));
    advance(&mut state, activated(5, 2, 3, 7));
    let line = &state.keys()[&name];
    assert_eq!(line.state_of(Version::FIRST), Some(KeyState::Retired));
    assert_eq!(line.primary(), Version::new(2));

    // An old enable does not undo a newer disable.
    advance(&mut state, set("sign", None, KeyState::Disabled, 1));
    assert_eq!(refused(&state, &set("sign", None, KeyState::Active, 1)), Refusal::Generation { at: 1, named: 1 });
    advance(&mut state, set("sign", None, KeyState::Active, 2));
    advance(&mut state, set("sign", None, KeyState::Destroyed, 3));
    let gone = Refusal::State { key: "sign".to_owned(), state: KeyState::Destroyed };
    assert_eq!(refused(&state, &refresh(9)), gone);
    assert_eq!(refused(&state, &set("sign", None, KeyState::Active, 4)), gone);
    assert_eq!(refused(&state, &create("sign", 10, 2, &[1, 2])), Refusal::Exists(name));
}

#[test]
fn what_cannot_succeed_does_not_begin() {
    let mut state = LedgerState::new(&genesis(4, 2));
    assert_eq!(refused(&state, &create("a", 1, 2, &[1, 2, 5])), Refusal::NoMember(5));
    assert!(matches!(refused(&state, &create("a", 1, 2, &[1, 2, 2])), Refusal::Holders(_)));
    assert!(matches!(refused(&state, &create("a", 1, 3, &[1, 2])), Refusal::Holders(_)));
    advance(&mut state, create("a", 1, 2, &[1, 2]));
    advance(&mut state, activated(1, 2, 2, 3));
    let recover = |node| change(2, KeyChange::Recover { key: "a".parse().unwrap(), version: None, node });
    // Of two holders of a key of two, one that forgot leaves one: nobody can help it.
    assert!(matches!(refused(&state, &recover(1)), Refusal::Holders(_)));
    assert_eq!(refused(&state, &recover(3)), Refusal::NotHolder { node: 3, key: "a".to_owned() });
    assert_eq!(refused(&state, &activated(1, 2, 2, 3)), Refusal::NoCeremony(1));
}

#[test]
fn keys_of_dealers_are_adopted_in_their_order() {
    let mut state = LedgerState::new(&genesis(3, 2));
    let adopt = |version| {
        let suite = "sh00-2048".parse().unwrap();
        let (key, version) = ("rsa".parse().unwrap(), Version::new(version).unwrap());
        let public = b"a modulus".to_vec();
        Action::Adopt(AdoptedKey {
            key,
            version,
            epoch: Epoch::FIRST,
            suite,
            delivery: Delivery::All,
            k: 2,
            holders: vec![1, 2, 3],
            public,
        })
    };
    advance(&mut state, adopt(2));
    assert_eq!(refused(&state, &adopt(1)), Refusal::Exists("rsa".parse().unwrap()));
    advance(&mut state, adopt(3));
    assert_eq!(state.keys()[&"rsa".parse().unwrap()].primary(), Version::new(3));
}

#[test]
fn what_is_read_is_what_was_written() {
    let state = LedgerState::new(&genesis(3, 2));
    let suite = "sh00-2048".parse().unwrap();
    let (key, version) = ("rsa".parse().unwrap(), Version::FIRST);
    let adopted = AdoptedKey {
        key,
        version,
        epoch: Epoch::FIRST,
        suite,
        delivery: Delivery::All,
        k: 2,
        holders: vec![1, 2, 3],
        public: vec![1, 2],
    };
    let actions = [
        Action::Adopt(adopted.clone()),
        Action::Adopt(AdoptedKey { delivery: Delivery::Quorum, ..adopted }),
        create("a", 1, 2, &[1, 2]),
        activated(1, 2, 3, 4),
        Action::End { ceremony: 7, outcome: Outcome::Recovered },
        Action::End { ceremony: 8, outcome: Outcome::Aborted },
        set("a", Some(2), KeyState::Retired, 9),
        set("a", None, KeyState::Destroyed, 10),
    ];
    for action in actions {
        let bytes = action.encode();
        assert_eq!(Action::decode(&bytes).as_ref(), Ok(&action));
        assert!((0..bytes.len()).all(|len| Action::decode(&bytes[..len]).is_err()));
        let entry = state.next_entry(action, b"because".to_vec(), 8);
        assert_eq!(Entry::decode(&entry.encode()).as_ref(), Ok(&entry));
        let consents = vec![Consent::give(&state.consent_subject(&entry.action), &keys(1), 9)];
        let entry = Entry { consents, ..entry };
        assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
    }
    assert!(Entry::decode(&vec![1; theta_ledger::MOST_ENTRY + 1]).is_err());
}

/// What is doomed is destroyed by the first entry of that time or later, and is taken back by none that comes within an hour of it.
#[test]
fn what_is_doomed_is_destroyed_in_time() {
    let mut state = LedgerState::new(&genesis(4, 2));
    advance(&mut state, create("a", 1, 2, &[1, 2, 3, 4]));
    advance(&mut state, activated(1, 2, 4, 1));
    let key: theta_names::KeyName = "a".parse().unwrap();
    let start = state.time().max(1_000);
    let doom = |generation| {
        let not_before = start + 10_000;
        let (key, version, destroyed) = (key.clone(), None, KeyState::Destroyed);
        Action::SetState(StateChange { key, version, state: destroyed, generation, not_before })
    };
    let at = |state: &LedgerState, action: Action, time: u64| {
        let machines = machines(&[1, 2, 3, 4]);
        voted(state, (action, time), &machines, &machines)
    };
    let entry = at(&state, doom(1), start);
    state.advance(&entry).unwrap();
    let line = |state: &LedgerState| state.keys()[&key].clone();
    assert_eq!(line(&state).state_of(Version::FIRST), Some(KeyState::Disabled));
    assert_eq!(line(&state).doom_of(Version::FIRST), Some(start + 10_000));
    assert_eq!(line(&state).state_at(Version::FIRST, start + 9_999), Some(KeyState::Disabled));
    assert_eq!(line(&state).state_at(Version::FIRST, start + 10_000), Some(KeyState::Destroyed));
    // Taken back in time, and then not.
    let entry = at(&state, set("a", None, KeyState::Active, 2), start + 6_399);
    state.advance(&entry).unwrap();
    assert_eq!((line(&state).state, line(&state).doomed), (KeyState::Active, None));
    // A wait that could not be broken off any more is none.
    let short = at(&state, doom(3), start + 6_400);
    assert!(matches!(state.advance(&short), Err(LedgerError::Refused(5, Refusal::Outcome(_)))));
    let entry = at(&state, doom(3), start + 6_399);
    state.advance(&entry).unwrap();
    let late = at(&state, set("a", None, KeyState::Active, 4), start + 6_400);
    assert!(matches!(
        state.advance(&late),
        Err(LedgerError::Refused(6, Refusal::State { state: KeyState::Destroyed, .. }))
    ));
    let entry = at(&state, create("b", 9, 2, &[1, 2, 3]), start + 10_000);
    state.advance(&entry).unwrap();
    assert_eq!((line(&state).state, line(&state).doomed), (KeyState::Destroyed, None));
}

#[test]
fn a_key_keeps_its_delivery_in_every_version_and_sharing() {
    let mut state = LedgerState::new(&genesis(4, 2));
    let (key, suite): (theta_names::KeyName, _) = ("a".parse().unwrap(), "bls04-bn254".parse().unwrap());
    let change =
        KeyChange::Create { key: key.clone(), suite, delivery: Delivery::Quorum, k: 2, holders: vec![1, 2, 3] };
    advance(&mut state, Action::Begin(CeremonyRequest { nonce: [1; 32], change }));
    advance(&mut state, activated(1, 2, 3, 5));
    assert_eq!(state.keys()[&key].versions[&Version::FIRST].delivery, Delivery::Quorum);
    for change in [
        KeyChange::Rotate { key: key.clone() },
        KeyChange::Refresh { key: key.clone(), version: None },
        KeyChange::Reshare { key: key.clone(), version: None, k: 2, holders: vec![2, 3, 4] },
        KeyChange::Recover { key, version: None, node: 2 },
    ] {
        let request = CeremonyRequest { nonce: [2; 32], change };
        assert_eq!(state.begun(&request).unwrap().delivery, Delivery::Quorum, "{request:?}");
    }
}

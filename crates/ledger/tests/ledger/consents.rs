//! Consents of a key's holders: what takes them, and what they are good for.

use theta_ledger::{Action, AdoptedKey, Consent, Entry, LedgerError, LedgerState, Refusal};
use theta_names::codec::Writer;
use theta_names::{Delivery, Epoch, KeyState, Version};
use theta_statements::KeyChange;

use crate::net::{Net, genesis, keys, node};
use crate::states::{activated, advance, certified, change, create, machines, set, voted};

/// Seven nodes of which two may lie, with a key of 3 of 4.
fn with_key() -> LedgerState {
    let mut state = LedgerState::new(&genesis(7, 3));
    advance(&mut state, create("vault", 1, 3, &[1, 2, 3, 4]));
    advance(&mut state, activated(1, 3, 4, 9));
    state
}

fn name() -> theta_names::KeyName {
    "vault".parse().unwrap()
}

/// The verdict on an action with the consents of these nodes, given at `now`, in an entry of time 100.
fn verdict(state: &LedgerState, action: &Action, nodes: &[u16], now: u64) -> Result<(), LedgerError> {
    let entry = state.next_entry(action.clone(), Vec::new(), 100);
    let consents = nodes.iter().map(|node| Consent::give(&state.consent_subject(action), &keys(*node), now)).collect();
    state.check_entry(&Entry { consents, ..entry })
}

#[test]
fn what_moves_a_key_takes_its_own_holders() {
    let state = with_key();
    let (key, version) = (name(), None);
    for action in [
        change(2, KeyChange::Refresh { key: key.clone(), version }),
        change(2, KeyChange::Rotate { key: key.clone() }),
        change(2, KeyChange::Reshare { key: key.clone(), version, k: 2, holders: vec![5, 6, 7] }),
        change(2, KeyChange::Recover { key, version, node: 4 }),
        set("vault", None, KeyState::Destroyed, 1),
        set("vault", None, KeyState::Disabled, 1),
    ] {
        assert_eq!(verdict(&state, &action, &[1, 3, 4], 100), Ok(()), "{action:?}");
        let few = |needed, got| Err(LedgerError::Refused(3, Refusal::Consents { needed, got }));
        assert_eq!(verdict(&state, &action, &[1, 3], 100), few(3, 2), "{action:?}");
        // Others do not count, however many they are.
        assert_eq!(verdict(&state, &action, &[1, 3, 5, 6, 7], 100), few(3, 5), "{action:?}");
        // They stand for a while.
        assert_eq!(verdict(&state, &action, &[1, 3, 4], 50), Ok(()), "{action:?}");
    }
}

#[test]
fn a_consent_is_to_one_action_in_one_ledger() {
    let state = with_key();
    let refresh = |nonce| change(nonce, KeyChange::Refresh { key: name(), version: None });
    let entry = state.next_entry(refresh(2), Vec::new(), 100);
    let with = |ledger: &LedgerState, action: &Action| {
        let consents = [1, 2, 3].map(|node| Consent::give(&ledger.consent_subject(action), &keys(node), 100)).to_vec();
        state.check_entry(&Entry { consents, ..entry.clone() })
    };
    assert_eq!(with(&state, &refresh(2)), Ok(()));
    let few = Err(LedgerError::Refused(3, Refusal::Consents { needed: 3, got: 3 }));
    assert_eq!(with(&state, &refresh(3)), few);
    assert_eq!(with(&LedgerState::new(&genesis(7, 2)), &refresh(2)), few);
    // It ends: an old one is not used in a later entry.
    let old = Entry { time: 100 + 6 * 86_400, ..entry };
    let consents = [1, 2, 3].map(|node| Consent::give(&state.consent_subject(&refresh(2)), &keys(node), 100)).to_vec();
    assert_eq!(state.check_entry(&Entry { consents, ..old }), few);
}

#[test]
fn new_keys_take_more_members_than_may_lie() {
    let state = with_key();
    let few = |needed, got| Err(LedgerError::Refused(3, Refusal::Consents { needed, got }));
    // Two liars make no key of their own, with whatever threshold.
    let own = create("own", 2, 1, &[6]);
    assert_eq!(verdict(&state, &own, &[6, 7], 100), few(3, 2));
    assert_eq!(verdict(&state, &own, &[1, 6, 7], 100), Ok(()));
    let five = create("five", 3, 5, &[1, 2, 3, 4, 5, 6]);
    assert_eq!(verdict(&state, &five, &[1, 2, 3, 4], 100), few(5, 4));
    let adopt = |key: &str, epoch: u32, holders: &[u16]| {
        let (epoch, version, suite) = (Epoch::new(epoch), Version::FIRST, "frost-ed25519".parse().unwrap());
        let (key, holders, public) = (key.parse().unwrap(), holders.to_vec(), b"key".to_vec());
        Action::Adopt(AdoptedKey { key, version, epoch, suite, delivery: Delivery::All, k: 2, holders, public })
    };
    let all_may_lie = verdict(&state, &adopt("dealt", 0, &[6, 7]), &[6, 7], 100);
    assert!(matches!(all_may_lie, Err(LedgerError::Refused(3, Refusal::Holders(_)))), "{all_may_lie:?}");
    assert_eq!(verdict(&state, &adopt("dealt", 0, &[5, 6, 7]), &[6, 7], 100), few(3, 2));
    assert_eq!(verdict(&state, &adopt("dealt", 0, &[5, 6, 7]), &[5, 6, 7], 100), Ok(()));
    // What is said of a key that is known takes those who hold it.
    assert_eq!(verdict(&state, &adopt("vault", 7, &[5, 6, 7]), &[5, 6, 7], 100), few(3, 3));
    assert_eq!(verdict(&state, &adopt("vault", 7, &[5, 6, 7]), &[1, 2, 3], 100), Ok(()));
}

#[test]
fn that_a_share_was_found_its_owner_says() {
    let mut state = with_key();
    advance(&mut state, change(2, KeyChange::Recover { key: name(), version: None, node: 4 }));
    let found = Action::End { ceremony: 3, outcome: theta_ledger::Outcome::Recovered };
    assert_eq!(verdict(&state, &found, &[4], 100), Ok(()));
    let others = |got| Err(LedgerError::Refused(4, Refusal::Consents { needed: 1, got }));
    assert_eq!(verdict(&state, &found, &[1], 100), others(1));
    assert_eq!(verdict(&state, &found, &[], 100), others(0));
}

/// Who was asked tells the others, and each of them whose consent counts is asked, too: once for each that tells of it.
#[test]
fn who_is_asked_by_way_of_another_decides_for_itself() {
    let mut net = Net::new(4, 2, 8);
    net.tick();
    let action = create("a", 1, 2, &[1, 2, 3]);
    net.grant(1..=4, &action);
    net.ask([1], &action);
    net.run_until(40, |_| false);
    for number in 2..=4 {
        assert_eq!(net.nodes[&node(number)].asked, [(action.clone(), b"because".to_vec())], "node {number}");
    }
    assert!(net.nodes[&node(1)].asked.is_empty(), "it was asked by its client");
    net.ask([3], &action);
    assert!(net.run_until(40, |net| net.all_at(1)));
    assert!(net.nodes[&node(2)].asked.len() <= 2, "once by each that tells of it");
}

/// A consent is to an action as the key stands: after any other entry about the key it is to nothing.
#[test]
fn what_was_decided_since_ends_consents() {
    let mut state = with_key();
    let old = change(2, KeyChange::Reshare { key: name(), version: None, k: 3, holders: vec![1, 2, 3, 5] });
    let subject = state.consent_subject(&old);
    advance(&mut state, set("vault", None, KeyState::Disabled, 1));
    advance(&mut state, set("vault", None, KeyState::Active, 2));
    let consents: Vec<_> = [1, 2, 3].map(|node| Consent::give(&subject, &keys(node), 100)).to_vec();
    let entry = Entry { consents, ..state.next_entry(old.clone(), Vec::new(), 100) };
    let few = Err(LedgerError::Refused(5, Refusal::Consents { needed: 3, got: 3 }));
    assert_eq!(state.check_entry(&entry), few);
    assert_eq!(verdict(&state, &old, &[1, 2, 3], 100), Ok(()));
    // Entries about others do not matter.
    let subject = state.consent_subject(&old);
    advance(&mut state, create("other", 9, 3, &[1, 2, 3]));
    assert_eq!(state.consent_subject(&old), subject);
}

/// A consent that has ended, told first, does not keep those that stand from being heard.
#[test]
fn an_ended_consent_vetoes_nothing() {
    let mut net = Net::new(4, 2, 2);
    net.tick();
    let action = create("a", 1, 2, &[1, 2, 3]);
    let subject = LedgerState::new(&net.genesis).consent_subject(&action);
    // One that has ended, and one that ends before anybody else's is there.
    for given in [0, net.now + 2 - 5 * 86_400] {
        let ended = Consent::give(&subject, &keys(4), given);
        let consents = Writer::new(1).u8(5).bytes(&action.encode()).bytes(b"").u16(1);
        let letter = consents.node_id(ended.node).u64(ended.until).raw(&ended.signature).finish();
        for to in 1..=3 {
            net.send(node(4), node(to), letter.clone());
        }
    }
    net.liars.insert(node(4), Box::new(|_, _, _| Vec::new()));
    net.tick();
    net.grant(1..=3, &action);
    net.ask([1, 2], &action);
    assert!(net.run_until(60, |net| net.all_at(1)));
}

/// Clients check consents as members do, whatever a quorum has voted for.
#[test]
fn whoever_follows_takes_no_entry_without_them() {
    let mut state = with_key();
    let refresh = change(2, KeyChange::Refresh { key: name(), version: None });
    let voters = machines(&[1, 2, 3, 4, 5]);
    let bad = voted(&state, (refresh.clone(), 5), &machines(&[1, 2]), &voters);
    let few = LedgerError::Refused(3, Refusal::Consents { needed: 3, got: 2 });
    assert_eq!(state.clone().advance(&bad), Err(few));
    // Who takes one away from an entry has other bytes than those that were voted for.
    let good = certified(&state, refresh, &[1, 2, 3, 4, 5]);
    let mut cut = good.clone();
    cut.entry.consents.pop();
    assert_eq!(state.clone().advance(&cut), Err(LedgerError::Certificate(3)));
    state.advance(&good).unwrap();
}

/// As many lie as may: what they say alone is not decided, whoever's consents they make up.
#[test]
fn liars_alone_begin_nothing() {
    let mut net = Net::new(4, 2, 1);
    let action = create("a", 1, 2, &[1, 2, 3]);
    net.grant(1..=4, &action);
    net.ask([4], &action);
    assert!(!net.run_until(100, |net| net.nodes.values().any(|node| !node.disk.entries.is_empty())));
    let give = |of: u16, by: u16| Consent {
        node: node(of),
        ..Consent::give(&LedgerState::new(&net.genesis).consent_subject(&action), &keys(by), net.now)
    };
    let consents = [give(2, 4), give(4, 4)];
    let writer = Writer::new(1).u8(5).bytes(&action.encode()).bytes(b"").u16(2);
    let forged = consents
        .iter()
        .fold(writer, |writer, consent| writer.node_id(consent.node).u64(consent.until).raw(&consent.signature))
        .finish();
    net.send(node(4), node(1), forged);
    net.run_until(20, |_| false);
    assert!(net.all_at(0));
    net.ask([1], &action);
    assert!(net.run_until(60, |net| net.all_at(1)));
}

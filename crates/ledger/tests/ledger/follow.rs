//! What a client believes that has nothing but the genesis.

use theta_ledger::{CertifiedEntry, LedgerError, LedgerState};

use crate::net::{Net, genesis, node};
use crate::states::{activated, certified, create};

/// Two entries that four nodes decided.
fn history() -> Vec<CertifiedEntry> {
    let mut net = Net::new(4, 2, 11);
    net.ask_all(&create("a", 1, 2, &[1, 2, 3]));
    assert!(net.run_until(60, |net| net.all_at(1)));
    net.ask_all(&activated(1, 2, 3, 5));
    assert!(net.run_until(60, |net| net.all_at(2)));
    net.nodes[&node(1)].disk.entries.clone()
}

#[test]
fn it_follows_what_was_certified() {
    let mut state = LedgerState::new(&genesis(4, 2));
    let entries = history();
    for entry in &entries {
        state.advance(&CertifiedEntry::decode(&entry.encode()).unwrap()).unwrap();
    }
    assert_eq!(state.height(), 2);
    let line = &state.keys()[&"a".parse().unwrap()];
    let serving = line.versions[&line.primary().unwrap()].serving().unwrap();
    assert_eq!((serving.k, &serving.holders[..]), (2, &[1, 2, 3][..]));
    // In this order, and once.
    assert_eq!(state.advance(&entries[1]), Err(LedgerError::Height { expected: 3, got: 2 }));
}

#[test]
fn no_bit_of_it_can_be_changed() {
    let entries = history();
    let mut state = LedgerState::new(&genesis(4, 2));
    let bytes = entries[0].encode();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        if let Ok(entry) = CertifiedEntry::decode(&changed) {
            assert!(state.clone().advance(&entry).is_err(), "byte {at}");
        }
        assert!(CertifiedEntry::decode(&bytes[..at]).is_err());
    }
    state.advance(&entries[0]).unwrap();
}

#[test]
fn it_takes_a_quorum_of_these_members_for_this_ledger() {
    let state = LedgerState::new(&genesis(4, 2));
    let action = || create("a", 1, 2, &[1, 2, 3]);
    let verdict = |signers: &[u16]| state.clone().advance(&certified(&state, action(), signers));
    assert_eq!(verdict(&[1, 2, 3]), Ok(()));
    assert_eq!(verdict(&[1, 2]), Err(LedgerError::Certificate(1)));
    // A stranger's signature counts for nothing, even beside a quorum.
    assert_eq!(verdict(&[1, 2, 5]), Err(LedgerError::Certificate(1)));
    assert_eq!(verdict(&[1, 2, 3, 5]), Err(LedgerError::Certificate(1)));
    // The same members in another group are another ledger.
    let other = LedgerState::new(&genesis(4, 1));
    assert_eq!(state.clone().advance(&certified(&other, action(), &[1, 2, 3, 4])), Err(LedgerError::Fork(1)));
}

#[test]
fn two_histories_are_never_both_followed() {
    let state = LedgerState::new(&genesis(4, 2));
    let (one, other) = (create("a", 1, 2, &[1, 2, 3]), create("b", 2, 2, &[1, 2, 3]));
    let mut followed = state.clone();
    followed.advance(&certified(&state, one, &[1, 2, 3, 4])).unwrap();
    let mut fork = state.clone();
    fork.advance(&certified(&state, other, &[1, 2, 3, 4])).unwrap();
    // Who has followed the one takes nothing that follows the other.
    let next = certified(&fork, activated(1, 2, 3, 5), &[1, 2, 3, 4]);
    assert_eq!(followed.advance(&next), Err(LedgerError::Fork(2)));
}

//! Approvals and signatures take effect once: attacks that repeat old ones.

use theta_custody::{CeremonyError, ChangeError};
use theta_names::{KeyState, Version};
use theta_schemes::Suite;
use theta_statements::{CeremonyRequest, KeyChange, StateChange};
use theta_store::KeyError;

use crate::net::{Net, name};

const SG02: Suite = Suite::Sg02Ristretto255;
/// More ceremonies of a version than reports that are kept.
const FORGETFUL: usize = 17;

/// A group with a key whose rotation was requested by `request` so long ago that no node has its report any more.
fn rotated_long_ago(asked: &[u16]) -> (Net, CeremonyRequest) {
    let mut net = Net::new(2, 4, 11);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let request = net.request(KeyChange::Rotate { key: name("files") });
    let id = net.ask(asked.iter().copied(), &request);
    assert!(net.until(60, |net| (1..=4).all(|node| net.state(node, &id).is_over())));
    // While the report is kept, repeating the request returns it.
    assert_eq!(net.hold(asked[0], &request).unwrap().id, id);
    for _ in 0..FORGETFUL {
        // The oldest reports are dropped, in the order of the seconds in which their ceremonies began.
        net.tick();
        net.run(1..=4, KeyChange::Refresh { key: name("files"), version: Version::new(2) });
    }
    assert!((1..=4).all(|node| net.custodian(node).store().ceremony(&id).unwrap().is_none()));
    (net, request)
}

fn versions(net: &Net) -> Vec<usize> {
    (1..=4).map(|node| net.custodian(node).keys().versions("files").len()).collect()
}

/// The attack: one approval of a rotation made three of them, by repeating the approved change, and finally the same
/// nonce.
#[test]
fn a_request_holds_one_ceremony_for_ever() {
    let (mut net, request) = rotated_long_ago(&[1, 2, 3, 4]);
    for node in 1..=4 {
        assert_eq!(net.hold(node, &request), Err(CeremonyError::Used), "node {node}");
    }
    // A restart does not change that.
    for node in 1..=4 {
        net.kill(node);
        net.start(node);
    }
    net.connect();
    for node in 1..=4 {
        assert_eq!(net.hold(node, &request), Err(CeremonyError::Used), "node {node} after a restart");
    }
    assert_eq!(versions(&net), [2; 4]);
    // With another nonce it is another request, which needs its own approvals and signatures.
    let other = net.request(request.change.clone());
    assert_ne!(other.encode(), request.encode());
    net.ask(1..=4, &other);
}

/// Nodes that joined the others' ceremony have used the request up, too, though no client sent it to them.
#[test]
fn a_request_is_used_up_where_it_was_never_sent() {
    let (mut net, request) = rotated_long_ago(&[1, 2]);
    for node in [3, 4] {
        assert_eq!(net.hold(node, &request), Err(CeremonyError::Used), "node {node}");
    }
    assert_eq!(versions(&net), [2; 4]);
}

fn files(state: KeyState, generation: u64) -> StateChange {
    StateChange { key: name("files"), version: None, state, generation, not_before: 0 }
}

/// The attack: an old enable, signed and approved at its time, undid a newer disable.
#[test]
fn an_old_change_of_state_does_not_undo_a_newer_one() {
    let mut net = Net::new(2, 4, 12);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let at = |net: &Net, generation: u64| (1..=4).all(|node| net.entry(node, "files").generation == generation);
    for (state, generation) in [(KeyState::Disabled, 1), (KeyState::Active, 2), (KeyState::Disabled, 3)] {
        [1, 2].into_iter().for_each(|node| drop(net.change(node, &files(state, generation)).unwrap()));
        assert!(net.until(60, |net| at(net, generation)));
    }
    for restarted in [false, true] {
        if restarted {
            net.kill(1);
            net.start(1);
        }
        for (state, generation) in
            [(KeyState::Active, 2), (KeyState::Disabled, 1), (KeyState::Active, 3), (KeyState::Active, 0)]
        {
            let refused = net.change(1, &files(state, generation)).unwrap_err().to_string();
            let words = format!("names generation {generation} and key files is at 3");
            assert!(refused.contains(&words), "{refused}");
        }
        // The last change may be repeated: its answer may have been lost.
        assert!(net.change(1, &files(KeyState::Disabled, 3)).unwrap().decided);
        assert_eq!((net.entry(1, "files").state, net.entry(1, "files").generation), (KeyState::Disabled, 3));
    }
    // A generation that leaves no room for later ones is refused, too.
    let far = net.change(1, &files(KeyState::Active, u64::MAX)).unwrap_err();
    assert!(matches!(far, ChangeError::Early { at: 3, .. }), "{far}");
    net.connect();
    [1, 3].into_iter().for_each(|node| drop(net.change(node, &files(KeyState::Active, 4)).unwrap()));
    assert!(net.until(60, |net| at(net, 4)));
}

/// Of two changes that name one generation, the group decides one, and all nodes have that one.
#[test]
fn of_two_changes_of_one_generation_one_is_decided() {
    for seed in 0..4 {
        let mut net = Net::new(2, 4, 13 + seed);
        net.create("files", SG02, 2, &[1, 2, 3, 4]);
        for (node, state) in
            [(1, KeyState::Disabled), (2, KeyState::Active), (3, KeyState::Disabled), (4, KeyState::Active)]
        {
            net.change(node, &files(state, 1)).unwrap();
        }
        assert_eq!([1, 3].map(|node| net.entry(node, "files").state), [KeyState::Disabled; 2], "they stop at once");
        assert!(net.until(60, |net| (1..=4).all(|node| net.entry(node, "files").generation == 1)));
        let state = net.entry(1, "files").state;
        assert!((1..=4).all(|node| net.entry(node, "files").state == state && !net.entry(node, "files").frozen));
        let other = if state == KeyState::Disabled { KeyState::Active } else { KeyState::Disabled };
        let refused = net.change(1, &files(other, 1)).unwrap_err();
        assert!(matches!(refused, ChangeError::Key(KeyError::Generation { .. })), "{refused}");
    }
}

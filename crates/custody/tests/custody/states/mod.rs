//! Disabling, enabling, destroying; and consents that were used before.

mod consents;
mod guards;

use std::sync::Arc;

use theta_custody::{CeremonyError, CeremonyState, ChangeError, ResolveError};
use theta_names::{Delivery, Epoch, KeyState, Version};
use theta_schemes::Suite;
use theta_statements::{CancelRequest, KeyChange, StateChange};
use theta_store::KeyError;

use crate::net::{Net, name};

const SG02: Suite = Suite::Sg02Ristretto255;

/// Asks these nodes for the next change of the key's state.
fn ask(net: &mut Net, nodes: &[u16], version: Option<u32>, state: KeyState) -> Result<StateChange, ChangeError> {
    let generation = generation(net, nodes[0]) + 1;
    let change =
        StateChange { key: name("files"), version: version.and_then(Version::new), state, generation, not_before: 0 };
    nodes.iter().try_for_each(|node| net.change(*node, &change).map(drop))?;
    Ok(change)
}

/// Of the last change that this node knows to be decided.
fn generation(net: &Net, node: u16) -> u64 {
    net.custodian(node).ledger().unwrap().keys().get(&name("files")).map_or(0, |line| line.generation)
}

/// Asks k nodes for a change of state, and waits until all nodes that run have followed.
fn change(net: &mut Net, version: Option<u32>, state: KeyState) {
    let change = ask(net, &[1, 2], version, state).unwrap();
    let followed = |net: &Net| {
        let (up, at) = (net.up(), change.generation);
        up.iter().all(|node| net.entry(*node, "files").generation == at && generation(net, *node) == at)
    };
    assert!(net.until(60, followed), "{change:?}");
}

fn states(net: &Net, key: &str) -> Vec<KeyState> {
    net.up().iter().map(|node| net.entry(*node, key).state).collect()
}

#[test]
fn a_disabled_key_serves_again_when_it_is_enabled() {
    let mut net = Net::new(2, 4, 1);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    net.run(1..=4, KeyChange::Rotate { key: name("files") });
    let table = Arc::clone(net.custodian(1).keys());
    let before = table.generation();
    change(&mut net, None, KeyState::Disabled);
    assert!(table.generation() > before);
    for node in 1..=4 {
        let refused = net.custodian(node).keys().resolve(&"files".parse().unwrap(), None).unwrap_err();
        assert!(matches!(&refused, ResolveError::Disabled(key) if key == "files"), "{refused}");
        assert!(!net.entry(node, "files").frozen, "it is decided");
    }
    // The state survives a restart.
    net.kill(1);
    net.start(1);
    net.connect();
    let refused = net.custodian(1).keys().resolve(&"files@1".parse().unwrap(), None).unwrap_err();
    assert!(matches!(refused, ResolveError::Disabled(_)), "{refused}");
    change(&mut net, None, KeyState::Active);
    assert_eq!(net.custodian(4).keys().resolve(&"files".parse().unwrap(), None).unwrap().version.get(), 2);
    change(&mut net, Some(1), KeyState::Disabled);
    assert_eq!(states(&net, "files@1"), [KeyState::Disabled; 4]);
    // An enabled older version decrypts what was encrypted to it, and is not active, since a newer one is.
    change(&mut net, Some(1), KeyState::Active);
    assert_eq!(states(&net, "files@1"), [KeyState::Retired; 4]);
    assert!(net.custodian(1).keys().resolve(&"files@1".parse().unwrap(), None).is_ok());
    change(&mut net, Some(1), KeyState::Active);
    change(&mut net, Some(1), KeyState::Disabled);
    let refused = ask(&mut net, &[1], Some(1), KeyState::Pending).unwrap_err();
    assert!(matches!(refused, ChangeError::Key(KeyError::Transition { .. })), "{refused}");
    let refused = ask(&mut net, &[1], Some(7), KeyState::Disabled).unwrap_err();
    assert!(matches!(refused, ChangeError::Key(KeyError::NoVersion { .. })), "{refused}");
    // A disabled key may be renewed: a suspected theft may be why it is disabled.
    net.run(1..=4, KeyChange::Refresh { key: name("files"), version: Version::new(1) });
    assert_eq!(net.entry(1, "files@1").state, KeyState::Disabled);
    assert_eq!(net.entry(1, "files@1").epoch, Epoch::new(1));
}

/// Safety does not wait: the nodes that were asked stop at once, for good, and the decision follows when enough were asked.
#[test]
fn who_is_asked_to_disable_a_key_stops_at_once() {
    let mut net = Net::new(3, 5, 5);
    net.create("files", SG02, 3, &[1, 2, 3, 4, 5]);
    let asked = ask(&mut net, &[1], None, KeyState::Disabled).unwrap();
    let report = net.change(1, &asked).unwrap();
    assert!(report.frozen && !report.decided, "{report:?}");
    net.until(300, |_| false);
    for restarted in [false, true] {
        if restarted {
            net.kill(1);
            net.start(1);
            net.connect();
        }
        let (here, there) = (net.entry(1, "files"), net.entry(2, "files"));
        assert_eq!((here.state, here.frozen), (KeyState::Disabled, true));
        assert_eq!((there.state, there.frozen), (KeyState::Active, false), "nobody else was asked");
    }
    // Nor does what waits keep the key from being refreshed.
    net.run(1..=5, KeyChange::Refresh { key: name("files"), version: None });
    assert_eq!(net.entry(1, "files").state, KeyState::Disabled);
    for node in [2, 4] {
        net.change(node, &asked).unwrap();
        assert_eq!(net.entry(node, "files").state, KeyState::Disabled);
    }
    let decided = |net: &Net| (1..=5).all(|node| generation(net, node) == 1);
    assert!(net.until(60, decided));
    assert_eq!(states(&net, "files"), [KeyState::Disabled; 5]);
    assert!((1..=5).all(|node| !net.entry(node, "files").frozen));
    // It is asked for again: it is done.
    assert!(net.change(5, &asked).unwrap().decided);
}

/// What one node was asked for and the group does not decide ends with the next change that it does decide.
#[test]
fn enabling_ends_what_was_not_decided() {
    let mut net = Net::new(3, 5, 6);
    net.create("files", SG02, 3, &[1, 2, 3, 4, 5]);
    let lone = ask(&mut net, &[1], None, KeyState::Disabled).unwrap();
    assert_eq!(net.entry(1, "files").state, KeyState::Disabled);
    ask(&mut net, &[2, 3, 4], None, KeyState::Active).unwrap();
    assert!(net.until(60, |net| (1..=5).all(|node| generation(net, node) == 1)));
    assert_eq!(states(&net, "files"), [KeyState::Active; 5]);
    assert!(!net.entry(1, "files").frozen);
    let refused = net.change(1, &lone).unwrap_err();
    assert!(matches!(refused, ChangeError::Key(KeyError::Generation { current: 1, .. })), "{refused}");
    assert_eq!(net.entry(1, "files").state, KeyState::Active);
}

#[test]
fn of_a_destroyed_key_nothing_is_left_that_a_share_follows_from() {
    let mut net = Net::new(2, 4, 2);
    let made = net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let request = net.request(KeyChange::Refresh { key: name("files"), version: None });
    let id = net.begin([1, 2, 3], &request);
    assert!(!net.custodian(1).store().ceremony_inputs(&made).unwrap().is_empty());
    // One that is down follows when it is back.
    net.kill(4);
    change(&mut net, None, KeyState::Destroyed);
    net.start(4);
    net.connect();
    assert!(net.until(60, |net| net.entry(4, "files").state == KeyState::Destroyed));
    net.until(60, |_| false);
    for node in 1..=4 {
        assert!(net.state(node, &id).is_over(), "{:?}", net.state(node, &id));
        let store = net.custodian(node).store();
        let share = |epoch| store.share(&name("files"), Version::FIRST, Epoch::new(epoch)).unwrap();
        assert!((0..3).all(|epoch| share(epoch).is_none()), "node {node}");
        for id in [made, id] {
            assert!(store.ceremony_inputs(&id).unwrap().is_empty(), "node {node}");
        }
        let refused = net.custodian(node).keys().resolve(&"files".parse().unwrap(), None).unwrap_err();
        assert!(matches!(refused, ResolveError::Destroyed(_)), "{refused}");
    }
    let again = KeyChange::Create {
        key: name("files"),
        suite: SG02.into(),
        delivery: Delivery::All,
        k: 2,
        holders: vec![1, 2, 3, 4],
    };
    let again = net.request(again);
    assert_eq!(net.hold(1, &again), Err(CeremonyError::Exists(name("files"))));
    // What is destroyed is destroyed, whatever generation is named.
    let change =
        StateChange { key: name("files"), version: None, state: KeyState::Destroyed, generation: 7, not_before: 0 };
    assert!(net.change(2, &change).unwrap().decided);
}

/// What is to be destroyed is disabled until its time has come, and can be taken back until then.
#[test]
fn a_key_is_destroyed_when_its_time_has_come() {
    let mut net = Net::new(2, 4, 9);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let doom = |net: &Net, generation: u64, seconds: u64| {
        let (key, not_before) = (name("files"), net.now + seconds);
        StateChange { key, version: None, state: KeyState::Destroyed, generation, not_before }
    };
    let decided = |net: &mut Net, change: &StateChange| {
        for node in [1, 2] {
            net.change(node, change).unwrap();
        }
        assert!(net.until(60, |net| (1..=4).all(|node| generation(net, node) == change.generation)), "{change:?}");
    };
    let week = doom(&net, 1, 7 * 86_400);
    decided(&mut net, &week);
    assert_eq!(states(&net, "files"), [KeyState::Disabled; 4]);
    change(&mut net, None, KeyState::Active);
    assert_eq!(states(&net, "files"), [KeyState::Active; 4]);
    // A time for anything else is no change.
    let odd = StateChange { state: KeyState::Disabled, ..doom(&net, 3, 60) };
    assert!(matches!(net.change(1, &odd), Err(ChangeError::Refused(_))));
    assert_eq!(net.entry(1, "files").state, KeyState::Active, "nothing stops for what cannot be");
    let short = net.change(1, &doom(&net, 3, 3_600)).unwrap_err().to_string();
    assert!(short.contains("more than an hour"), "{short}");
    let soon = doom(&net, 3, 3_720);
    decided(&mut net, &soon);
    net.now = soon.not_before - 30;
    net.until(1, |_| false);
    assert_eq!(states(&net, "files"), [KeyState::Disabled; 4]);
    // It is too late to take it back: clocks differ.
    let back = StateChange { state: KeyState::Active, generation: 4, not_before: 0, ..soon.clone() };
    let late = net.change(1, &back).unwrap_err();
    assert!(late.to_string().contains("destroyed"), "{late}");
    // No entry is needed for it: each node knows the time.
    let shares = |net: &Net, node: u16| net.custodian(node).store().share(&name("files"), Version::FIRST, Epoch::FIRST);
    assert!((1..=4).all(|node| shares(&net, node).unwrap().is_some()));
    net.kill(3);
    let due = |net: &Net| net.up().iter().all(|node| net.entry(*node, "files").state == KeyState::Destroyed);
    assert!(net.until(40, due));
    net.start(3);
    net.connect();
    assert!(net.until(10, due));
    assert!((1..=4).all(|node| shares(&net, node).unwrap().is_none()));
    assert!(net.now >= soon.not_before);
}

/// A ceremony that goes nowhere ends at once, and everywhere, when as many ask for that as it took to begin it.
#[test]
fn a_ceremony_is_cancelled_as_it_was_begun() {
    let mut net = Net::new(3, 7, 7);
    net.create("files", SG02, 3, &[1, 2, 3, 4]);
    let request = net.request(KeyChange::Refresh { key: name("files"), version: None });
    let id = net.begin([1, 2, 3], &request);
    net.kill(4);
    let cancel = CancelRequest { request };
    assert!(!net.cancel(1, &cancel).unwrap().state.is_over());
    net.until(20, |_| false);
    assert!((1..=3).all(|node| !net.state(node, &id).is_over()), "it takes three");
    for node in [5, 2, 3] {
        net.cancel(node, &cancel).unwrap();
    }
    let up = |net: &Net| net.up();
    assert!(net.until(40, |net| up(net).iter().all(|node| net.state(*node, &id) == CeremonyState::Cancelled)));
    assert!((1..=3).all(|node| net.entry(node, "files").epoch == Epoch::FIRST));
    // It is asked for again: it is cancelled.
    assert_eq!(net.cancel(6, &cancel).unwrap().state, CeremonyState::Cancelled);
    net.start(4);
    net.connect();
    assert!(net.until(60, |net| net.state(4, &id) == CeremonyState::Cancelled));
    net.run(1..=4, KeyChange::Refresh { key: name("files"), version: None });
}

/// A request that waits is taken back at each node that is told so: it neither waits there again, whoever tells of it, nor is it voted for.
#[test]
fn a_request_that_waits_is_taken_back() {
    let mut net = Net::new(2, 4, 8);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let request = net.request(KeyChange::Rotate { key: name("files") });
    let id = net.ask([1], &request);
    net.until(4, |_| false);
    assert!(!net.state(1, &id).is_over(), "it takes two");
    assert_eq!(net.custodian(1).report(&id).unwrap().request.as_ref(), Some(&request));
    let cancel = CancelRequest { request: request.clone() };
    for node in [1, 2, 3] {
        assert_eq!(net.cancel(node, &cancel).unwrap().state, CeremonyState::Cancelled);
        // It may be told again.
        assert_eq!(net.cancel(node, &cancel).unwrap().state, CeremonyState::Cancelled);
    }
    assert_eq!(net.custodian(1).report(&id).unwrap().request, None);
    for restarted in [false, true] {
        if restarted {
            net.kill(2);
            net.start(2);
            net.connect();
        }
        assert_eq!(net.hold(2, &request), Err(CeremonyError::Used), "nobody talks it into that again");
    }
    // One has not heard of it, and has node 1's consent of before: the two would be enough, and find no votes.
    net.hold(4, &request).unwrap();
    net.until(60, |_| false);
    assert!(net.custodian(4).ledger().unwrap().request(&id).is_none());
    assert_eq!(net.entry(1, "files").version, Version::FIRST);
    net.run(1..=4, KeyChange::Rotate { key: name("files") });
}

/// Who asks for the end of a ceremony hears that the node could not take it down.
#[test]
fn a_cancel_that_was_not_written_down_is_none() {
    let mut net = Net::new(2, 4, 9);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let request = net.request(KeyChange::Rotate { key: name("files") });
    net.ask([1], &request);
    net.drain();
    net.node(1).disk.fail_after(0);
    let cancel = CancelRequest { request };
    assert!(matches!(net.cancel(1, &cancel), Err(CeremonyError::StoreFailed(_))));
}

/// The remains of an epoch's ceremony are removed when the next epoch is used, since the old share follows from them.
#[test]
fn the_remains_of_old_epochs_go_with_their_shares() {
    let mut net = Net::new(2, 4, 3);
    let mut ids = vec![net.create("files", SG02, 2, &[1, 2, 3, 4])];
    for _ in 0..3 {
        ids.push(net.run(1..=4, KeyChange::Refresh { key: name("files"), version: None }));
    }
    for node in 1..=4 {
        let store = net.custodian(node).store();
        let left: Vec<bool> = ids.iter().map(|id| !store.ceremony_inputs(id).unwrap().is_empty()).collect();
        assert_eq!(left, [false, false, false, true], "node {node}");
        // Their reports are kept.
        assert!(ids.iter().all(|id| net.state(node, id).is_over()));
    }
}

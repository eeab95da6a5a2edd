//! Who may only disable neither gives back nor keeps for ever, no clock shortens a wait, and other changes do not end a freeze.

use theta_custody::ChangeError;
use theta_names::{KeyState, Version};
use theta_statements::StateChange;

use super::{SG02, generation};
use crate::net::{Net, name};

fn change(version: Option<u32>, state: KeyState, generation: u64) -> StateChange {
    StateChange { key: name("files"), version: version.and_then(Version::new), state, generation, not_before: 0 }
}

/// A freeze that names a change far ahead would outlast every enable.
#[test]
fn a_freeze_is_ended_by_an_enable() {
    let mut net = Net::new(3, 5, 41);
    net.create("files", SG02, 3, &[1, 2, 3, 4, 5]);
    for node in 1..=5 {
        let far = net.change(node, &change(None, KeyState::Disabled, u64::MAX));
        assert!(matches!(far, Err(ChangeError::Early { .. })), "{far:?}");
        assert!(!net.entry(node, "files").frozen);
        // One that this node may lack some changes for counts, for safety.
        assert!(net.change(node, &change(None, KeyState::Disabled, 3)).unwrap().frozen);
    }
    for enabled in 1..=3 {
        assert!((1..=5).all(|node| net.entry(node, "files").frozen));
        for node in [1, 2, 3] {
            net.change(node, &change(None, KeyState::Active, enabled)).unwrap();
        }
        assert!(net.until(60, |net| (1..=5).all(|node| generation(net, node) == enabled)));
    }
    net.until(60, |_| false);
    let left: Vec<_> = (1..=5).map(|node| net.entry(node, "files").frozen).collect();
    assert_eq!(left, [false; 5], "an enable of the group ends a freeze");
}

/// The group decides another change of the generation in which some froze the whole key.
#[test]
fn disabling_an_old_version_does_not_thaw_the_key() {
    let mut net = Net::new(3, 5, 42);
    net.create("files", SG02, 3, &[1, 2, 3, 4, 5]);
    net.run(1..=5, theta_statements::KeyChange::Rotate { key: name("files") });
    for node in [4, 5] {
        net.kill(node);
    }
    net.kill(3);
    for node in [1, 2] {
        assert!(net.change(node, &change(None, KeyState::Disabled, 1)).unwrap().frozen);
    }
    net.start(3);
    net.start(4);
    net.start(5);
    net.connect();
    for node in [3, 4, 5] {
        net.change(node, &change(Some(1), KeyState::Disabled, 1)).unwrap();
    }
    assert!(net.until(120, |net| (1..=5).all(|node| generation(net, node) == 1)));
    net.until(60, |_| false);
    let frozen: Vec<_> = [1, 2].iter().map(|node| net.entry(*node, "files").state).collect();
    assert_eq!(frozen, [KeyState::Disabled; 2], "who was asked to disable the key does so until an enable");
}

fn dooming(net: &Net, seconds: u64) -> StateChange {
    StateChange { not_before: net.now + seconds, ..change(None, KeyState::Destroyed, 1) }
}

fn destroyed(net: &Net, nodes: &[u16]) -> Vec<bool> {
    nodes.iter().map(|node| net.entry(*node, "files").state == KeyState::Destroyed).collect()
}

/// One member whose clock is (or is said to be) almost two days fast proposes any entry at all.
#[test]
fn one_member_does_not_shorten_the_wait() {
    let mut net = Net::new(2, 4, 43);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    net.create("other", SG02, 2, &[1, 2, 3, 4]);
    let doom = dooming(&net, 86_400);
    for node in [1, 2] {
        net.change(node, &doom).unwrap();
    }
    assert!(net.until(60, |net| (1..=4).all(|node| generation(net, node) == 1)));
    let begin = net.now;
    for round in 1..12_u64 {
        let other = StateChange { key: name("other"), ..change(None, KeyState::Active, round) };
        for node in [1, 2, 4] {
            net.change(node, &other).unwrap();
        }
        for _ in 0..24 {
            net.drain();
            net.now += 1;
            for node in net.up() {
                let ahead = if node == 4 { 172_000 } else { 0 };
                net.step(node, theta_custody::CustodyInput::Tick(net.now + ahead));
            }
        }
        net.drain();
    }
    assert!(net.now < begin + 1_000, "{} s of a day have passed", net.now - begin);
    assert_eq!(destroyed(&net, &[1, 2, 3]), [false; 3], "the key can be taken back for another 22 hours");
}

/// Those asked for a change learn that this very change was decided, and not a later destruction in its place.
#[test]
fn destroyed_later_is_not_destroyed_now() {
    let mut net = Net::new(2, 4, 44);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let later = dooming(&net, 7 * 86_400);
    for node in [1, 2] {
        net.change(node, &later).unwrap();
    }
    assert!(net.until(60, |net| (1..=4).all(|node| generation(net, node) == 1)));
    let at_once = net.change(3, &change(None, KeyState::Destroyed, 1));
    assert!(!at_once.is_ok_and(|report| report.decided), "it is destroyed in a week, and was to be at once");
}

/// Whoever may disable may retire: that gives back nothing that was disabled or is to be destroyed.
#[test]
fn retiring_enables_nothing() {
    let mut net = Net::new(2, 4, 45);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let later = dooming(&net, 7 * 86_400);
    for node in [1, 2] {
        net.change(node, &later).unwrap();
    }
    assert!(net.until(60, |net| (1..=4).all(|node| generation(net, node) == 1)));
    for node in [1, 2] {
        drop(net.change(node, &change(None, KeyState::Retired, 2)));
    }
    net.until(60, |_| false);
    let entry = net.entry(1, "files");
    assert!(
        !entry.state.serves(theta_schemes::Purpose::Decrypt),
        "{:?} at generation {}",
        entry.state,
        entry.generation
    );
}

//! Another key of the keys: BIND makes it, is told that the parent has it and the old one no longer, and takes the old one out of the zone.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::{
    bound,
    server::{Bind, PATIENCE},
};
use crate::{
    generation::pooled,
    group::{log, until},
};

/// What the server says of a key in its state machine, such as `ds:             omnipresent`.
fn is(bind: &Bind, key: &str, what: &str, state: &str) -> bool {
    let status = bind.tell(&["dnssec", "-status", "example"]);
    let of_key = status.split("\nkey: ").find(|part| part.split_whitespace().next() == Some(key));
    of_key.unwrap_or_else(|| panic!("{key}: {status}")).lines().any(|line| {
        let said = line.trim_start().trim_start_matches("- ");
        said.strip_prefix(what).and_then(|rest| rest.strip_prefix(':')).is_some_and(|rest| rest.trim() == state)
    })
}

/// Waits until something is so that follows from the times of keys. The server looks at them when it has said that it would; what it is told while it
/// waits for signatures it may look at an hour later, unless it is told to look.
fn in_time(bind: &Bind, what: &str, mut is_so: impl FnMut() -> bool) {
    let mut told = Instant::now();
    until(what, PATIENCE, || {
        if told.elapsed() > Duration::from_secs(2) {
            bind.tell(&["loadkeys", "example"]);
            told = Instant::now();
        }
        is_so()
    });
}

/// Tells the server what the parent has, and waits until it believes that.
fn parent(bind: &Bind, key: &str, has: &str, state: &str) {
    bind.tell(&["dnssec", "-checkds", "-key", key, has, "example"]);
    in_time(bind, &format!("the key {key} is {has}"), || is(bind, key, "ds", state));
}

/// The third key is the group's own, since the pool is empty then.
#[test]
fn bind_changes_its_key_of_the_keys() {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256", "");
    let bind = Bind::start(&group, None, "A 13 2 ");
    let before = bind.keys_of_keys();
    assert_eq!(before.len(), 1, "{before:?}");
    let old = bind.signers("key").pop().unwrap();
    until("the parent is told of the key", PATIENCE, || bind.verify().contains("\tCDNSKEY\t"));
    parent(&bind, &old, "published", "omnipresent");

    // BIND names a key in its store after the second in which it makes it: two of one second would have one name.
    thread::sleep(Duration::from_millis(1100));
    bind.tell(&["dnssec", "-rollover", "-key", &old, "example"]);
    let mut new = None;
    in_time(&bind, "another key signs the keys", || {
        new = bind.signers("key").into_iter().find(|key| *key != old);
        new.is_some()
    });
    let new = new.unwrap();
    assert!(log(&group).contains("the group has made zone-ecdsa-p256-3"), "{}", log(&group));
    assert_eq!(bound(&group), 3);
    in_time(&bind, "both keys are in the zone", || bind.keys_of_keys().len() == 2);
    // The server tells the parent when all have the new key.
    in_time(&bind, "the parent may have it", || is(&bind, &new, "ds", "rumoured"));
    parent(&bind, &new, "published", "omnipresent");
    parent(&bind, &old, "withdrawn", "hidden");
    in_time(&bind, "the new key is alone", || bind.keys_of_keys().len() == 1);
    let after = bind.keys_of_keys();
    assert_ne!(after, before);
    bind.update("new");
    until("the change is signed", PATIENCE, || bind.ask("new.example").contains("A 13 2 "));
    bind.verify();
    // From the new key down; the old one vouches for nothing any more.
    bind.validate("new.example");
    assert!(!bind.validates_from(&before[0], "new.example"), "the old key signs no longer");
}

//! BIND 9.20: a name server whose keys are in a key store. It makes them, signs a zone by itself, and changes them.

mod agents;
mod hashed;
mod offline;
mod resume;
mod rollover;
mod server;

use std::{fs, thread, time::Duration};

use self::server::{Bind, PATIENCE};
use crate::{
    generation::{pooled, pooled_rsa},
    group::{log, until},
    harness::Group,
    resolvers::{Unbound, status},
};

fn bound(group: &Group) -> usize {
    let bindings = fs::read_to_string(group.path().join("bindings.toml")).unwrap();
    bindings.matches("state = \"bound\"").count()
}

/// Algorithm 13, with what is printed for BIND: two keys from the pool, changes of the zone, and a new key for it, which the group makes since the
/// pool is empty then.
#[test]
fn bind_signs_a_zone_with_ecdsa_and_changes_its_key() {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256", "");
    let bind = Bind::start(&group, None, "A 13 2 ");
    bind.verify();
    bind.validate("www.example");
    let keys = bind.key_files();
    // What they say of a key is where it is.
    assert!(keys.iter().all(|key| key.contains("\nLabel: ") && !key.contains("PrivateKey:")), "{keys:?}");
    assert_eq!((keys.len(), bound(&group)), (2, 2));
    bind.update("mail");
    until("the change is signed", PATIENCE, || bind.ask("mail.example").contains("A 13 2 "));
    bind.verify();

    // BIND names a key in its store after the second in which it makes it: two of one second would have one name.
    thread::sleep(Duration::from_millis(1100));
    let before = bind.zone_keys().pop().unwrap();
    bind.tell(&["dnssec", "-rollover", "-key", &before, "example"]);
    let mut after = None;
    // The key before stays among those that sign until its signatures have gone.
    until("another key signs the zone", PATIENCE, || {
        after = bind.zone_keys().into_iter().find(|key| *key != before);
        after.is_some()
    });
    assert!(log(&group).contains("the group has made zone-ecdsa-p256-3"), "{}", log(&group));
    assert_eq!(bound(&group), 3);
    bind.update("new");
    let tag = format!(" {} example. ", after.unwrap());
    until("the new key signs", PATIENCE, || bind.ask("new.example").contains(&tag));
    bind.verify();
    bind.validate("new.example");
}

/// A resolver of another house starts from the key of the zone's keys.
#[test]
fn unbound_accepts_what_bind_signs() {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256", "");
    let bind = Bind::start(&group, None, "A 13 2 ");
    bind.verify();
    let unbound = Unbound::start(group.path().join("unbound"), &bind.keys_of_keys()[0], bind.port());
    for (name, ended) in [("www.example.", "NOERROR"), ("absent.example.", "NXDOMAIN")] {
        let answer = unbound.ask(name);
        assert_eq!(status(&answer), (ended, true), "{answer}{}", unbound.said());
    }
}

/// Algorithm 8: one key for everything, of 2048 bits.
#[test]
fn bind_signs_a_zone_with_rsa() {
    let group = pooled_rsa("");
    let key = "csk key-store \"threshold\" lifetime unlimited algorithm rsasha256 2048;";
    let bind = Bind::start(&group, Some(key), "A 8 2 ");
    assert_eq!(bound(&group), 1);
    bind.update("mail");
    until("the change is signed", PATIENCE, || bind.ask("mail.example").contains("A 8 2 "));
    bind.verify();
    bind.validate("mail.example");
}

/// Without a quorum the signed zone stays as it was, whatever is changed in the other; when the nodes are back, the same server signs all of it.
#[test]
fn bind_serves_the_old_zone_while_too_few_nodes_answer() {
    let mut group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256", "timeout_ms = 6000\n");
    let bind = Bind::start(&group, None, "A 13 2 ");
    // The last that BIND has to sign by itself, some seconds after its start.
    until("the parent is told of the key", PATIENCE, || bind.verify().contains("\tCDNSKEY\t"));
    (2..=4).for_each(|node| group.kill(node));
    bind.update("mail");
    until("BIND cannot sign the change", 3 * PATIENCE, || bind.said().contains("receive_secure_serial: failure"));
    assert!(log(&group).contains("signing with zone-ecdsa-p256-"), "{}", log(&group));
    assert_eq!(bind.ask("mail.example"), "");
    bind.verify();
    bind.validate("www.example");

    (2..=4).for_each(|node| group.start(node));
    (2..=4).for_each(|node| group.await_up(node));
    // It signs what has come together when it next has something to sign.
    let mut changes = 0;
    until("the zone is signed again", PATIENCE, || {
        changes += 1;
        bind.update(&format!("more-{changes}"));
        bind.ask("mail.example").contains("A 13 2 ")
    });
    until("the last change is signed", PATIENCE, || bind.ask(&format!("more-{changes}.example")).contains("A 13 2 "));
    bind.verify();
    bind.validate("mail.example");
}

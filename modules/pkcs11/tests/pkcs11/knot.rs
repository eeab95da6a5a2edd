//! Knot DNS: a name server that makes its keys, signs a zone by itself, and changes its keys.

pub(crate) mod agents;
mod ahead;
mod key_stores;
mod liar;
mod offline;
mod passive;
mod primary;
pub(crate) mod resume;
mod rollover;
mod transfers;
mod two_of_two;
mod updates;

use std::{fs, time::Duration};

use theta_knot::{
    config::signing,
    places::Places,
    server::{Knot, Setup},
};

use crate::{
    generation::pooled,
    group::{log, module, until},
    harness::Group,
};

/// How long the server has for what it does at once.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const ZONE: &str = "example.";
/// The zone before it is signed.
pub(crate) const RECORDS: &str =
    "$ORIGIN example.\n$TTL 1\n@ SOA ns admin 1 3600 60 86400 1\n@ NS ns\nns A 127.0.0.1\nwww A 192.0.2.1\n";

/// A name server of the zone, signed with keys of a group.
pub(crate) fn start(group: &Group, algorithm: &str) -> Knot {
    start_with(group, algorithm, RECORDS)
}

/// The same with an algorithm, after which other lines of the policy may come, and with these records.
fn start_with(group: &Group, algorithm: &str, records: &str) -> Knot {
    start_in(&Places::of_this_machine(), group, algorithm, records)
}

/// The same of these places.
fn start_in(places: &Places, group: &Group, algorithm: &str, records: &str) -> Knot {
    let config = config(group, algorithm);
    let setup = Setup { folder: group.path(), zone: ZONE, records, config: &config };
    // It signs before it takes commands.
    Knot::start_within(places, setup, 3 * PATIENCE).unwrap()
}

/// What the server is told of keys and zone.
fn config(group: &Group, algorithm: &str) -> String {
    let module = module().display().to_string();
    let words = ["pkcs11", "config", "--client", "host.client", "--module", &module, "--pool", "zone", "knot"];
    signing(&group.theta(&words).ok().text(), ZONE, algorithm)
}

fn bindings(group: &Group) -> String {
    fs::read_to_string(group.path().join("bindings.toml")).unwrap()
}

/// Algorithm 13: keys from the pool, one that the group makes since the pool is empty then, and the old one is let go.
#[test]
fn knot_signs_a_zone_with_ecdsa_and_changes_its_key() {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256", "");
    let knot = start(&group, "ecdsap256sha256");
    knot.await_signed(PATIENCE).unwrap();
    knot.verify().unwrap();
    let answer = knot.ask("www.example.").unwrap();
    assert!(answer.contains("192.0.2.1") && answer.contains("A 13 2 "), "{answer}");
    let before = knot.keys().unwrap();
    assert!(before.len() == 2 && before.iter().all(|key| key.contains("ECDSAP256SHA256")), "{before:?}");

    assert!(knot.tell(&["zone-key-rollover", "example.", "zsk"]), "{}", knot.said());
    until("the old key is let go", PATIENCE, || bindings(&group).contains("state = \"released\""));
    until("two keys are left", PATIENCE, || knot.keys().unwrap().len() == 2);
    let after = knot.keys().unwrap();
    let stayed = after.iter().filter(|key| before.iter().any(|old| old.split(' ').next() == key.split(' ').next()));
    assert_eq!(stayed.count(), 1, "the KSK stays: {before:?} {after:?}");
    assert!(log(&group).contains("the group has made zone-ecdsa-p256-3"), "{}", log(&group));
    until("the zone is signed with the new key alone", PATIENCE, || {
        let text = fs::read_to_string(knot.zone_file()).unwrap();
        text.lines().filter(|line| line.contains("\tDNSKEY\t")).count() == 2
    });
    knot.verify().unwrap();
    assert!(!knot.said().contains("error:"), "{}", knot.said());
}

/// Algorithm 15: the nodes see what they sign. `keymgr` makes a key, too, while the server runs.
#[test]
fn knot_signs_a_zone_with_ed25519() {
    let group = pooled("zone-frost-ed25519-1=frost-ed25519", "");
    let knot = start(&group, "ed25519");
    knot.await_signed(PATIENCE).unwrap();
    knot.verify().unwrap();
    let answer = knot.ask("www.example.").unwrap();
    assert!(answer.contains("A 15 2 "), "{answer}");
    let id = knot.tool("keymgr", &["-c", "knot.conf", "example.", "generate", "algorithm=ed25519", "ksk=no"]).unwrap();
    assert!(bindings(&group).contains(id.trim()), "{id}");
    assert!(knot.tell(&["zone-sign", "example."]), "{}", knot.said());
    // The server may write its file after it has answered.
    until("three keys are in the zone", PATIENCE, || {
        let text = fs::read_to_string(knot.zone_file()).unwrap();
        text.lines().filter(|line| line.contains("\tDNSKEY\t")).count() == 3
    });
    knot.verify().unwrap();
    // Deleted by hand: Knot destroys it, and knows no other key by its id.
    knot.tool("keymgr", &["-c", "knot.conf", "example.", "delete", id.trim()]).unwrap();
    assert!(bindings(&group).contains("state = \"released\""), "{}", bindings(&group));
    assert_eq!(knot.keys().unwrap().len(), 2);
}

/// Without a quorum the zone stays as it was; when the nodes are back, the same server signs.
#[test]
fn knot_serves_the_old_zone_while_too_few_nodes_answer() {
    let mut group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256", "timeout_ms = 6000\n");
    let knot = start(&group, "ecdsap256sha256");
    knot.await_signed(PATIENCE).unwrap();
    let before = fs::read_to_string(knot.zone_file()).unwrap();
    (2..=4).for_each(|node| group.kill(node));
    let add = || {
        assert!(
            knot.tell(&["zone-begin", "example."])
                && knot.tell(&["zone-set", "example.", "mail", "1", "A", "192.0.2.7"])
        );
        // A transaction that cannot be signed is over.
        knot.tell(&["zone-commit", "example."])
    };
    assert!(!add(), "{}", knot.said());
    assert!(
        knot.said().contains("signing error") && log(&group).contains("signing with zone-ecdsa-p256-"),
        "{}",
        knot.said()
    );
    let answer = knot.ask("www.example.").unwrap();
    assert!(answer.contains("192.0.2.1") && answer.contains("A 13 2 "), "{answer}");
    assert_eq!(knot.ask("mail.example.").unwrap(), "");
    assert_eq!(fs::read_to_string(knot.zone_file()).unwrap(), before);
    knot.verify().unwrap();

    (2..=4).for_each(|node| group.start(node));
    (2..=4).for_each(|node| group.await_up(node));
    until("the zone is signed again", PATIENCE, add);
    let answer = knot.ask("mail.example.").unwrap();
    assert!(answer.contains("192.0.2.7") && answer.contains("A 13 2 "), "{answer}");
    knot.verify().unwrap();
}

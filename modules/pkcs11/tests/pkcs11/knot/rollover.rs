//! Another key of the keys: Knot makes it, waits for the parent, and lets the old one go. Validators then start from the new one.

mod algorithms;

use std::fs;

use theta_knot::server::Knot;

use super::{
    PATIENCE, RECORDS, ZONE,
    agents::{ED25519, prepared},
    bindings, start, start_with,
};
use crate::{
    generation::pooled,
    group::{log, until},
    harness::Group,
};

/// The records of keys of the keys, as the server's file has them.
fn keys_of_keys(knot: &Knot) -> Vec<String> {
    let zone = fs::read_to_string(knot.zone_file()).unwrap();
    zone.lines().filter(|line| line.contains("\tDNSKEY\t257 ")).map(str::to_owned).collect()
}

/// Whether a verifier that trusts this key alone accepts the zone.
fn verifies_from(group: &Group, knot: &Knot, key: &str) -> bool {
    group.file("anchor", format!("{key}\n"));
    let said = knot.tool("ldns-verify-zone", &["-k", "anchor", &knot.zone_file().to_string_lossy()]);
    said.is_ok_and(|said| said.contains("Zone is verified and complete"))
}

/// The ids of the keys of the keys, and how far each is.
fn states(knot: &Knot) -> Vec<(String, String)> {
    let listed = knot.keys().unwrap().into_iter().filter(|key| key.contains(" KSK "));
    listed.map(|key| (key.split(' ').next().unwrap().to_owned(), key)).collect()
}

/// The parent has the key that the server says it should.
pub(super) fn submit(knot: &Knot) {
    until("a key waits for the parent", PATIENCE, || {
        let said = knot.said();
        let count = |words: &str| said.matches(&format!("KSK submission, {words}")).count();
        count("waiting for confirmation") > count("confirmed")
    });
    assert!(knot.tell(&["zone-ksk-submitted", ZONE]), "{}", knot.said());
}

/// Has the key of the keys of before go, once the new one is ready; only the new one is left, and a verifier starts from it and not from the old one.
fn finish(group: &Group, knot: &Knot, before: &str) {
    until("both keys are in the zone", PATIENCE, || keys_of_keys(knot).len() == 2);
    submit(knot);
    until("the old key is let go", PATIENCE, || bindings(group).contains("state = \"released\""));
    until("the new key is alone", PATIENCE, || keys_of_keys(knot).len() == 1 && states(knot).len() == 1);
    let after = keys_of_keys(knot).remove(0);
    assert_ne!(after, before);
    until("the zone is signed from the new key", PATIENCE, || verifies_from(group, knot, &after));
    assert!(!verifies_from(group, knot, before), "the old key signs no longer");
    // What the zone has is the group's.
    let data = after.split("DNSKEY\t").nth(1).unwrap();
    let exported = |name: &str| group.theta(&["keys", "export", name, "--format", "dnskey"]).ok().text();
    let names = bindings(group);
    let names = names.split('"').filter_map(|word| word.strip_suffix("@1"));
    assert!(names.into_iter().any(|name| exported(name).trim() == data), "{data}: {}", bindings(group));
}

/// The third key is the group's own, since the pool is empty then.
#[test]
fn knot_changes_its_key_of_the_keys() {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256", "");
    let knot = start(&group, "ecdsap256sha256");
    knot.await_signed(PATIENCE).unwrap();
    let before = keys_of_keys(&knot);
    assert!(before.len() == 1 && verifies_from(&group, &knot, &before[0]), "{before:?}");
    submit(&knot);

    assert!(knot.tell(&["zone-key-rollover", ZONE, "ksk"]), "{}", knot.said());
    finish(&group, &knot, &before[0]);
    assert!(log(&group).contains("the group has made zone-ecdsa-p256-3"), "{}", log(&group));
    assert!(knot.ask("www.example.").unwrap().contains("A 13 2 "));
    assert!(!knot.said().contains("error:"), "{}", knot.said());
}

/// A new key comes into the zone when the operators have agreed on it, and not before. Then the parent is told of it (CDS and CDNSKEY).
#[test]
fn operators_agree_on_another_key_of_the_keys() {
    let (group, agents) = prepared((ED25519.suite, ED25519.operation), 1..=4, RECORDS, None, "");
    let knot = start_with(&group, ED25519.knot, RECORDS);
    knot.await_signed(PATIENCE).unwrap();
    let before = keys_of_keys(&knot).remove(0);
    submit(&knot);

    knot.tell(&["zone-key-rollover", ZONE, "ksk"]);
    let objection = "one of the keys is none of those that the operators have agreed on";
    until("the operators refuse a key that they do not know", PATIENCE, || log(&group).contains(objection));
    assert_eq!(keys_of_keys(&knot), [before.as_str()], "the old zone is served");
    assert!(verifies_from(&group, &knot, &before), "{}", knot.said());

    let keys = fs::read_to_string(group.path().join("zone.keys")).unwrap();
    let new = group.theta(&["keys", "export", "zone-frost-ed25519-3", "--format", "dnskey"]).ok().text();
    group.file("zone.keys", keys + &new);
    until("the new key is in the zone", PATIENCE, || {
        knot.tell(&["zone-sign", ZONE]);
        keys_of_keys(&knot).len() == 2
    });
    until("the parent is told of it", PATIENCE, || {
        let zone = fs::read_to_string(knot.zone_file()).unwrap();
        ["\tCDS\t", "\tCDNSKEY\t"].iter().all(|kind| zone.contains(kind))
            && zone.lines().any(|line| line.contains("\tCDNSKEY\t") && line.ends_with(new.trim()))
    });
    finish(&group, &knot, &before);
    drop(agents);
}

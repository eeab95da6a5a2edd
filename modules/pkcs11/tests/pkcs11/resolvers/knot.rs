//! A zone that Knot signs with a group's keys, and a copy of it in which somebody has changed a record.

use std::fs;

use theta_knot::{
    places::Places,
    server::{Knot, Setup},
};

use super::{PATIENCE, Unbound, delv, status};
use crate::{
    generation::pooled,
    group::succeeds,
    harness::Group,
    knot::{ZONE, start},
};

/// A zone that is signed with P-256.
fn signed() -> (Group, Knot) {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256", "");
    let knot = start(&group, "ecdsap256sha256");
    knot.await_signed(PATIENCE).unwrap();
    (group, knot)
}

/// The data of the zone's key of the keys.
fn anchor(zone: &str) -> String {
    zone.lines().find_map(|line| line.split_once("DNSKEY\t257 ")).map(|(_, data)| format!("257 {data}")).unwrap()
}

/// Addresses, and that there is none, are authentic. Of a copy with one other address that one is refused, and nothing else.
#[test]
fn unbound_accepts_what_knot_signs_and_refuses_what_was_changed() {
    let (group, knot) = signed();
    let zone = fs::read_to_string(knot.zone_file()).unwrap();
    let key = anchor(&zone);
    let unbound = Unbound::start(group.path().join("unbound"), &key, knot.port());
    let answer = unbound.ask("www.example.");
    assert_eq!(status(&answer), ("NOERROR", true), "{answer}{}", unbound.said());
    assert!(answer.contains("192.0.2.1") && answer.contains("A 13 2 "), "{answer}");
    let answer = unbound.ask("absent.example.");
    assert_eq!(status(&answer), ("NXDOMAIN", true), "{answer}{}", unbound.said());

    // Somebody serves the zone as it was signed, but for one record.
    let changed = zone.replace("\tA\t192.0.2.1\n", "\tA\t192.0.2.66\n");
    assert_ne!(changed, zone);
    let folder = group.path().join("other-server");
    let config = format!("zone:\n  - domain: {ZONE}\n");
    let setup = Setup { folder: &folder, zone: ZONE, records: &changed, config: &config };
    let other = Knot::start(&Places::of_this_machine(), setup).unwrap();
    let unbound = Unbound::start(group.path().join("other-unbound"), &key, other.port());
    let answer = unbound.ask("ns.example.");
    assert_eq!(status(&answer), ("NOERROR", true), "{answer}{}", unbound.said());
    let answer = unbound.ask_unchecked("www.example.");
    assert!(status(&answer) == ("NOERROR", false) && answer.contains("192.0.2.66"), "{answer}");
    let answer = unbound.ask("www.example.");
    assert!(status(&answer) == ("SERVFAIL", false) && !answer.contains("192.0.2.66"), "{answer}");
    assert!(
        unbound.said().contains("validation failure <www.example. A IN>: signature crypto failed"),
        "{}",
        unbound.said()
    );
}

/// BIND's validator takes what Knot has signed, and no other key to start from.
#[test]
fn delv_accepts_what_knot_signs() {
    let (group, knot) = signed();
    let key = anchor(&fs::read_to_string(knot.zone_file()).unwrap());
    let said = succeeds(delv(group.path(), knot.port(), &key, "www.example"));
    assert!(said.contains("; fully validated") && said.contains("192.0.2.1"), "{said}");
    let other = group.theta(&["keys", "create", "other=ecdsa-p256"]);
    other.ok();
    let other = group.theta(&["keys", "export", "other", "--format", "dnskey"]).ok().text();
    let said = delv(group.path(), knot.port(), other.trim(), "www.example").output().unwrap();
    assert!(!String::from_utf8_lossy(&said.stdout).contains("192.0.2.1"), "{said:?}");
}

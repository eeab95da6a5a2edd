//! Zones that Knot signs with a group's keys, and copies of them in which somebody has changed a record, or taken one away.

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

/// How a zone is signed.
#[derive(Clone, Copy)]
struct Signing {
    suite: &'static str,
    /// What Knot is told: the algorithm, after which other lines of its policy may come.
    policy: &'static str,
    number: &'static str,
    /// The records that say what is not in the zone.
    denial: &'static str,
}

const P256: Signing = Signing { suite: "ecdsa-p256", policy: "ecdsap256sha256", number: "13", denial: "NSEC" };
const ED25519: Signing = Signing { suite: "frost-ed25519", policy: "ed25519", number: "15", denial: "NSEC" };
const HASHED: Signing =
    Signing { policy: "ed25519\n    nsec3: on\n    nsec3-salt-length: 0", denial: "NSEC3", ..ED25519 };

impl Signing {
    /// A zone that is signed, as the server has it in its file.
    fn signed(self) -> (Group, Knot, String) {
        let Self { suite, policy, denial, .. } = self;
        let group = pooled(&format!("zone-{suite}-1={suite},zone-{suite}-2={suite}"), "");
        let knot = start(&group, policy);
        knot.await_signed(PATIENCE).unwrap();
        let zone = fs::read_to_string(knot.zone_file()).unwrap();
        let has = |kind: &str| zone.contains(&format!("\t{kind}\t"));
        assert!(has(denial) && (has("NSEC") != has("NSEC3")), "{zone}");
        (group, knot, zone)
    }

    /// Whether an answer has a signature of an address.
    fn signs(self, answer: &str) -> bool {
        answer.contains(&format!("A {} 2 ", self.number))
    }
}

/// The data of the zone's key of the keys.
fn anchor(zone: &str) -> String {
    zone.lines().find_map(|line| line.split_once("DNSKEY\t257 ")).map(|(_, data)| format!("257 {data}")).unwrap()
}

/// Somebody serves a zone as it was signed, but for what was changed; and who asks there.
fn elsewhere(group: &Group, name: &str, key: &str, changed: &str) -> (Knot, Unbound) {
    let folder = group.path().join(name);
    let config = format!("zone:\n  - domain: {ZONE}\n");
    let setup = Setup { folder: &folder, zone: ZONE, records: changed, config: &config };
    let knot = Knot::start(&Places::of_this_machine(), setup).unwrap();
    let unbound = Unbound::start(folder.join("unbound"), key, knot.port());
    (knot, unbound)
}

/// Addresses, and that there is none, are authentic. Of a copy with one other address that one is refused, and nothing else; of a copy without it, that
/// there is none is refused.
fn unbound_accepts_what_is_signed_and_nothing_else(signing: Signing) {
    let (group, knot, zone) = signing.signed();
    let key = anchor(&zone);
    let unbound = Unbound::start(group.path().join("unbound"), &key, knot.port());
    let answer = unbound.ask("www.example.");
    assert_eq!(status(&answer), ("NOERROR", true), "{answer}{}", unbound.said());
    assert!(answer.contains("192.0.2.1") && signing.signs(&answer), "{answer}");
    let answer = unbound.ask("absent.example.");
    assert_eq!(status(&answer), ("NXDOMAIN", true), "{answer}{}", unbound.said());
    let denials = answer.lines().filter(|line| line.split_whitespace().nth(3) == Some(signing.denial));
    assert_ne!(denials.count(), 0, "{answer}");

    let changed = zone.replace("\tA\t192.0.2.1\n", "\tA\t192.0.2.66\n");
    assert_ne!(changed, zone);
    let (other, unbound) = elsewhere(&group, "other-address", &key, &changed);
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
    drop((other, unbound));

    let is_address =
        |line: &str| line.starts_with("www.example.") && (line.contains("\tA\t") || line.contains("\tRRSIG\tA "));
    let changed: String = zone.lines().filter(|line| !is_address(line)).map(|line| format!("{line}\n")).collect();
    assert_eq!(zone.lines().count() - changed.lines().count(), 2, "the address and its signature");
    let (_other, unbound) = elsewhere(&group, "no-address", &key, &changed);
    let answer = unbound.ask_unchecked("www.example.");
    assert!(matches!(status(&answer), ("NOERROR" | "NXDOMAIN", false)) && !answer.contains("192.0.2.1"), "{answer}");
    let answer = unbound.ask("www.example.");
    assert_eq!(status(&answer), ("SERVFAIL", false), "{answer}{}", unbound.said());
}

#[test]
fn unbound_accepts_what_knot_signs_and_refuses_what_was_changed() {
    unbound_accepts_what_is_signed_and_nothing_else(P256);
}

#[test]
fn unbound_accepts_what_knot_signs_with_ed25519_and_refuses_what_was_changed() {
    unbound_accepts_what_is_signed_and_nothing_else(ED25519);
}

#[test]
fn unbound_accepts_denials_by_hashes_and_refuses_what_was_changed() {
    unbound_accepts_what_is_signed_and_nothing_else(HASHED);
}

/// BIND's validator takes what Knot has signed, also of a name that is not there, and no other key to start from.
fn delv_accepts_what_is_signed(signing: Signing) {
    let (group, knot, zone) = signing.signed();
    let key = anchor(&zone);
    let said = succeeds(delv(group.path(), knot.port(), &key, "www.example"));
    assert!(said.contains("; fully validated") && said.contains("192.0.2.1") && signing.signs(&said), "{said}");
    let said = |key: &str, name| {
        let output = delv(group.path(), knot.port(), key, name).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let absent = said(&key, "absent.example");
    assert!(absent.contains("; negative response, fully validated") && absent.contains("NXDOMAIN"), "{absent}");
    assert!(absent.contains(&format!(" {} ", signing.denial)), "{absent}");
    group.theta(&["keys", "create", &format!("other={}", signing.suite)]).ok();
    let other = group.theta(&["keys", "export", "other", "--format", "dnskey"]).ok().text();
    for name in ["www.example", "absent.example"] {
        let said = said(other.trim(), name);
        assert!(!said.contains("192.0.2.1") && !said.contains("fully validated"), "{said}");
    }
}

#[test]
fn delv_accepts_what_knot_signs() {
    delv_accepts_what_is_signed(P256);
}

#[test]
fn delv_accepts_what_knot_signs_with_ed25519() {
    delv_accepts_what_is_signed(ED25519);
}

#[test]
fn delv_accepts_denials_by_hashes() {
    delv_accepts_what_is_signed(HASHED);
}

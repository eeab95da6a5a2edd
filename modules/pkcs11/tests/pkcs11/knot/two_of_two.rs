//! Two operators, both of whom sign: neither can do anything without the other.

use std::{collections::BTreeSet, fs};

use theta_knot::server::Knot;

use super::{
    PATIENCE, RECORDS,
    agents::{
        MOST_FOREIGN, ZoneAgent,
        named::{diagnosed, named},
        open_agent, serve,
    },
    start,
};
use crate::{
    generation::ready,
    group::{log, until},
    harness::Group,
};

/// What an operator's copy of the zone has.
fn write(group: &Group, node: u16, records: &str) {
    let copy = group.node_dir(node).join("example.zone");
    let draft = copy.with_extension("new");
    fs::write(&draft, records).unwrap();
    fs::rename(draft, copy).unwrap();
}

/// Two nodes of which both sign, with keys of this suite, each with an agent of its operator's.
fn two(suite: &str, operation: &str) -> (Group, [ZoneAgent; 2]) {
    let [one, other] = [1, 2].map(|number| format!("zone-{suite}-{number}"));
    let keys = format!("{one}={suite},{other}={suite}");
    let mut group = Group::made_with(&["--nodes", "2", "--threshold", "2", "--keys", &keys]);
    group.start_all();
    ready(&group, "");
    let key = |name: &str| group.theta(&["keys", "export", name, "--format", "dnskey"]).ok().text();
    group.file("zone.keys", key(&one) + &key(&other));
    let agents = [1, 2].map(|node| {
        let agent = open_agent(&group, &group.node_dir(node), RECORDS, None);
        serve(&group, node, agent)
    });
    for node in ["1", "2"] {
        let words = ["policy", "explain", "--ask", node, "--client", "client", "--key", &one, "--operation", operation];
        until("the policies are in force", PATIENCE, || group.theta(&words).ok().text().contains("agent zone"));
    }
    (group, agents)
}

/// Adds an address to the zone; whether the server could sign that.
fn add(knot: &Knot, name: &str, address: &str) -> bool {
    let set = ["zone-set", "example.", name, "1", "A", address];
    assert!(knot.tell(&["zone-begin", "example."]) && knot.tell(&set), "{}", knot.said());
    // A transaction that cannot be signed is over.
    knot.tell(&["zone-commit", "example."])
}

/// How often a node has refused this record.
fn refusals(group: &Group, node: u16, objection: &str) -> usize {
    let said = group.theta(&["audit", "show", "--node", &node.to_string(), "--refused", "--last", "1000"]).ok().text();
    said.matches(&format!("agent zone refuses it: {objection}")).count()
}

/// What is in one copy alone is not signed, whichever of the two has it: the other one refuses it, and has that on record.
fn neither_signs_alone(suite: &str, operation: &str, (algorithm, number): (&str, &str), objection: &str) {
    let (group, agents) = two(suite, operation);
    let knot = start(&group, algorithm);
    knot.await_signed(PATIENCE).unwrap();
    knot.verify().unwrap();
    assert!(!log(&group).contains("agent zone refuses"), "{}", log(&group));
    let more: Vec<String> = (1..=MOST_FOREIGN).map(|number| format!("more{number}")).collect();
    let records = ["victim"].into_iter().chain(more.iter().map(String::as_str));
    let foreign: String = records.map(|name| format!("{name} 1 A 192.0.2.66\n")).collect();
    let foreign = format!("{RECORDS}{foreign}");
    for (deceiver, other) in [(1, 2), (2, 1)] {
        write(&group, deceiver, &foreign);
        let before = (fs::read_to_string(knot.zone_file()).unwrap(), refusals(&group, other, objection));
        assert!(!add(&knot, "victim", "192.0.2.66"), "operator {deceiver} had it signed alone: {}", knot.said());
        assert_eq!(fs::read_to_string(knot.zone_file()).unwrap(), before.0, "the old zone is served");
        assert_eq!(knot.ask("victim.example.").unwrap(), "");
        assert!(refusals(&group, other, objection) > before.1, "node {other} has refused it");
        let is_named = || named(&group).get(&deceiver.into()).is_some_and(|by| *by == BTreeSet::from([other.into()]));
        // With Ed25519 a signature has a coordinator, and another node sends it its part when it is asked to: half of all have the deceived one.
        let mut more = more.iter();
        until("who took part is named", PATIENCE, || {
            is_named() || {
                assert!(!more.next().is_some_and(|name| add(&knot, name, "192.0.2.66")), "{}", knot.said());
                is_named()
            }
        });
        assert!(diagnosed(&group).contains(&deceiver.into()));
        write(&group, deceiver, RECORDS);
    }
    // When both have a name in their copies, it is signed.
    (1..=2).for_each(|node| write(&group, node, &format!("{RECORDS}mail 1 A 192.0.2.7\n")));
    until("the new record is signed", PATIENCE, || add(&knot, "mail", "192.0.2.7"));
    let answer = knot.ask("mail.example.").unwrap();
    assert!(answer.contains("192.0.2.7") && answer.contains(&format!("A {number} 2 ")), "{answer}");
    knot.verify().unwrap();
    drop(agents);
}

#[test]
fn two_operators_sign_with_ed25519_and_neither_does_alone() {
    let objection = "there is no victim.example. A in the zone";
    neither_signs_alone("frost-ed25519", "sign", ("ed25519", "15"), objection);
}

/// By MASCOT, as two of two have no honest majority.
#[test]
fn two_operators_sign_with_p256_and_neither_does_alone() {
    let objection = "no record set of the zone has this digest with times of now";
    neither_signs_alone("ecdsa-p256", "sign-digest", ("ecdsap256sha256", "13"), objection);
}

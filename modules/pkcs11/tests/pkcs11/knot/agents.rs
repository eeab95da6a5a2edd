//! Operators who do not trust the name server: their nodes sign what is in their own copies of the zone.

use std::fs;

use theta_dnssec::{
    agent::Agent,
    consent::Terms,
    digests::Guesses,
    sources::{CopyFrom, Sources},
};
use tokio::runtime::Runtime;

use super::{Knot, PATIENCE, RECORDS};
use crate::{
    generation::pooled,
    group::{log, until},
    harness::Group,
};

/// Serves a zone's agent with threads of its own, until this is dropped.
struct ZoneAgent(Option<Runtime>);

impl Drop for ZoneAgent {
    fn drop(&mut self) {
        self.0.take().unwrap().shutdown_background();
    }
}

/// The agent of one operator: it has its own copy of the zone, and its node's policy names it.
fn zone_agent(group: &Group, node: u16) -> ZoneAgent {
    let folder = group.node_dir(node);
    fs::write(folder.join("example.zone"), RECORDS).unwrap();
    let sources = Sources {
        origin: "example.".to_owned(),
        zone: CopyFrom::File(folder.join("example.zone")),
        keys: group.path().join("zone.keys"),
        terms: Terms { longest: 35 * 86_400 },
        guesses: Guesses::of_days(&[14]),
    };
    let (agent, socket) = (Agent::open(sources).unwrap(), folder.join("zone.sock"));
    let runtime = Runtime::new().unwrap();
    let path = socket.clone();
    runtime.spawn(async move { agent.serve(&path).await.unwrap() });
    until("the agent serves", PATIENCE, || socket.exists());
    let rule = format!(
        "\n[[agent]]\nname = \"zone\"\nsocket = \"{}\"\n\n[[rule]]\nname = \"zone\"\neffect = \"allow\"\nclients = [\"client\"]\n\
         keys = [\"zone-*\"]\noperations = [\"sign\", \"sign-digest\"]\nagent = \"zone\"\n\n",
        socket.display()
    );
    let policy = folder.join("policy.toml");
    let text = fs::read_to_string(&policy).unwrap();
    // Before the rule that allows everything.
    let place = text.find("[[rule]]").unwrap();
    fs::write(&policy, [&text[..place], &rule, &text[place..]].concat()).unwrap();
    ZoneAgent(Some(runtime))
}

/// What an algorithm is called by those who take part, and what agents say of a record that is in no copy.
struct Algorithm {
    number: &'static str,
    knot: &'static str,
    suite: &'static str,
    operation: &'static str,
    objection: &'static str,
}

/// The name server is one of the operators', or has been taken over: what is not in the others' copies of the zone is not signed. Node 1
/// lets everything pass.
fn nobody_signs_foreign_records(algorithm: &Algorithm) {
    let Algorithm { number, suite, .. } = algorithm;
    let [one, two] = [1, 2].map(|number| format!("zone-{suite}-{number}"));
    let group = pooled(&format!("{one}={suite},{two}={suite}"), "");
    let key = |name: &str| group.theta(&["keys", "export", name, "--format", "dnskey"]).ok().text();
    group.file("zone.keys", key(&one) + &key(&two));
    let agents: Vec<ZoneAgent> = (2..=4).map(|node| zone_agent(&group, node)).collect();
    let explain = format!("policy explain --ask 4 --client client --key {one} --operation {}", algorithm.operation);
    let explain: Vec<&str> = explain.split(' ').collect();
    until("the policies are in force", PATIENCE, || group.theta(&explain).ok().text().contains("agent zone"));

    let knot = Knot::start(&group, algorithm.knot);
    until("nobody objects, and the zone is signed", PATIENCE, || {
        assert!(!log(&group).contains("agent zone"), "{}", log(&group));
        fs::read_to_string(knot.zone()).is_ok_and(|text| text.contains("RRSIG"))
    });
    knot.zone_verifies();
    let signed = format!("A {number} 2 ");
    assert!(knot.ask("www.example.").contains(&signed), "{}", knot.said());
    let before = fs::read_to_string(knot.zone()).unwrap();
    let set = |name: &str, address: &str| {
        assert!(
            knot.tell(&["zone-begin", "example."]) && knot.tell(&["zone-set", "example.", name, "1", "A", address])
        );
        knot.tell(&["zone-commit", "example."])
    };
    assert!(!set("victim", "192.0.2.66"), "{}", knot.said());
    assert_eq!(fs::read_to_string(knot.zone()).unwrap(), before, "the old zone is served");
    assert_eq!(knot.ask("victim.example."), "");
    assert!(log(&group).contains("agent zone refuses it"), "{}", log(&group));
    for node in ["2", "3", "4"] {
        let said = group.theta(&["audit", "show", "--node", node, "--refused", "--last", "100"]).ok().text();
        assert!(said.contains(&format!("agent zone refuses it: {}", algorithm.objection)), "{said}");
    }

    // When the operators have it in their copies, it is signed.
    for node in 2..=4 {
        fs::write(group.node_dir(node).join("example.zone"), format!("{RECORDS}mail 1 A 192.0.2.7\n")).unwrap();
    }
    until("the new record is signed", PATIENCE, || set("mail", "192.0.2.7"));
    assert!(knot.ask("mail.example.").contains(&signed), "{}", knot.said());
    knot.zone_verifies();
    drop(agents);
}

#[test]
fn nobody_signs_what_is_not_in_the_operators_copies_of_the_zone() {
    nobody_signs_foreign_records(&Algorithm {
        number: "15",
        knot: "ed25519",
        suite: "frost-ed25519",
        operation: "sign",
        objection: "there is no victim.example. A in the zone",
    });
}

/// The nodes see digests alone, and their agents find out what they are of.
#[test]
fn p256_digests_of_foreign_records_are_refused() {
    nobody_signs_foreign_records(&Algorithm {
        number: "13",
        knot: "ecdsap256sha256",
        suite: "ecdsa-p256",
        operation: "sign-digest",
        objection: "no record set of the zone has this digest with times of now",
    });
}

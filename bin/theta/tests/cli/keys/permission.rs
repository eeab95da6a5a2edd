//! What policies say of keys of ECDSA with an honest majority: refusals, approvals, one message for a slot, and what is on record of all that. Stocks and
//! programs of such keys have ways of their own through a node, and every one of them begins behind its policy.

use std::{
    fs,
    time::{Duration, Instant},
};

use crate::harness::{Group, Run};
use crate::keys::run;

/// Inserts rules before those of each node's own policy.
fn begin_policies_with(group: &Group, rules: &str) {
    for node in group.numbers() {
        let file = group.node_dir(node).join("policy.toml");
        let text = fs::read_to_string(&file).unwrap();
        let (head, rest) = text.split_once("[[rule]]").unwrap();
        fs::write(&file, format!("{head}{rules}\n[[rule]]{rest}")).unwrap();
    }
}

/// A group in which two approve each use of gold, which signs one message for a slot, and nobody uses cold.
fn guarded() -> Group {
    let mut group = Group::made_with(&["--threshold", "2", "--keys", "gold=ecdsa-p256,cold=ecdsa-p256"]);
    let approvers = ["ann", "ben"].map(|name| group.theta(&["approver", "new", "--name", name]).ok().text()).concat();
    let rules = "
[[signing]]
name = \"heights\"
keys = [\"gold\"]
slot = \"claimed\"
first = 1

[[rule]]
name = \"freeze\"
effect = \"deny\"
clients = [\"*\"]
keys = [\"cold\"]
operations = [\"sign\", \"sign-digest\"]

[[rule]]
name = \"takes-two\"
effect = \"allow\"
clients = [\"client\"]
keys = [\"gold\"]
operations = [\"sign\"]
approvals = { of = [\"ann\", \"ben\"], need = 2 }
";
    begin_policies_with(&group, &(approvers + rules));
    group.start_all();
    for key in ["gold", "cold"] {
        let live = group.theta(&["keys", "show", key, "--live", "--json"]).ok().json();
        assert_eq!(live[0]["delivery"], "all", "{live}");
    }
    group
}

/// Both approve that gold signs a file.
fn approve(group: &Group, file: &str) {
    for who in ["ann", "ben"] {
        let (key, to) = (format!("{who}.key"), format!("{file}.{who}"));
        let words = ["approve", "--as", &key, "--operation", "sign", "--key", "gold", "--message", file, "--yes"];
        group.theta(&[&words[..], &["-o", &to]].concat()).ok();
    }
}

/// Waits until nodes decide by the signing rule: after a start peers confirm first that a store is its node's latest.
fn await_rules(group: &Group) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while sign(group, "one", "1", 0).stderr.contains("have confirmed") {
        assert!(Instant::now() < deadline, "no node decides");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Asks gold to sign a file for a slot, with so many of the approvals.
fn sign(group: &Group, file: &str, slot: &str, approvals: usize) -> Run {
    let files = ["ann", "ben"].map(|who| format!("{file}.{who}"));
    let shown: Vec<&str> = files.iter().take(approvals).flat_map(|file| ["--approval", file]).collect();
    group.theta(
        &[&["sign", file, "--key", "gold", "--slot", slot, "-o", "made.der", "--format", "der"], &shown[..]].concat(),
    )
}

#[test]
fn policies_decide_about_keys_of_an_honest_majority() {
    let group = guarded();
    for name in ["one", "other"] {
        group.file(name, format!("block {name}"));
        approve(&group, name);
    }
    group.file("gold.pem", group.theta(&["keys", "export", "gold"]).ok().stdout);
    let verified = |file: &str| {
        run(group.path(), &format!("openssl dgst -sha256 -verify gold.pem -signature made.der {file}"));
    };

    await_rules(&group);
    // Whatever has been made in advance, nothing signs without two approvals of this message.
    sign(&group, "one", "1", 0).fails(1, &["takes-two", "2 approvals"]);
    sign(&group, "one", "1", 1).fails(1, &["takes-two", "ann"]);
    sign(&group, "one", "1", 2).ok();
    verified("one");
    let moved = ["sign", "other", "--key", "gold", "--slot", "2", "--approval", "one.ann", "--approval", "one.ben"];
    group.theta(&moved).fails(1, &["takes-two"]);

    // The slot is taken, by this message and no other, with all approvals.
    sign(&group, "other", "1", 2).fails(1, &["slot"]);
    sign(&group, "one", "1", 2).ok();
    verified("one");
    sign(&group, "other", "2", 2).ok();
    verified("other");

    group.theta(&["sign", "one", "--key", "cold", "-o", "cold.sig"]).fails(1, &["freeze"]);
    let digest = format!("sha256:{}", "11".repeat(32));
    group.theta(&["sign", "--digest", &digest, "--key", "cold", "-o", "cold.sig"]).fails(1, &["freeze"]);
    is_on_record(&group);
}

/// The records of decisions at a node.
fn records(group: &Group, node: &str) -> Vec<serde_json::Value> {
    let text = group.theta(&["audit", "export", "--node", node]).ok().text();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.map(|mut line| line["record"].take()).collect()
}

/// Waits until so many nodes have such a record. (A client asks no more nodes when it has its answer.)
fn await_record(group: &Group, least: usize, what: &str, fits: impl Fn(&serde_json::Value) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let has = |node: &&str| records(group, node).iter().any(&fits);
    while ["1", "2", "3", "4"].iter().filter(|node| has(node)).count() < least {
        assert!(Instant::now() < deadline, "{what} is not on record at {least} nodes");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// What was refused and what was allowed is on record, with the slot and with who approved it, and the record is whole.
fn is_on_record(group: &Group) {
    // Two sign, and with three refusals no two are left.
    let (signers, refusals) = (2, 3);
    let approved = serde_json::json!(["ann", "ben"]);
    for slot in [1, 2] {
        await_record(group, signers, &format!("the signature of slot {slot}"), |record| {
            let is_it = record["operation"] == "sign" && record["key"] == "gold" && record["slot"] == slot;
            is_it && record["allowed"] == true && record["rule"] == "takes-two" && record["approvers"] == approved
        });
    }
    await_record(group, refusals, "that approvals are missing", |record| {
        record["key"] == "gold" && record["allowed"] == false && record.to_string().contains("takes-two")
    });
    await_record(group, refusals, "the second message of slot 1", |record| {
        record["key"] == "gold" && record["slot"] == 1 && record["reason"] == "slot-contested"
    });
    for operation in ["sign", "sign-digest"] {
        await_record(group, refusals, operation, |record| {
            record["operation"] == operation && record["rule"] == "freeze" && record["allowed"] == false
        });
    }
    for node in ["1", "2", "3", "4"] {
        let uses = |record: &&serde_json::Value| record["key"] == "cold" && record["operation"] != "keys.list";
        assert!(records(group, node).iter().filter(uses).all(|record| record["allowed"] == false), "node {node}");
        group.theta(&["audit", "verify", "--node", node]).ok();
    }
}

//! `theta ledger`: of real nodes, and of files without any.

use std::time::{Duration, Instant};

use crate::harness::Group;

/// Waits until the ledger has this version of a key at this epoch.
#[track_caller]
pub(super) fn await_key(group: &Group, key: &str, version: u64, epoch: u64) -> serde_json::Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let ledger = group.theta(&["ledger", "show", "--json"]).ok().json();
        let keys = ledger["keys"].as_array().unwrap();
        let is =
            |shown: &&serde_json::Value| shown["key"] == key && shown["version"] == version && shown["epoch"] == epoch;
        if keys.iter().any(|shown| is(&shown)) {
            return ledger;
        }
        assert!(Instant::now() < deadline, "the ledger does not have {key}@{version} at epoch {epoch}: {ledger}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn what_the_group_decided_is_checked_without_believing_a_node() {
    let mut group = Group::made();
    group.start_all();
    group.theta(&["keys", "create", "release=frost-ed25519"]).ok();
    let ledger = await_key(&group, "release", 1, 0);
    assert_eq!((&ledger["nodes"], &ledger["quorum"]), (&4.into(), &3.into()));
    group.theta(&["keys", "refresh", "release"]).ok();
    let ledger = await_key(&group, "release", 1, 1);
    let id = ledger["ledger"].as_str().unwrap();

    let shown = group.theta(&["ledger", "show"]).ok().text();
    assert!(shown.contains(id) && shown.contains("release") && shown.contains("any 2 of 4"), "{shown}");
    let entries = group.theta(&["ledger", "show", "--entries"]).ok().text();
    let decided = [
        "begin to make key release (frost-ed25519, any 2 of 4)",
        "what was begun at 1 has come about",
        "begin to refresh key release",
        "what was begun at 3 has come about",
    ];
    assert!(decided.iter().all(|what| entries.contains(what)), "{entries}");
    // By whose word: the key of the client, as the policies have it.
    let views = group.theta(&["ledger", "show", "--entries", "--json"]).ok().json();
    let policy = std::fs::read_to_string(group.node_dir(1).join("policy.toml")).unwrap();
    let asked = views[0]["asked_by"].as_str().unwrap();
    assert!(policy.contains(&format!("signing_keys = [\"{asked}\"]")), "{asked}");
    assert!(entries.contains(&format!("asked by {}, nodes ", &asked[..16])), "{entries}");
    // The states that the group has decided.
    let state = |group: &Group| {
        let shown = await_key(group, "release", 1, 1);
        shown["keys"].as_array().unwrap().iter().find(|key| key["key"] == "release").unwrap()["state"].clone()
    };
    assert_eq!(state(&group), "active");
    group.theta(&["keys", "disable", "release"]).ok();
    assert_eq!(state(&group), "disabled");
    group.theta(&["ledger", "export", "-o", "ledger.jsonl"]).ok();
    drop(group.theta(&["ledger", "verify"]).ok());

    // With every node gone, by the group file or by the ledger's id alone.
    for node in 1..=4 {
        group.kill(node);
    }
    group.theta(&["ledger", "show", "--timeout", "2s"]).fails(3, &["node 1"]);
    let verified = group.theta(&["ledger", "verify", "ledger.jsonl", "--json"]).ok().json();
    assert_eq!(verified["ledger"], id);
    group.theta(&["ledger", "verify", "ledger.jsonl", "--ledger", id, "--client", "nowhere"]).ok();
    // The id is what those who founded the group have compared.
    let founding = group.theta(&["group", "show", "theta-group/node-2/group.founding", "--json"]).ok().json();
    assert_eq!(ledger["fingerprint"], founding["fingerprint"]);
    let fingerprint = founding["fingerprint"].as_str().unwrap();
    group.theta(&["ledger", "verify", "ledger.jsonl", "--ledger", fingerprint, "--client", "nowhere"]).ok();
    let other = "00".repeat(32);
    group.theta(&["ledger", "verify", "ledger.jsonl", "--ledger", &other]).fails(1, &["is of ledger", id]);
    group.theta(&["ledger", "verify", "ledger.jsonl", "--ledger", "abc"]).fails(2, &["64 hexadecimal digits"]);
    forgeries(&group);
}

/// Whatever somebody changes in an export is seen.
fn forgeries(group: &Group) {
    let text = String::from_utf8(group.read("ledger.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let verify = |lines: &[&str]| {
        let file = group.file("forged.jsonl", lines.join("\n") + "\n");
        group.theta(&["ledger", "verify", &file])
    };
    // An entry left out, another said, a vote changed, a member exchanged.
    let without: Vec<&str> = lines.iter().enumerate().filter(|(at, _)| *at != 1).map(|(_, line)| *line).collect();
    verify(&without).fails(1, &["forged.jsonl:2", "the next entry is number 1, not 2"]);
    let said = lines[1].replace("any 2 of 4", "any 1 of 4");
    verify(&[&[lines[0], &said], &lines[2..]].concat()).fails(1, &["forged.jsonl:2", "not what the entry says"]);
    // Words of another release are not compared, which it says, and the votes are all the same.
    let edition = lines[0].replace("\"words\":1", "\"words\":7");
    let told = verify(&[&[&*edition, &said], &lines[2..]].concat()).ok();
    assert!(told.stderr.contains("another release wrote forged.jsonl"), "{told:?}");
    let (rest, last) = lines[1].strip_suffix("\"}").unwrap().split_at(lines[1].len() - 3);
    let changed = format!("{rest}{}\"}}", if last == "0" { "1" } else { "0" });
    verify(&[&[lines[0], &changed], &lines[2..]].concat()).fails(1, &["forged.jsonl:2"]);
    let member = lines[0].replace("\"k\":2", "\"k\":1");
    verify(&[&[&*member], &lines[1..]].concat()).fails(1, &["forged.jsonl:1", "was founded as", "cannot change"]);
}

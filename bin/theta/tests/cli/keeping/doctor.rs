//! What is wrong with a group, who a ceremony waits for, and signatures over digests.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use crate::harness::Group;

/// The kinds of what was found, with the nodes.
fn findings(report: &serde_json::Value) -> Vec<(String, Vec<u64>)> {
    let finding = |finding: &serde_json::Value| {
        let nodes = finding["nodes"].as_array().unwrap().iter().map(|node| node.as_u64().unwrap()).collect();
        (finding["kind"].as_str().unwrap().to_owned(), nodes)
    };
    report["findings"].as_array().unwrap().iter().map(finding).collect()
}

#[test]
fn the_doctor_finds_what_differs_and_what_is_missing() {
    let mut group = Group::started();
    // Peers may still be looking for each other, and for the latest store.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let run = group.theta(&["doctor", "--json"]);
        if run.code == 0 {
            assert!(run.json()["healthy"].as_bool().unwrap() && findings(&run.json()).is_empty());
            assert_eq!(run.json()["answered"], 4);
            break;
        }
        assert!(Instant::now() < deadline, "{run:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
    let said = group.theta(&["doctor"]).ok().text();
    assert!(said.contains("4 of 4 nodes answer"), "{said}");
    // A policy that nobody else has, a key of which the others do not know that it is disabled, and a node that is down.
    let policy = group.node_dir(2).join("policy.toml");
    fs::write(&policy, fs::read_to_string(&policy).unwrap() + "\n# another\n").unwrap();
    group.kill(4);
    group.theta(&["keys", "disable", "coin"]);
    group.start(4);
    group.await_up(4);
    group.kill(3);
    let expected = [("node-down", vec![3]), ("policies-differ", vec![2])];
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let run = group.theta(&["doctor", "--json"]);
        let found = findings(&run.json());
        if expected.iter().all(|(kind, nodes)| found.contains(&((*kind).to_owned(), nodes.clone()))) {
            run.fails(1, &["wrong, as said above"]);
            break;
        }
        assert!(Instant::now() < deadline, "{run:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
    let told = group.theta(&["doctor"]);
    assert!(told.text().contains("theta node run --dir") && told.text().contains("policies differ: "), "{told:?}");
    for node in [1, 2] {
        group.kill(node);
    }
    group.theta(&["doctor", "--timeout", "3s"]).fails(3, &["only 1 of 4 nodes answer"]);
}

#[test]
fn a_ceremony_says_for_whom_it_waits() {
    let mut group = Group::started();
    let said = group.theta(&["keys", "ceremonies"]).ok().text();
    assert!(said.contains("no ceremony runs"), "{said}");
    // Nothing is decided without three of four; two are away.
    super::ledger::await_key(&group, "sign", 1, 0);
    group.kill(3);
    group.kill(4);
    let mut held = crate::harness::command()
        .args(["keys", "refresh", "sign", "--patience", "60s", "--evidence", "."])
        .current_dir(group.path())
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let views = loop {
        let views = group.theta(&["keys", "ceremonies", "--json"]).ok().json();
        let waits = views[0]["waits_for"].as_array().cloned().unwrap_or_default();
        if waits.contains(&3.into()) && waits.contains(&4.into()) {
            break views;
        }
        assert!(Instant::now() < deadline, "{views}");
        std::thread::sleep(Duration::from_millis(200));
    };
    assert_eq!((views[0]["aim"].as_str(), views[0]["key"].as_str()), (Some("refresh"), Some("sign")));
    // One of the two may not have told yet.
    let told = views[0]["nodes"].as_object().unwrap();
    assert!(told.values().all(|told| told["kind"] == "running") && !told.is_empty(), "{views}");
    let said = group.theta(&["keys", "ceremonies"]).ok().text();
    assert!(
        said.contains("refresh of sign@1") && said.contains("waits for") && said.contains("not heard from yet: "),
        "{said}"
    );
    held.kill().unwrap();
    held.wait().unwrap();
}

#[test]
fn rsa_signs_digests_and_what_is_too_long_for_the_nodes() {
    let group = {
        let mut group = Group::made();
        let key = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/keyfiles/src/import/safe_primes.pem");
        group.theta(&["keys", "import", "--name", "rsa", "--suite", "sh00-pkcs1-sha256", key]).ok();
        group.start_all();
        group
    };
    // More than a message to a node may have.
    let long = vec![7; 40 << 20];
    group.file("long", &long);
    let signed = group.theta(&["sign", "long", "--key", "rsa", "--json"]).ok();
    let digest = signed.json()["digest"].as_str().unwrap().to_owned();
    assert!(digest.starts_with("sha256:") && signed.stderr.contains(&digest), "{signed:?}");
    group.theta(&["verify", "long", "long.sig", "--key", "rsa"]).ok();
    group.theta(&["verify", "--digest", &digest, "long.sig", "--key", "rsa"]).ok();
    // The same signature, whether its digest was sent or the file read; a standard verifier takes it.
    group.theta(&["sign", "--digest", &digest, "--key", "rsa", "-o", "again.sig"]).ok();
    assert_eq!(group.read("again.sig"), group.read("long.sig"));
    let key = group.theta(&["keys", "export", "rsa"]).ok().text();
    group.file("key.pem", key);
    let openssl = ["dgst", "-sha256", "-verify", "key.pem", "-signature", "long.sig", "long"];
    assert!(Command::new("openssl").args(openssl).current_dir(group.path()).status().unwrap().success());
    // A small one goes whole, and is signed alike.
    group.file("short", "a message");
    let whole = group.theta(&["sign", "short", "--key", "rsa", "--json"]).ok();
    assert!(whole.json().get("digest").is_none());
    let other = format!("sha256:{}", "07".repeat(32));
    group.theta(&["verify", "--digest", &other, "long.sig", "--key", "rsa"]).fails(1, &["is not a signature"]);
    // Where the scheme needs the message, it says so.
    group
        .theta(&["sign", "--digest", &digest, "--key", "sign-ed25519", "-o", "no"])
        .fails(2, &["messages and no digests"]);
    group.theta(&["sign", "long", "--key", "sign-ed25519", "-o", "no"]).fails(2, &["longer than", "whole message"]);
    let sha512 = format!("sha512:{}", "07".repeat(64));
    group.theta(&["sign", "--digest", &sha512, "--key", "rsa", "-o", "no"]).fails(2, &["hashes by sha256"]);
    group.theta(&["sign", "--digest", "sha256:07", "--key", "rsa", "-o", "no"]).fails(2, &["64 hexadecimal digits"]);
    // It is an operation of its own, on record as such; who may not sign may not do this either.
    let shown = group.theta(&["audit", "show", "--node", "1", "--operation", "sign-digest", "--json"]).ok().text();
    assert!(shown.contains("sign-digest"), "{shown}");
    let deny = "\n[[rule]]\nname = \"no-signing\"\neffect = \"deny\"\nclients = [\"*\"]\nkeys = [\"rsa\"]\noperations = [\"sign\"]\n";
    for node in 1..=4 {
        let policy = group.node_dir(node).join("policy.toml");
        fs::write(&policy, fs::read_to_string(&policy).unwrap() + deny).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let run = group.theta(&["sign", "--digest", &other, "--key", "rsa", "-o", "denied"]);
        if run.code == 1 {
            run.fails(1, &["no-signing"]);
            break;
        }
        assert!(Instant::now() < deadline, "{run:?}");
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// A request that waits for a node that is down is taken back at the others, so that it does not begin when that one is there again.
#[test]
fn a_request_that_waits_is_taken_back() {
    let mut group = Group::made_with(&["--no-keys"]);
    group.start_all();
    group.kill(4);
    // It takes the word of four.
    let create = ["keys", "create", "late=frost-ed25519", "--threshold", "4", "--patience", "3s"];
    group.theta(&create).fails(3, &["not heard from yet: 4", "theta keys ceremonies", "theta keys cancel late"]);
    let taken = group.theta(&["keys", "cancel", "late", "--json"]).ok().json();
    assert_eq!((&taken["key"], &taken["cancelled"]), (&"late".into(), &true.into()));
    group.theta(&["keys", "cancel", "late"]).fails(1, &["none waits to begin"]);
    group.start(4);
    group.await_up(4);
    // Asked for anew, with a nonce of its own, it is made, and the one before was not.
    group.theta(&["keys", "create", "late=frost-ed25519", "--threshold", "4"]).ok();
    let entries = group.theta(&["ledger", "show", "--entries", "--json"]).ok().json();
    // The entry of its begin names the key, and there is one.
    let begun = entries.as_array().unwrap().iter().filter(|entry| entry["what"].to_string().contains("late"));
    assert_eq!(begun.count(), 1, "{entries}");
}

/// A key is made while a holder is away: whoever asked for it hears at once that this one has no share, and what brings it.
#[test]
fn who_was_away_when_a_key_was_made_is_named() {
    let mut group = Group::made_with(&["--no-keys"]);
    group.start_all();
    group.kill(4);
    let made = group.theta(&["keys", "create", "zone=frost-ed25519", "--json"]).ok();
    assert_eq!(made.json()[0]["without_share"], serde_json::json!([4]), "{made:?}");
    assert!(made.stderr.contains("node 4 has no share of zone"), "{made:?}");
    assert!(made.stderr.contains("theta keys recover zone --node 4"), "{made:?}");
    group.start(4);
    group.await_up(4);
    // It takes a moment until the others have found it again, and longer on a busy machine: a ceremony before that goes on without it, as it should.
    let deadline = Instant::now() + Duration::from_secs(60);
    for number in 0_u32.. {
        let made = group.theta(&["keys", "create", &format!("other-{number}=frost-ed25519"), "--json"]).ok();
        if made.json()[0]["without_share"] == serde_json::json!([]) {
            return;
        }
        assert!(Instant::now() < deadline, "{made:?}");
    }
}

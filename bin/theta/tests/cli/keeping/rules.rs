//! Policies at real nodes: what they refuse, and with which messages; approvals; audit logs.

use std::{
    fs,
    time::{Duration, Instant},
};

use crate::harness::{Group, Run};

/// Inserts rules before those of the group's own policy.
fn begin_policy_with(group: &Group, rules: &str) {
    for node in 1..=4 {
        let file = group.node_dir(node).join("policy.toml");
        let text = fs::read_to_string(&file).unwrap();
        let (head, rest) = text.split_once("[[rule]]").unwrap();
        fs::write(&file, format!("{head}{rules}\n[[rule]]{rest}")).unwrap();
    }
}

/// Repeats a command until it ends with this code: running nodes take a changed policy within a second or two.
fn until(code: i32, command: impl Fn() -> Run) -> Run {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let run = command();
        if run.code == code {
            return run;
        }
        assert!(Instant::now() < deadline, "{run:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_refusal_names_the_rule_and_a_changed_policy_is_taken_while_nodes_run() {
    let group = Group::started();
    let name = group.file("message", "x");
    let sign = || group.theta(&["sign", &name, "-o", "message.sig"]);
    sign().ok();
    begin_policy_with(
        &group,
        "[[rule]]\nname = \"freeze\"\neffect = \"deny\"\nclients = [\"*\"]\nkeys = [\"sign\"]\noperations = [\"sign\"]\n",
    );
    until(1, sign).fails(1, &["freeze"]);
    group.theta(&["sign", &name, "--key", "sign-ed25519", "-o", "other.sig"]).ok();
    let explain = |node: &str, key: &str| {
        let asks = ["--client", "client", "--operation", "sign", "--key", key, "--message", &name];
        group.theta(&[&["policy", "explain", "--ask", node], &asks[..], &["--json"]].concat()).ok().json()
    };
    let frozen = explain("3", "sign");
    assert_eq!((&frozen["answer"], &frozen["rule"]), (&"deny".into(), &"freeze".into()));
    assert_eq!(explain("3", "sign-ed25519")["rule"], "client-uses-keys");
    let text = group.theta(&["policy", "explain", "--ask", "2", "--client", "mallory", "--operation", "status"]).ok();
    assert!(text.text().contains("no client \"mallory\""), "{text:?}");
    group.theta(&["policy", "explain", "--ask", "9", "--client", "client", "--operation", "status"]).fails(2, &["9"]);
    // A file with a mistake leaves the old rules in force.
    for node in 1..=4 {
        fs::write(group.node_dir(node).join("policy.toml"), "format = 1\n[[rule]]\n").unwrap();
    }
    std::thread::sleep(Duration::from_secs(3));
    sign().fails(1, &["freeze"]);
    group.theta(&["sign", &name, "--key", "sign-ed25519", "-o", "other.sig"]).ok();
}

#[test]
fn approvals_open_what_takes_two() {
    let group = Group::made();
    let approvers: String =
        ["ann", "ben"].map(|name| group.theta(&["approver", "new", "--name", name]).ok().text()).concat();
    begin_policy_with(
        &group,
        &format!(
            "{approvers}\n[[rule]]\nname = \"takes-two\"\neffect = \"allow\"\nclients = [\"client\"]\nkeys = [\"*\"]\n\
             operations = [\"sign\", \"keys.refresh\", \"keys.destroy\"]\napprovals = {{ of = [\"ann\", \"ben\"], need = 2 }}\n"
        ),
    );
    let mut group = group;
    group.start_all();
    let name = group.file("message", "it takes two");
    group.theta(&["sign", &name]).fails(1, &["takes-two", "2 approvals"]);
    for who in ["ann", "ben"] {
        let key = format!("{who}.key");
        let to = format!("{who}.approval");
        let approve = ["approve", "--as", &key, "--operation", "sign", "--key", "sign", "--message", &name, "--yes"];
        group.theta(&[&approve[..], &["-o", &to]].concat()).ok();
    }
    // Both approve one request: the first is shown its nonce, the second is given it, and the caller's command reads it
    // from the files.
    let approve = |who: &str, nonce: Option<&str>| {
        let (key, to) = (format!("{who}.key"), format!("{who}.refresh"));
        let approve = ["approve", "--as", &key, "--operation", "keys.refresh", "--key", "files", "--yes", "-o", &to];
        let nonce = nonce.map(|nonce| ["--nonce", nonce]).unwrap_or(["--for", "24h"]);
        let approved = group.theta(&[&approve[..], &nonce, &["--json"]].concat()).ok();
        // In words of people, and not of the program.
        assert!(approved.stderr.contains("about      new shares of files for those who hold it"), "{approved:?}");
        approved.json()["nonce"].as_str().unwrap().to_owned()
    };
    let nonce = approve("ann", None);
    assert_eq!(approve("ben", Some(&nonce)), nonce);
    group.theta(&["sign", &name, "--approval", "ann.approval"]).fails(1, &["takes-two", "ann"]);
    group.theta(&["sign", &name, "--approval", "ann.approval", "--approval", "ben.approval"]).ok();
    group.theta(&["verify", &name, "message.sig"]).ok();
    let other = group.file("other", "not approved");
    group.theta(&["sign", &other, "--approval", "ann.approval", "--approval", "ben.approval"]).fails(1, &["takes-two"]);
    group.theta(&["keys", "refresh", "files"]).fails(1, &["takes-two"]);
    let refresh = ["keys", "refresh", "files", "--approval", "ann.refresh", "--approval", "ben.refresh"];
    let another = "0f".repeat(32);
    group.theta(&[&refresh[..], &["--nonce", &another]].concat()).fails(1, &["takes-two", "another statement"]);
    group.theta(&refresh).ok();
    // The approvals are used up: the same request finds the old ceremony.
    let again = group.theta(&[&refresh[..], &["--nonce", &nonce]].concat()).ok().text();
    assert!(again.contains("epoch 1"), "{again}");
    let keys: Vec<String> = ["ann", "ben"].map(|who| verifying_key(&approvers, who)).into();
    let begun = decided(&group, "begin to refresh key files");
    assert_eq!(begun["approved_by"], serde_json::json!(keys), "{begun}");
    assert!(
        begun["asked_by"].as_str().unwrap().starts_with("ed25519:") && begun["consents"].as_array().unwrap().len() >= 2
    );
    approve("ben", None);
    group.theta(&refresh).fails(2, &["ben.refresh", "--nonce"]);
    destroys_when_it_was_approved(&group);
    group
        .theta(&["approve", "--as", "ann.key", "--operation", "keys.disable", "--key", "files", "--yes"])
        .fails(2, &["--generation"]);
}

/// The key of an approver, in the lines for policies.
fn verifying_key(lines: &str, name: &str) -> String {
    let (_, rest) = lines.split_once(&format!("name = \"{name}\"\nkey = \"")).unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// The last entry of the ledger that says this.
fn decided(group: &Group, what: &str) -> serde_json::Value {
    let entries = group.theta(&["ledger", "show", "--entries", "--json"]).ok().json();
    let mut entries = entries.as_array().unwrap().iter().rev();
    entries.find(|entry| entry["what"].as_str().unwrap().contains(what)).unwrap().clone()
}

/// An approval to destroy a key names when, and opens no other time.
fn destroys_when_it_was_approved(group: &Group) {
    let at = "2099-01-01T00:00:00Z";
    for who in ["ann", "ben"] {
        let (key, to) = (format!("{who}.key"), format!("{who}.destroy"));
        let approve = ["approve", "--as", &key, "--operation", "keys.destroy", "--key", "coin-bls", "--yes", "-o", &to];
        let shown = group.theta(&[&approve[..], &["--generation", "1", "--at", at]].concat()).ok();
        assert!(shown.stderr.contains("coin-bls is disabled, and destroyed at 2099-01-01T00:00:00"), "{shown:?}");
        let now = ["approve", "--as", &key, "--operation", "keys.destroy", "--key", "coin-bls", "--yes", "-o", "now"];
        let shown = group.theta(&[&now[..], &["--generation", "1"]].concat()).ok();
        assert!(shown.stderr.contains("destroyed at once"), "{shown:?}");
    }
    let destroy = |more: &[&str]| {
        let approved = ["--approval", "ann.destroy", "--approval", "ben.destroy"];
        group.theta(&[&["keys", "destroy", "coin-bls", "--yes"], &approved[..], more].concat())
    };
    destroy(&["--now"]).fails(1, &["takes-two", "another statement"]);
    destroy(&[]).fails(1, &["takes-two", "another statement"]);
    let doomed = destroy(&["--at", at]).ok().text();
    assert!(doomed.contains("coin-bls is disabled, and destroyed at 2099-01-01T00:00:00"), "{doomed}");
    let shown = group.theta(&["ledger", "show"]).ok().text();
    assert!(shown.contains("disabled, destroyed at 2099-01-01T00:00:00"), "{shown}");
    assert_eq!(decided(group, "coin-bls is disabled")["approved_by"].as_array().unwrap().len(), 2);
    destroy(&["--at", "2020-01-01T00:00:00Z"]).fails(2, &["more than an hour"]);
    let misplaced = ["approve", "--as", "ann.key", "--operation", "keys.disable", "--key", "coin", "--generation", "1"];
    group.theta(&[&misplaced[..], &["--at", at, "--yes"]].concat()).fails(2, &["--at is for keys.destroy"]);
}

/// A node that comes back with an older copy of its store may have forgotten what it signed.
#[test]
fn an_older_store_is_noticed_until_a_person_confirms_it() {
    // Any two of four sign, and any three promise a slot.
    let mut group = Group::made_with(&["--threshold", "2"]);
    begin_policy_with(&group, "[[signing]]\nname = \"heights\"\nkeys = [\"sign\"]\nslot = \"claimed\"\nfirst = 1\n");
    let (store, copy) = (group.node_dir(1).join("theta.redb"), group.path().join("copy"));
    fs::copy(&store, &copy).unwrap();
    group.start_all();
    // The peers can miss only what they have seen, so all have to have exchanged greetings once.
    let deadline = Instant::now() + Duration::from_secs(60);
    while group.theta(&["status"]).ok().text().matches("all 3").count() < 4 {
        assert!(Instant::now() < deadline, "not all are connected");
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(Duration::from_secs(1));
    let (one, other) = (group.file("one", "block one"), group.file("other", "another block one"));
    let sign = |group: &Group, file: &str, slot: &str| {
        group.theta(&["sign", file, "--key", "sign", "--slot", slot, "--timeout", "10s", "-o", "x.sig"])
    };
    until(0, || sign(&group, &one, "1"));
    until(1, || sign(&group, &other, "1")).fails(1, &["slot"]);
    group.kill(1);
    fs::rename(&copy, &store).unwrap();
    group.kill(4);
    group.start(1);
    group.await_up(1);
    // A slot takes all three nodes. Node 1 learns from the others that its store is old, and signs nothing that has a slot.
    let two = group.file("two", "block two");
    for _ in 0..3 {
        sign(&group, &two, "2").fails(3, &["node 1", "a signing rule covers this key"]);
        std::thread::sleep(Duration::from_secs(1));
    }
    let confirm = |group: &Group, peer: u16| {
        let dir = format!("theta-group/node-{peer}");
        group.theta(&["keys", "confirm-restore", "--dir", &dir, "--node", "1", "--json"])
    };
    confirm(&group, 2).fails(2, &["stop the node first"]);
    for node in [1, 2, 3] {
        group.kill(node);
    }
    confirm(&group, 1).fails(2, &["peers"]);
    // Restarts change nothing: the copy is no continuation of what the peers have seen, however often it is opened.
    let trust = |group: &Group, more: &[&str]| {
        group.theta(&[&["keys", "trust-store", "--dir", "theta-group/node-1", "--json"], more].concat())
    };
    for _ in 0..2 {
        let shown = trust(&group, &[]).ok().json();
        assert!(shown["overruled"].as_array().is_some_and(|all| !all.is_empty()) && shown["trusted"] == false);
    }
    assert_eq!(trust(&group, &["--yes"]).ok().json()["trusted"], true);
    let log = group.theta(&["audit", "export", "--dir", "theta-group/node-1"]).ok().text();
    assert!(log.contains("store.trust"), "{log}");
    for node in [1, 2, 3, 4] {
        group.start(node);
        group.await_up(node);
    }
    until(0, || sign(&group, &two, "2"));
}

#[test]
fn a_token_is_a_client() {
    let group = Group::made();
    let lines = group.theta(&["token", "new", "--name", "watcher"]).ok().text();
    let rule = "[[rule]]\nname = \"watching\"\neffect = \"allow\"\nclients = [\"watcher\"]\nkeys = [\"*\"]\n\
                operations = [\"status\", \"keys.list\"]\n";
    begin_policy_with(&group, &format!("{lines}\n{rule}"));
    let mut group = group;
    group.start_all();
    // A client directory with nothing but the group file and public keys.
    let client = group.path().join("theta-group/client");
    for file in ["client.crt", "client.key", "request.key"] {
        fs::remove_file(client.join(file)).unwrap();
    }
    group.theta(&["status", "--token-file", "watcher.token"]).ok();
    let name = group.file("message", "x");
    group.theta(&["sign", &name, "--token-file", "watcher.token"]).fails(1, &["watcher may not sign", "no rule"]);
    group.theta(&["sign", &name]).fails(1, &[]);
    // For programs without a client of ours; nothing of the token is in it.
    let header = group.theta(&["token", "proof", "--node", "2", "--token-file", "watcher.token"]).ok().text();
    let token = fs::read_to_string(group.path().join("watcher.token")).unwrap();
    let seed = token.trim().strip_prefix("theta-token2-").unwrap();
    assert!(header.starts_with("authorization: Theta ") && !header.contains(seed), "{header}");
    group.theta(&["token", "proof", "--node", "2"]).fails(2, &["--token-file"]);
}

/// The attack: nodes are used, and killed before they have written their records.
#[test]
fn what_left_before_a_kill_is_on_record() {
    let mut group = Group::started();
    let mut used = [0; 5];
    for round in 0..4 {
        let drawn = group.theta(&["coin", &format!("coin {round}"), "--json"]).ok().json();
        (1..=4).for_each(|node| group.kill(node));
        for node in drawn["contributors"].as_array().unwrap().iter().map(|node| node.as_u64().unwrap()) {
            used[usize::try_from(node).unwrap()] += 1;
            let log = group.theta(&["audit", "export", "--dir", &format!("theta-group/node-{node}")]).ok().text();
            let flips = |line: &&str| line.contains("\"flip-coin\"") && line.contains("\"allowed\":true");
            let recorded = log.lines().filter(flips).count();
            assert!(recorded >= used[usize::try_from(node).unwrap()], "round {round}: node {node} has {recorded}");
        }
        group.start_all();
    }
}

#[test]
fn the_audit_log_is_whole_and_a_flipped_byte_is_found() {
    let mut group = Group::started();
    let name = group.file("message", "x");
    // The client has its answer before every node has decided, so it asks until node 1 has.
    let deadline = Instant::now() + Duration::from_secs(60);
    let shown = loop {
        group.theta(&["sign", &name, "-o", "signature"]).ok();
        let shown = group.theta(&["audit", "show", "--node", "1", "--operation", "sign"]).ok().text();
        if shown.contains("allowed") || Instant::now() > deadline {
            break shown;
        }
    };
    assert!(shown.contains("client-uses-keys") && shown.contains("allowed"), "{shown}");
    group.theta(&["coin", "heads"]).ok();
    let verdict = group.theta(&["audit", "verify", "--node", "1", "--json"]).ok().json();
    assert!(verdict["whole"] == true && verdict["records"].as_u64().unwrap() >= 2, "{verdict}");
    let checkpoint = verdict["checkpoint"].as_str().unwrap().to_owned();
    // Reading the log adds a record, so the log goes on after the checkpoint.
    group.theta(&["audit", "show", "--node", "1"]).ok();
    group.theta(&["audit", "export", "--dir", "theta-group/node-1", "-o", "log"]).fails(2, &["in use", "--node"]);

    group.kill(1);
    group.theta(&["audit", "export", "--dir", "theta-group/node-1", "-o", "log"]).ok();
    group.theta(&["audit", "verify", "log", "--checkpoint", &checkpoint]).ok();
    let log = String::from_utf8(group.read("log")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let cut = lines[..1].join("\n");
    group.file("cut", cut);
    group.theta(&["audit", "verify", "cut", "--checkpoint", &checkpoint]).fails(1, &["cut off"]);
    group.file("gap", [lines[0], lines[2]].join("\n"));
    group.theta(&["audit", "verify", "gap"]).fails(1, &["record 1", "missing"]);
    group.file("altered", log.replacen("\"allowed\":true", "\"allowed\":false", 1));
    let broken = group.theta(&["audit", "verify", "altered", "--json"]);
    assert_eq!((broken.code, &broken.json()["whole"]), (1, &false.into()));
    broken.fails(1, &["it was altered"]);

    // Only exported records can be pruned; the log goes on after them.
    let prune = |through: &str| group.theta(&["audit", "prune", "--dir", "theta-group/node-1", "--through", through]);
    prune(&format!("theta-audit:0:{}", "0".repeat(64))).fails(1, &["nothing was removed"]);
    let other = format!("{}0", &checkpoint[..checkpoint.len() - 1]);
    let other = if other == checkpoint { format!("{}1", &checkpoint[..checkpoint.len() - 1]) } else { other };
    prune(&other).fails(1, &["another log"]);
    let pruned = prune(&checkpoint).ok().text();
    assert!(pruned.contains(&format!("removed {} records", verdict["records"])), "{pruned}");
    prune(&checkpoint).fails(1, &["pruned before"]);
    let verify = ["audit", "verify", "--dir", "theta-group/node-1"];
    group.theta(&verify).fails(1, &["pruned", "--after"]);
    group.theta(&[&verify[..], &["--after", &other]].concat()).fails(1, &["replaced"]);
    let earlier = format!("theta-audit:1:{}", "0".repeat(64));
    group
        .theta(&[&verify[..], &["--after", &checkpoint, "--checkpoint", &earlier]].concat())
        .fails(2, &["begins after"]);
    let rest = group.theta(&[&verify[..], &["--after", &checkpoint, "--json"]].concat()).ok().json();
    assert_eq!(rest["records"].as_u64(), u64::try_from(lines.len()).ok());
    group.theta(&["audit", "show", "--dir", "theta-group/node-1"]).ok();

    // The store itself is changed: nothing of the log is accepted.
    let store = group.node_dir(1).join("theta.redb");
    let mut bad = fs::read(&store).unwrap();
    bad.iter_mut().skip(4096).step_by(509).filter(|byte| **byte != 0).for_each(|byte| *byte ^= 1);
    fs::write(&store, bad).unwrap();
    group.theta(&["audit", "verify", "--dir", "theta-group/node-1"]).fails(1, &[]);
}

/// Where beginning takes an approval, so does the end, and it is another one. The commands that the refusal names can be pasted.
#[test]
fn the_end_of_a_ceremony_takes_an_approval_of_its_own() {
    let mut group = Group::made_with(&["--no-keys"]);
    let ann = group.theta(&["approver", "new", "--name", "ann"]).ok().text();
    begin_policy_with(
        &group,
        &format!(
            "{ann}\n[[rule]]\nname = \"takes-ann\"\neffect = \"allow\"\nclients = [\"client\"]\nkeys = [\"*\"]\n\
             operations = [\"keys.create\"]\napprovals = {{ of = [\"ann\"], need = 1 }}\n"
        ),
    );
    group.start_all();
    // The client is not where commands look for it by themselves.
    fs::rename(group.path().join("theta-group/client"), group.path().join("mine")).unwrap();
    let approve = ["approve", "--as", "ann.key", "--yes", "--client", "mine"];
    let create = ["--operation", "keys.create", "--key", "late", "--suite", "frost-ed25519", "--threshold", "4"];
    group.theta(&[&approve[..], &create, &["-o", "begin"]].concat()).ok();
    group.kill(4);
    // It takes the word of four.
    let create = ["keys", "create", "late=frost-ed25519", "--threshold", "4", "--patience", "3s", "--client", "mine"];
    group.theta(&[&create[..], &["--approval", "begin"]].concat()).fails(3, &[]);
    let cancel = ["keys", "cancel", "late", "--client", "mine"];
    group.theta(&[&cancel[..], &["--approval", "begin"]].concat()).fails(1, &["takes-ann", "another statement"]);
    let refused = group.theta(&cancel).fails(1, &["takes-ann"]);
    let pasted = |begin: &str| -> Run {
        let line = refused.stderr.lines().find_map(|line| line.trim().strip_prefix(begin)).unwrap();
        let words: Vec<&str> = begin.split(' ').chain(line.split(' ')).filter(|word| !word.is_empty()).collect();
        let yes: &[&str] = if words[1] == "approve" { &["--yes"] } else { &["--json"] };
        group.theta(&[&words[1..], yes].concat())
    };
    let shown = pasted("theta approve").ok();
    assert!(shown.stderr.contains("comes to nothing: a new key late (frost-ed25519)"), "{shown:?}");
    let cancelled = pasted("theta keys cancel").ok().json();
    assert_eq!((&cancelled["key"], &cancelled["cancelled"]), (&"late".into(), &true.into()));
    group.theta(&[&approve[..], &["--cancel", "late"]].concat()).fails(1, &["none waits to begin"]);
    group.theta(&[&approve[..], &["--cancel", "late", "--key", "late"]].concat()).fails(2, &["--cancel"]);
    group.theta(&approve).fails(2, &["--operation"]);
}

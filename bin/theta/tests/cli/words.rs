//! Messages for people and programs: who refuses, what is missing, what to do.

use std::{fs, thread, time::Duration};

use crate::harness::{Group, theta_in};

/// Makes a client that no policy knows, with the public keys of the group. Returns its policy lines.
fn stranger(group: &Group, name: &str) -> String {
    let made =
        group.theta(&["client", "new", "--name", name, "--group", "theta-group/group.toml", "--json"]).ok().json();
    let keys = ["coin", "sign"].map(|key| {
        let file = group.path().join(format!("theta-group/client/keys/{key}.pub"));
        format!("'''\n{}'''", fs::read_to_string(file).unwrap())
    });
    let file = group.path().join(made["file"].as_str().unwrap());
    let text = fs::read_to_string(&file).unwrap();
    let keys = format!("public_keys = [{}]\n\n[group]\n", keys.join(", "));
    fs::write(file, text.replace("\n[group]\n", &keys)).unwrap();
    made["policy"].as_str().unwrap().to_owned()
}

#[test]
fn a_client_that_is_refused_is_told_so() {
    let group = Group::shared();
    let policy = stranger(group, "stranger");
    let message = group.file("refused.txt", "x");
    let run =
        group.theta(&["status", "--client", "stranger.client"]).fails(1, &["nodes 1, 2, 3 and 4 are there and refuse"]);
    assert!(!run.stderr.contains("start the others") && !run.text().contains(" down "), "{run:?}");
    assert!(run.text().contains("0 of 4 nodes are up, and 4 there that refuse this client"), "{run:?}");
    let run = group.theta(&["status", "--client", "stranger.client", "--json"]);
    let states: Vec<_> = run.json()["nodes"].as_array().unwrap().iter().map(|node| node["state"].clone()).collect();
    assert_eq!((run.code, states), (1, vec![serde_json::Value::from("refuses"); 4]));

    let run = group.theta(&["sign", &message, "--client", "stranger.client"]).fails(1, &["turn this client away"]);
    let certificate = policy.lines().find(|line| line.starts_with("certificates")).unwrap();
    assert!(run.stderr.contains(certificate), "what lets it in can be pasted: {certificate} in {run:?}");
    group.theta(&["keys", "refresh", "sign", "--client", "stranger.client"]).fails(1, &["turn this client away"]);
    group
        .theta(&["keys", "list", "--live", "--client", "stranger.client"])
        .fails(1, &["all are there and refuse this client"]);
    group.theta(&["audit", "show", "--node", "1", "--client", "stranger.client"]).fails(1, &["turns this client away"]);
}

#[test]
fn who_is_let_in_by_one_node_alone_is_told_so() {
    let mut group = Group::made();
    let client = stranger(&group, "gateway");
    let rule = "[[rule]]\nname = \"g\"\neffect = \"allow\"\nclients = [\"gateway\"]\nkeys = [\"*\"]\noperations = [\"flip-coin\"]\n";
    let file = group.node_dir(1).join("policy.toml");
    fs::write(&file, fs::read_to_string(&file).unwrap() + &client + rule).unwrap();
    group.start_all();
    let alone = group.theta(&["coin", "x", "--client", "gateway.client", "--timeout", "2s"]);
    let certificate = client.lines().find(|line| line.starts_with("certificates")).unwrap();
    let alone = alone.fails(1, &["flip coin: nodes 2, 3 and 4 turn this client away", certificate]);
    assert!(!alone.stderr.contains("DeadlineExceeded") && !alone.stderr.contains("Unknown"), "{alone:?}");
    let status =
        group.theta(&["status", "--client", "gateway.client"]).fails(1, &["nodes 1, 2, 3 and 4 are there and refuse"]);
    assert!(status.text().contains("node 1: client gateway may not status"), "{status:?}");
}

#[test]
fn who_may_only_sign_takes_nobody_for_a_liar_after_a_rotation() {
    let mut group = Group::made();
    let (signer, kept) = (stranger(&group, "signer"), stranger(&group, "kept"));
    let rules = "[[rule]]\nname = \"uses\"\neffect = \"allow\"\nclients = [\"signer\", \"kept\"]\nkeys = [\"sign\", \"coin\"]\n\
                 operations = [\"sign\", \"flip-coin\"]\n\
                 [[rule]]\nname = \"keeps\"\neffect = \"deny\"\nclients = [\"kept\"]\nkeys = [\"*\"]\noperations = [\"keys.list\"]\n";
    group.numbers().for_each(|node| group.append(node, "policy.toml", &[&signer, "\n", &kept, "\n", rules].concat()));
    group.start_all();
    group.file("m", "a message");
    let draw = |client: &str| group.theta(&["coin", "lottery", "--client", client]);
    let drawn = draw("signer.client").ok().text();
    group.theta(&["keys", "rotate", "sign"]).ok();
    group.theta(&["keys", "refresh", "coin"]).ok();

    let signed = group.theta(&["sign", "m", "--client", "signer.client"]).ok();
    assert!(!signed.stderr.contains("misbehaved") && !signed.stderr.contains("false"), "{signed:?}");
    let told = group.theta(&["verify", "m", "m.sig", "--client", "signer.client"]).ok().text();
    assert!(told.contains("sign@2"), "{told}");
    let again = draw("signer.client").ok();
    assert!(again.text() == drawn && !again.stderr.contains("misbehaved"), "{again:?}");

    // Whom a rule keeps from learning it is told that, and not that the nodes lie.
    let signed = group.theta(&["sign", "m", "--client", "kept.client", "-o", "x"]);
    let signed = signed.fails(1, &["may not learn whether it changed", "keys.list"]);
    assert!(!signed.stderr.contains("false answer"), "{signed:?}");
}

#[test]
fn hints_work_when_they_are_pasted() {
    let group = Group::shared();
    let refused = group.theta(&["keys", "recover", "sign", "--node", "3"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    let (_, hint) = refused.stderr.split_once("see why with: theta ").unwrap();
    let hint: Vec<&str> = hint.lines().next().unwrap().split(' ').collect();
    assert!(hint.starts_with(&["policy", "explain", "--ask"]), "{hint:?}");
    let explained = group.theta(&hint).ok().text();
    assert!(explained.contains("keys.recover"), "{explained}");
    // Whoever asks with another client than the usual one asks the node with that, too.
    group.theta(&["client", "convert", "theta-group/client", "-o", "hinted.client"]).ok();
    let refused = group.theta(&["keys", "recover", "sign", "--node", "3", "--client", "hinted.client"]);
    let hint = refused.stderr.split_once("see why with: theta ").unwrap().1.lines().next().unwrap().to_owned();
    let hint: Vec<&str> = hint.split(' ').collect();
    assert!(hint.starts_with(&["policy", "explain", "--client-dir", "hinted.client", "--ask"]), "{hint:?}");
    group.theta(&hint).ok();
    let elsewhere = theta_in(
        group.path().parent().unwrap(),
        &["policy", "explain", "--ask", "1", "--client", "x", "--operation", "sign"],
    );
    elsewhere.fails(2, &["theta-group/client is no client file", "--client-dir"]);
    let help = group.theta(&["audit", "show", "--help"]).ok().text();
    let example = help.lines().find(|line| line.contains("audit.jsonl")).unwrap();
    group.theta(&["audit", "export", "--node", "1", "-o", "audit.jsonl"]).ok();
    group.theta(&example.trim().split(' ').skip(1).collect::<Vec<_>>()).ok();
}

#[test]
fn what_goes_wrong_is_json_where_results_are() {
    let dir = tempfile::tempdir().unwrap();
    let error = |arguments: &[&str]| {
        let run = theta_in(dir.path(), arguments);
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
        let said: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
        assert_eq!((&said["level"], &said["exit_code"]), (&"error".into(), &run.code.into()), "{run:?}");
        said
    };
    let missing = error(&["status", "--client", "nowhere", "--json"]);
    assert_eq!(missing["kind"], "usage");
    assert!(missing["message"].as_str().unwrap().starts_with("nowhere is not a client directory"), "{missing}");
    assert_eq!(error(&["--json", "encypt"])["kind"], "usage");
    let group = Group::shared();
    let signature = group.file("json.sig", [0; 96]);
    let message = group.file("json.txt", "x");
    let failed = group.theta(&["verify", &message, &signature, "--json"]);
    let said: serde_json::Value = serde_json::from_str(&failed.stderr).unwrap();
    assert_eq!((failed.code, &said["kind"], &failed.json()["valid"]), (1, &"failed".into(), &false.into()));
    // What else is said is one such line, too, also where it has several for people.
    let refused = group.theta(&["keys", "recover", "sign", "--node", "3", "--json"]);
    let said: Vec<serde_json::Value> = refused.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let levels: Vec<_> = said.iter().map(|line| line["level"].as_str().unwrap()).collect();
    assert_eq!((refused.code, levels), (1, vec!["note", "error"]), "{refused:?}");
    assert!(said[0]["message"].as_str().unwrap().lines().count() > 2, "{refused:?}");
    let people = theta_in(dir.path(), &["coin", "--", "--json"]);
    assert!(people.stderr.starts_with("theta: error: "), "a name is no option: {people:?}");
}

/// Waits until a node returns these words at its metrics port.
#[track_caller]
fn await_words(group: &Group, node: u16, words: &str) {
    let mut said = String::new();
    for _ in 0..100 {
        said = group.ready(node);
        if said.contains(words) {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("no {words:?} in {said}");
}

#[test]
fn a_node_without_a_policy_is_not_ready_and_a_deleted_one_is_told() {
    let mut group = Group::made();
    let file = group.node_dir(1).join("policy.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    group.start_all();
    await_words(&group, 1, "not ready: no policy names a client");
    await_words(&group, 2, "ready\n");
    fs::write(&file, &text).unwrap();
    await_words(&group, 1, "\r\n\r\nready\n");
    fs::remove_file(&file).unwrap();
    await_words(&group, 1, "ready\nwarning: its policy file is gone");
    assert_eq!(group.log(1).matches("the policy file is gone").count(), 1, "{}", group.log(1));
    let status = group.theta(&["status"]).ok().text();
    assert!(status.contains("node 1: its policy file is gone"), "{status}");
    fs::write(&file, &text).unwrap();
    await_words(&group, 1, "\r\n\r\nready\n");
}

#[test]
fn an_older_version_is_enabled_wherever_it_was_disabled_and_destroyed_is_destroyed() {
    let mut group = Group::made_with(&["--keys", "files=sg02-ristretto255"]);
    group.start_all();
    group.file("old.txt", "to version 1");
    group.theta(&["encrypt", "old.txt"]).ok();
    group.theta(&["keys", "rotate", "files"]).ok();
    group.kill(4);
    group.theta(&["keys", "disable", "files@1"]).ok();
    group.theta(&["decrypt", "old.txt.theta", "-o", "-"]).fails(1, &["disabled"]);
    group.start(4);
    group.await_up(4);
    let enabled = group.theta(&["keys", "enable", "files@1"]).ok().text();
    assert!(enabled.contains("files@1 is enabled"), "{enabled}");
    assert_eq!(group.theta(&["decrypt", "old.txt.theta", "-o", "-"]).ok().stdout, b"to version 1");
    let keys = group.theta(&["keys", "list", "--live", "--json"]).ok().json();
    let states: Vec<_> = keys.as_array().unwrap().iter().map(|key| key["state"].as_str().unwrap().to_owned()).collect();
    assert_eq!(states, ["retired", "active"], "{keys}");

    let doomed = group.theta(&["keys", "destroy", "files@1", "--yes", "--json"]).ok().json();
    assert_eq!(doomed["state"], "disabled", "{doomed}");
    let live = group.theta(&["keys", "show", "files@1", "--live", "--json"]).ok().json();
    assert_eq!((&live[0]["state"], &live[0]["destroyed_at"]), (&"disabled".into(), &doomed["not_before"]), "{live}");
    let live = group.theta(&["keys", "list", "--live"]).ok().text();
    assert!(live.contains("disabled, destroyed at 2"), "{live}");
    let listed = group.theta(&["keys", "show", "files@1"]).ok().text();
    assert!(listed.contains("disabled, destroyed at 2"), "{listed}");
    group.theta(&["keys", "enable", "files@1"]).ok();
    for generation in [&[][..], &["--generation", "1"], &[]] {
        let destroy = [&["keys", "destroy", "files", "--now", "--yes", "--json"], generation].concat();
        let gone = group.theta(&destroy).ok().json();
        assert_eq!((&gone["state"], &gone["decided"]), (&"destroyed".into(), &true.into()), "{gone}");
    }
    // Who asks nobody is told as well.
    let listed = group.theta(&["keys", "list"]).ok().text();
    let line = listed.lines().find(|line| line.starts_with("files ")).unwrap_or_default();
    assert!(line.contains("destroyed"), "{listed}");
}

/// As `theta --help` documents it: an unknown key is bad input, whether the client or the nodes say so.
#[test]
fn a_key_that_nobody_has_is_bad_input() {
    let group = Group::shared();
    for ask in [
        &["refresh", "sing"][..],
        &["rotate", "sing"],
        &["disable", "sing"],
        &["destroy", "sing", "--now", "--yes"],
        &["show", "sing", "--live"],
    ] {
        group.theta(&[&["keys"], ask].concat()).fails(2, &["sing"]);
    }
    let message = group.file("unknown.txt", "x");
    group.theta(&["sign", &message, "--key", "sing"]).fails(2, &["no key named"]);
    group.theta(&["sign", &message, "--key", "sign@first"]).fails(2, &["no key named"]);
}

/// Safety does not wait for the group: a key counts as disabled when the holders that go on are too few to use it, and is frozen where it
/// was asked for until then. The decision follows by itself.
#[test]
fn a_disabled_key_says_how_far_it_is() {
    let mut group = Group::made_with(&["--keys", "sign=frost-ed25519"]);
    group.start_all();
    group.theta(&["keys", "disable", "sign"]).ok();
    group.theta(&["keys", "enable", "sign"]).ok();
    let pending = ["keys", "disable", "sign", "--timeout", "2s"];
    group.kill(3);
    group.kill(4);
    let said = group.theta(&pending).fails(3, &["nodes 1 and 2 stopped using it, it waits for nodes 3 and 4;"]);
    assert!(
        said.stderr.contains("; node 3 (") && said.stderr.contains("; node 4 ("),
        "one thing after the other: {said:?}"
    );
    group.kill(2);
    group
        .theta(&pending)
        .fails(3, &["sign is not disabled yet", "node 1 stopped using it", "go on with it by themselves"]);
    let live = group.theta(&["keys", "list", "--live"]).text();
    assert!(live.contains("disabled, not decided"), "{live}");
    group.start(2);
    group.start(3);
    group.await_up(2);
    group.await_up(3);
    // Nobody asks again: nodes tell each other, and each asks its own policy.
    let decided = || {
        let keys = group.theta(&["keys", "list", "--live", "--json"]).json();
        let keys = keys.as_array().cloned().unwrap_or_default();
        keys.iter().all(|key| key["state"] == "disabled" && key["frozen"] == false && key["generation"] == 3)
    };
    for _ in 0..200 {
        if decided() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(decided(), "{}", group.theta(&["keys", "list", "--live"]).text());
    let again = group.theta(&["keys", "disable", "sign"]).ok().text();
    assert!(again.contains("sign is disabled"), "{again}");
    group.theta(&["keys", "cancel", "sign"]).fails(1, &["no ceremony runs"]);
}

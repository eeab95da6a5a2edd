//! What operators sign, on machines without a network, and what their keys remember.

use std::fs;

use crate::harness::Group;
use crate::run::Run;

/// A group of 2 of 3 whose nodes have stopped for good, and its ledger, exported before.
struct Offline {
    group: Group,
    fingerprint: String,
}

impl Offline {
    fn new() -> Self {
        let mut group = Group::made_with(&["--nodes", "3", "--threshold", "2", "--no-keys"]);
        group.start_all();
        group.theta(&["ledger", "export", "-o", "g.ledger"]).ok();
        (1..=3).for_each(|node| group.kill(node));
        let shown = group.theta(&["group", "show", "theta-group/group.founding", "--json"]).ok().json();
        let fingerprint = shown["fingerprint"].as_str().unwrap().to_owned();
        fs::remove_dir_all(group.path().join("theta-group/client")).unwrap();
        Self { group, fingerprint }
    }

    /// A command that has the exported ledger, and nothing else of the group.
    fn theta(&self, arguments: &[&str]) -> Run {
        self.group.theta(&[arguments, &["--ledger", "g.ledger", "--fingerprint", &self.fingerprint]].concat())
    }

    /// A machine for the place of a node.
    fn machine(&self, dir: &str, node: u16) {
        let replaces = format!("theta-group/node-{node}");
        let made = self.group.theta(&["node", "init", "--dir", dir, "--replaces", &replaces, "--json"]).ok().json();
        assert_eq!((&made["name"], &made["operator_key"]), (&format!("node {node}").into(), &serde_json::Value::Null));
        assert!(!self.group.path().join(format!("{dir}.operator")).exists());
    }

    fn warrant(&self, out: &str, node: u16, dir: &str) -> Run {
        self.theta(&["group", "warrant", "new", &format!("{node}={dir}/node.card"), "-o", out])
    }

    fn sign(&self, files: &[&str], operator: u16, options: &[&str]) -> Run {
        let key = format!("theta-group/operators/node-{operator}.operator");
        self.theta(&[&["group", "warrant", "sign"], files, &["--as", &key, "--json"], options].concat())
    }

    fn remembered(&self, operator: u16) -> Option<String> {
        let file = format!("theta-group/operators/node-{operator}.operator.signed");
        fs::read_to_string(self.group.path().join(file)).ok()
    }
}

#[test]
fn operators_sign_a_warrant_and_nothing_besides_it() {
    let at = Offline::new();
    at.machine("new3", 3);
    at.machine("new2", 2);
    at.warrant("w3", 3, "new3").ok();
    at.warrant("w2", 2, "new2").ok();
    at.warrant("none", 2, "new3").fails(2, &["another operator's key than node 2 (node 2) has"]);
    at.sign(&["w3"], 1, &["--yes"]).fails(2, &["node-1.operator.signed is not there", "--first-use"]);
    at.sign(&["w3"], 1, &["--first-use"]).fails(2, &["add --yes"]);
    assert_eq!(at.remembered(1), None, "nothing was signed");
    let signed = at.sign(&["w3"], 1, &["--yes", "--first-use"]).ok();
    let said = signed.json();
    assert_eq!((&said["operator_of"], &said["serves"], &said["needed"]), (&1.into(), &false.into(), &3.into()));
    assert!(signed.stderr.contains("is gone for ever"), "{}", signed.stderr);
    assert!(at.remembered(1).unwrap().contains("a warrant for node 3"));
    // The same once more, and nothing besides.
    at.sign(&["w3"], 1, &["--yes"]).ok();
    assert_eq!(at.remembered(1).unwrap().lines().count(), 2);
    at.sign(&["w2"], 1, &["--yes"]).fails(1, &["nothing was signed", "in the place of node 3", "this is for node 2"]);
    // Each signs a copy.
    let unsigned = at.group.theta(&["group", "warrant", "show", "w3", "--client", "nowhere"]);
    unsigned.fails(2, &["nowhere is not a client directory"]);
    at.sign(&["w3"], 2, &["--yes", "--first-use", "-o", "by-2"]).ok();
    at.sign(&["w3"], 3, &["--yes", "--first-use", "-o", "by-3"]).ok();
    let all = at.theta(&["group", "warrant", "show", "by-2", "by-3", "--json"]).ok().json();
    assert_eq!((&all["serves"], &all["signed"]), (&true.into(), &serde_json::json!([1, 2, 3])));
    at.theta(&["group", "warrant", "show", "by-2", "w2"]).fails(2, &["w2 is another warrant"]);
    let text = at.theta(&["group", "warrant", "show", "by-2"]).ok().text();
    assert!(text.contains("signed by the operators of nodes 1 and 2; it takes 3"), "{text}");
    // Who lost what it has signed signs nothing.
    let memory = at.group.path().join("theta-group/operators/node-1.operator.signed");
    let kept = fs::read_to_string(&memory).unwrap();
    fs::write(&memory, &kept[..kept.len() - 30]).unwrap();
    at.sign(&["w2"], 1, &["--yes"]).fails(2, &["signed:2", "nothing is signed without it"]);
    fs::copy(at.group.path().join("theta-group/operators/node-2.operator.signed"), &memory).unwrap();
    at.sign(&["w2"], 1, &["--yes"]).fails(2, &["of another key"]);

    // The machine joins under the warrant, in the place of the other.
    let join = |options: &[&str]| {
        let join = ["node", "join", "--dir", "new3", "g.ledger", "--fingerprint", &at.fingerprint, "--json"];
        at.group.theta(&[&join[..], options].concat())
    };
    join(&[]).fails(1, &["has not taken this node in", "theta group add"]);
    join(&["--warrant", "by-2"]).fails(1, &["2 operators have signed, and it takes 3"]);
    let joined = join(&["--warrant", "by-2", "--warrant", "by-3"]).ok().json();
    assert_eq!(joined["node"], 3);
    // It finds itself there, and the others as they are.
    let keys = |file: std::path::PathBuf| -> Vec<String> {
        let text = fs::read_to_string(file).unwrap();
        text.lines().filter(|line| line.starts_with("ceremony_key")).map(str::to_owned).collect()
    };
    let (new, old) = (at.group.path().join("new3/group.toml"), at.group.node_dir(3).join("group.toml"));
    assert!(keys(new.clone())[..2] == keys(old.clone())[..2] && keys(new)[2] != keys(old)[2]);
}

#[test]
fn an_operator_signs_for_its_own_machine() {
    let at = Offline::new();
    at.machine("new3", 3);
    at.machine("other3", 3);
    let sign = |dir: &str, operator: u16, options: &[&str]| {
        let (card, key) = (format!("{dir}/node.card"), format!("theta-group/operators/node-{operator}.operator"));
        let command = ["group", "replace", "3", &card, "--operator", &key, "--sign-only", "--yes", "--json"];
        at.theta(&[&command[..], options].concat())
    };
    sign("new3", 2, &[]).fails(2, &["not the key of the operator of node 3"]);
    let signed = sign("new3", 3, &["--first-use"]).ok().json();
    let signature = signed["signature"].as_str().unwrap().to_owned();
    assert_eq!(signature.len(), 128);
    assert_eq!(sign("new3", 3, &[]).ok().json()["signature"], signature.as_str(), "the same, for the same");
    sign("other3", 3, &[]).fails(1, &["nothing was signed", "signed for another machine", "--besides"]);
    assert_ne!(sign("other3", 3, &["--besides"]).ok().json()["signature"], signature.as_str());
    assert_eq!(at.remembered(3).unwrap().lines().count(), 3);
    // A key that others can read is refused, as all secrets are.
    let key = at.group.path().join("theta-group/operators/node-3.operator");
    fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    sign("new3", 3, &[]).fails(2, &["chmod 600"]);
}

#[test]
fn a_node_that_moves_says_so_in_its_card() {
    let group = Group::made_with(&["--nodes", "2", "--threshold", "1", "--no-keys"]);
    let show = |file: &str| group.theta(&["group", "show", file, "--json"]).ok().json()[0].clone();
    let card = "theta-group/node-1/node.card";
    let before = show(card);
    let (peer, api) = group.ports(2);
    let (peer, api) = (format!("127.0.0.1:{}", peer + 40), format!("127.0.0.1:{}", api + 40));
    let written = group.theta(&["node", "card", "--dir", "theta-group/node-1", "--peer", &peer, "--clients", &api]);
    let text = written.ok().text();
    assert!(text.contains("theta group renew theta-group/node-1/node.card"), "{text}");
    let after = show(card);
    assert_eq!((&after["peer_address"], &after["api_address"]), (&peer.as_str().into(), &api.as_str().into()));
    assert_eq!((&after["key"], &after["operator_key"]), (&before["key"], &before["operator_key"]));
    let toml = fs::read_to_string(group.node_dir(1).join("node.toml")).unwrap();
    assert!(toml.contains(&format!("peer = \"{peer}\"")) && toml.contains(&format!("api = \"{api}\"")), "{toml}");
}

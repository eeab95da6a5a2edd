//! Commands that need no node: policies, approvals, tokens, clients.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use crate::harness::{Run, theta_in};

const POLICY: &str = r#"
format = 1

[[client]]
name = "gateway"
certificates = ["5f4dcc3b5aa765d61d8327deb882cf99b6a1c2a0e3b0c44298fc1c149afbf4c8"]

[[rule]]
name = "nothing-in-december"
effect = "deny"
clients = ["*"]
keys = ["*"]
operations = ["sign"]
from = 2999-12-01T00:00:00Z

[[rule]]
name = "releases-take-two"
effect = "allow"
clients = ["gateway"]
keys = ["release"]
operations = ["sign", "decapsulate"]
labels = ["releases/"]

[[rule]]
name = "votes"
effect = "allow"
clients = ["gateway"]
keys = ["chain"]
operations = ["sign"]

[[signing]]
name = "heights"
keys = ["chain"]
slot = "claimed"
first = 1
"#;

struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn theta(&self, arguments: &[&str]) -> Run {
        theta_in(self.path(), arguments)
    }

    fn file(&self, name: &str, contents: &str) {
        fs::write(self.path().join(name), contents).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path().join(name)).unwrap().permissions().mode() & 0o777
    }

    fn explain(&self, more: &str) -> Run {
        let arguments: Vec<&str> = "policy explain --client gateway".split(' ').chain(more.split(' ')).collect();
        self.theta(&arguments)
    }
}

#[test]
fn policies_are_checked_and_compared() {
    let desk = Desk::new();
    desk.file("a.toml", POLICY);
    desk.file("b.toml", POLICY);
    desk.file("c.toml", &POLICY.replace("votes", "ballots"));
    let report = desk.theta(&["policy", "check", "a.toml", "b.toml", "--json"]).ok().json();
    assert_eq!((&report["same"], &report["files"][0]["rules"][2]), (&true.into(), &"votes".into()));
    assert_eq!(desk.theta(&["policy", "check", "a.toml", "c.toml", "--json"]).ok().json()["same"], false);
    let text = desk.theta(&["policy", "check", "a.toml", "c.toml"]).ok().text();
    assert!(text.contains("3 rules, 1 signing rule") && text.contains("they differ"), "{text}");

    desk.file("bad.toml", &POLICY.replace("effect = \"deny\"", "efect = \"deny\""));
    desk.theta(&["policy", "check", "a.toml", "bad.toml"]).fails(2, &["bad.toml:10:", "efect"]);
    desk.file("bad.toml", &POLICY.replace("[\"release\"]", "[\"Release\"]"));
    desk.theta(&["policy", "check", "bad.toml"]).fails(2, &["bad.toml:", "\"Release\"", "lower case"]);
    desk.theta(&["policy", "check", "none.toml"]).fails(2, &["cannot read none.toml", "no such file"]);
}

#[test]
fn decisions_are_explained_rule_by_rule() {
    let desk = Desk::new();
    desk.file("policy.toml", POLICY);
    let november = "--time 2026-11-21T00:00:00Z";
    let text = desk.explain(&format!("--operation sign --key release --label releases/1 {november}")).ok().text();
    assert!(text.starts_with("ALLOWED: allowed (rule releases-take-two)\n"), "{text}");
    assert!(text.contains("deny nothing-in-december (line 8)"), "every rule is listed: {text}");
    assert!(text.contains("valid only from 2999-12-01"), "with the condition that failed: {text}");

    let refused = desk.explain(&format!("--operation sign --key release {november} --json")).ok().json();
    assert_eq!((&refused["answer"], &refused["rule"]), (&"deny".into(), &serde_json::Value::Null));
    let december = "--operation sign --key chain --slot 7 --time 2999-12-24T00:00:00Z --json";
    let denied = desk.explain(december).ok().json();
    assert_eq!((&denied["answer"], &denied["rule"]), (&"deny".into(), &"nothing-in-december".into()));
    let slot = desk.explain(&format!("--operation sign --key chain --slot 7 {november} --json")).ok().json();
    assert_eq!(slot["answer"], "depends");
    let no_slot = desk.explain(&format!("--operation sign --key chain {november} --json")).ok().json();
    assert!(no_slot["answer"] == "deny" && no_slot["reason"].as_str().unwrap().contains("slot"), "{no_slot}");
    let public = desk.explain(&format!("--operation keys.list --key chain {november} --json")).ok().json();
    assert_eq!((&public["answer"], &public["rule"]), (&"allow".into(), &"votes".into()), "its public part is read");
    let nobody =
        desk.theta(&["policy", "explain", "--client", "mallory", "--operation", "status", "--json"]).ok().json();
    assert!(nobody["reason"].as_str().unwrap().contains("no client \"mallory\""), "{nobody}");

    desk.explain("--operation sing").fails(2, &["\"sing\" is not an operation", "sign"]);
    desk.explain("--operation sign --time tomorrow").fails(2, &["2026-11-21T08:30:00Z"]);
    desk.explain("--operation sign --coin x").fails(2, &["flip-coin"]);
    desk.explain("--operation decapsulate --message policy.toml").fails(2, &["policy.toml", "header"]);
}

/// The policy with this approver rule instead of its second one.
fn with_approvers(desk: &Desk, names: &[&str], need: usize) {
    let mut policy =
        POLICY.replace("labels = [\"releases/\"]\n", &format!("approvals = {{ of = {names:?}, need = {need} }}\n"));
    for name in names {
        policy.push_str(&desk.theta(&["approver", "new", "--name", name]).ok().text());
    }
    desk.file("policy.toml", &policy);
}

#[test]
fn approvals_are_given_counted_and_bound_to_what_they_approve() {
    let desk = Desk::new();
    with_approvers(&desk, &["ann", "ben"], 2);
    assert_eq!(desk.mode("ann.key"), 0o600);
    desk.file("app.tar", "the release");
    desk.file("other.tar", "another one");
    let approve = |who: &str, file: &str, more: &[&str]| {
        let (key, to) = (format!("{who}.key"), format!("{who}.approval"));
        let fixed = ["approve", "--as", &key, "--operation", "sign", "--key", "release", "--message", file, "-o", &to];
        desk.theta(&[&fixed[..], more].concat())
    };
    let shown = approve("ann", "app.tar", &["--group", "prod", "--yes"]).ok();
    let digest = Command::new("sha256sum").arg("app.tar").current_dir(desk.path()).output().unwrap().stdout;
    let digest = String::from_utf8(digest).unwrap();
    for word in ["group      prod", "operation  sign", "key        release", &digest[..64], "until"] {
        assert!(shown.stderr.contains(word), "no {word:?} in {shown:?}");
    }
    approve("ben", "app.tar", &["--group", "prod"]).fails(2, &["nobody is there to consent", "--yes"]);
    assert!(!desk.path().join("ben.approval").exists());
    approve("ben", "app.tar", &["--yes"]).fails(2, &["--group"]);
    approve("ben", "app.tar", &["--group", "prod", "--yes", "--for", "32d"]).fails(2, &["31 days"]);

    let explain = |more: &str| {
        let time = "--operation sign --key release --message app.tar --group prod";
        desk.explain(&format!("{time} {more} --json")).ok().json()
    };
    let one = explain("--approval ann.approval");
    assert!(
        one["answer"] == "deny" && one["conditions"][0]["detail"].as_str().unwrap().contains("has 1: ann"),
        "{one}"
    );
    let twice = explain("--approval ann.approval --approval ann.approval");
    assert!(twice["conditions"][0]["detail"].as_str().unwrap().contains("counts once"), "{twice}");

    approve("ben", "other.tar", &["--group", "prod", "--yes"]).ok();
    let other = explain("--approval ann.approval --approval ben.approval");
    assert!(other["conditions"][0]["detail"].as_str().unwrap().contains("another statement"), "{other}");
    approve("ben", "app.tar", &["--group", "prod", "--yes", "--json"]).ok();
    assert_eq!(explain("--approval ann.approval --approval ben.approval")["answer"], "allow");
    // Several approvals in one file.
    desk.file("both.approval", &(desk.read("ann.approval") + &desk.read("ben.approval")));
    assert_eq!(explain("--approval both.approval")["answer"], "allow");
    let elsewhere =
        desk.explain("--operation sign --key release --message app.tar --group test --approval both.approval");
    assert!(elsewhere.ok().text().contains("another group"));
    desk.explain("--operation sign --approval app.tar").fails(2, &["app.tar", "not approvals"]);
    desk.explain("--operation sign --approval both.approval").fails(2, &["--group"]);
}

#[test]
fn tokens_are_secret_and_policies_hold_their_keys() {
    let desk = Desk::new();
    let made = desk.theta(&["token", "new", "--name", "operator"]).ok();
    let token = desk.read("operator.token");
    assert!(token.starts_with("theta-token2-") && desk.mode("operator.token") == 0o600);
    assert!(!made.text().contains(token.trim()) && !made.stderr.contains(token.trim()));
    desk.file("policy.toml", &format!("{POLICY}\n{}", made.text()));
    desk.theta(&["policy", "check", "policy.toml"]).ok();
    // The token itself is refused.
    desk.file("policy.toml", &format!("{POLICY}\n# {token}"));
    desk.theta(&["policy", "check", "policy.toml"]).fails(2, &["this is a token, not its key"]);
    desk.theta(&["token", "new", "--name", "operator"]).fails(2, &["operator.token exists already"]);
    assert_eq!(desk.read("operator.token"), token);
    let piped = desk.theta(&["token", "new", "--name", "x", "-o", "-"]).ok();
    assert!(piped.text().starts_with("theta-token2-") && piped.stderr.contains("tokens = [\"ed25519:"), "{piped:?}");
    desk.theta(&["token", "new", "--name", "no name"]).fails(2, &["not a name"]);
    // Its line, alone.
    let line = desk.theta(&["token", "line", "operator.token"]).ok().text();
    assert!(line.starts_with("tokens = [\"ed25519:") && made.text().contains(line.trim()), "{line}");
    // A policy of before tokens proved themselves.
    desk.file(
        "policy.toml",
        &format!("{POLICY}\n[[client]]\nname = \"old\"\ntokens = [\"sha256:{}\"]\n", "ab".repeat(32)),
    );
    let checked = desk.theta(&["policy", "check", "policy.toml"]).ok();
    assert!(
        checked.stderr.contains("of old recognises nobody") && checked.stderr.contains("theta token new"),
        "{checked:?}"
    );
    // A token of before, which every node has had.
    desk.file("old.token", "theta-token-AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8");
    fs::set_permissions(desk.path().join("old.token"), fs::Permissions::from_mode(0o600)).unwrap();
    desk.theta(&["token", "line", "old.token"]).fails(2, &["every node that was asked has had it whole"]);
}

#[test]
fn a_new_client_gets_a_file_and_lines_for_the_policy() {
    let desk = Desk::new();
    desk.theta(&["group", "init", "--dir", "g", "--nodes", "2", "--threshold", "1", "--keys", "sg02-ristretto255"])
        .ok();
    let made = desk.theta(&["client", "new", "--name", "gate", "--group", "g/group.toml", "--json"]).ok().json();
    assert_eq!((&made["file"], desk.mode("gate.client")), (&"gate.client".into(), 0o600));
    let text = desk.read("gate.client");
    for part in
        ["-----BEGIN CERTIFICATE", "-----BEGIN PRIVATE KEY", "[[group.node]]", made["fingerprint"].as_str().unwrap()]
    {
        assert!(text.contains(part), "no {part}");
    }
    desk.file("policy.toml", &format!("{POLICY}\n{}", made["policy"].as_str().unwrap()));
    desk.theta(&["policy", "check", "policy.toml"]).ok();
    let text = desk.theta(&["client", "new", "--name", "other", "--group", "g/group.founding"]).ok().text();
    assert!(text.contains("signing_keys = [\"ed25519:") && text.contains("has this fingerprint"), "{text}");
    desk.theta(&["client", "new", "--name", "gate", "--group", "g/group.toml"])
        .fails(2, &["gate.client exists already"]);
    desk.theta(&["client", "new", "--name", "client", "-o", "x", "--group", "g/group.toml"]).fails(2, &["client"]);
    assert!(!desk.path().join("x").exists(), "nothing is left behind");
}

#[test]
fn every_new_command_teaches() {
    let desk = Desk::new();
    for command in [
        "policy check",
        "policy explain",
        "approve",
        "approver new",
        "client new",
        "token new",
        "token line",
        "token proof",
    ] {
        let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = desk.theta(&arguments).ok().text();
        assert!(help.contains("Examples:"), "{help}");
    }
}

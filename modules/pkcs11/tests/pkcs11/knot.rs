//! Knot DNS: a name server that makes its keys, signs a zone by itself, and changes its keys.

mod agents;
mod transfers;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::{
    generation::pooled,
    group::{free_port, host_program, log, module, succeeds, until, with_libraries},
    harness::Group,
};

/// How long the server has for what it does at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// The zone before it is signed.
const RECORDS: &str =
    "$ORIGIN example.\n$TTL 1\n@ SOA ns admin 1 3600 60 86400 1\n@ NS ns\nns A 127.0.0.1\nwww A 192.0.2.1\n";

/// A name server of the zone `example.`, signed with keys of a group. It ends when this is dropped.
struct Knot {
    path: PathBuf,
    port: u16,
    server: Child,
}

/// A program in the server's directory, with the module's configuration.
fn program(folder: &Path, name: &str) -> Command {
    let mut command = Command::new(host_program(name));
    command.current_dir(folder).env("THETA_PKCS11_CONFIG", folder.join("pkcs11.toml")).env_remove("THETA_CLIENT");
    with_libraries(&mut command);
    command
}

impl Knot {
    fn start(group: &Group, algorithm: &str) -> Self {
        Self::start_with(group, algorithm, RECORDS)
    }

    /// With an algorithm, after which other lines of the policy may come, and with these records.
    fn start_with(group: &Group, algorithm: &str, records: &str) -> Self {
        let (port, folder, module) = (free_port(), group.path().to_owned(), module());
        ["run", "db", "zones"].iter().for_each(|name| fs::create_dir_all(folder.join(name)).unwrap());
        let (path, module) = (folder.display(), module.display().to_string());
        // What `theta pkcs11 config` prints for it, and times with which a change of keys lasts seconds.
        let words = ["pkcs11", "config", "--client", "host.client", "--module", &module, "--pool", "zone", "knot"];
        let printed = group.theta(&words).ok().text();
        let printed: Vec<_> = printed.lines().skip(1).map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
        let times = format!("algorithm: {algorithm}\n    dnskey-ttl: 1\n    zone-max-ttl: 1\n    propagation-delay: 1");
        let printed = printed.join("\n").replace("algorithm: ed25519", &times).replace("ZONE", "example.");
        let config = format!(
            "server:\n  rundir: \"{path}/run\"\n  listen: 127.0.0.1@{port}\n\
             log:\n  - target: \"{path}/knot.log\"\n    any: info\n\
             database:\n  storage: \"{path}/db\"\n\
             template:\n  - id: default\n    storage: \"{path}/zones\"\n    file: \"%s.zone\"\n\
             {printed}\n"
        );
        group.file("knot.conf", config);
        group.file("zones/example.zone", records);
        let mut server = program(&folder, "knotd");
        let server = server.args(["-c", "knot.conf"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { path: folder, port, server }
    }

    /// Runs one of the tools.
    fn tool(&self, name: &str, words: &[&str]) -> String {
        let mut tool = program(&self.path, name);
        tool.args(words);
        succeeds(tool)
    }

    /// Tells the server to do something, and waits until it has; whether it could.
    fn tell(&self, words: &[&str]) -> bool {
        let mut knotc = program(&self.path, "knotc");
        knotc.args(["-c", "knot.conf", "-b", "-t", "60"]).args(words).output().unwrap().status.success()
    }

    /// The address of a name as the server tells it, and its signature.
    fn ask(&self, name: &str) -> String {
        self.tool("kdig", &["@127.0.0.1", "-p", &self.port.to_string(), name, "A", "+dnssec", "+short"])
    }

    /// The keys of the zone in the order of their tags, each with what the server says of it.
    fn keys(&self) -> Vec<String> {
        let listed = self.tool("keymgr", &["-c", "knot.conf", "example.", "list"]);
        listed.lines().map(str::to_owned).collect()
    }

    fn zone(&self) -> PathBuf {
        self.path.join("zones/example.zone")
    }

    fn said(&self) -> String {
        fs::read_to_string(self.path.join("knot.log")).unwrap_or_default()
    }

    /// Has the verifier of another house look at the whole zone.
    fn zone_verifies(&self) {
        let said = self.tool("ldns-verify-zone", &[self.zone().to_str().unwrap()]);
        assert!(said.contains("Zone is verified and complete"), "{said}");
    }

    fn await_signed(&self) {
        let is_signed = || fs::read_to_string(self.zone()).is_ok_and(|text| text.contains("RRSIG"));
        until("the zone is signed", PATIENCE, || is_signed() || panic_if_ended(self));
    }
}

/// A server that has ended signs nothing.
fn panic_if_ended(knot: &Knot) -> bool {
    let said = knot.said();
    assert!(!said.contains("critical:"), "{said}");
    false
}

impl Drop for Knot {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn bindings(group: &Group) -> String {
    fs::read_to_string(group.path().join("bindings.toml")).unwrap()
}

/// Algorithm 13: keys from the pool, one that the group makes since the pool is empty then, and the old one is let go.
#[test]
fn knot_signs_a_zone_with_ecdsa_and_changes_its_key() {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256", "");
    let knot = Knot::start(&group, "ecdsap256sha256");
    knot.await_signed();
    knot.zone_verifies();
    let answer = knot.ask("www.example.");
    assert!(answer.contains("192.0.2.1") && answer.contains("A 13 2 "), "{answer}");
    let before = knot.keys();
    assert!(before.len() == 2 && before.iter().all(|key| key.contains("ECDSAP256SHA256")), "{before:?}");

    assert!(knot.tell(&["zone-key-rollover", "example.", "zsk"]), "{}", knot.said());
    until("the old key is let go", PATIENCE, || bindings(&group).contains("state = \"released\""));
    until("two keys are left", PATIENCE, || knot.keys().len() == 2);
    let after = knot.keys();
    let stayed = after.iter().filter(|key| before.iter().any(|old| old.split(' ').next() == key.split(' ').next()));
    assert_eq!(stayed.count(), 1, "the KSK stays: {before:?} {after:?}");
    assert!(log(&group).contains("the group has made zone-ecdsa-p256-3"), "{}", log(&group));
    until("the zone is signed with the new key alone", PATIENCE, || {
        let text = fs::read_to_string(knot.zone()).unwrap();
        text.lines().filter(|line| line.contains("\tDNSKEY\t")).count() == 2
    });
    knot.zone_verifies();
    assert!(!knot.said().contains("error:"), "{}", knot.said());
}

/// Algorithm 15: the nodes see what they sign. `keymgr` makes a key, too, while the server runs.
#[test]
fn knot_signs_a_zone_with_ed25519() {
    let group = pooled("zone-frost-ed25519-1=frost-ed25519", "");
    let knot = Knot::start(&group, "ed25519");
    knot.await_signed();
    knot.zone_verifies();
    let answer = knot.ask("www.example.");
    assert!(answer.contains("A 15 2 "), "{answer}");
    let id = knot.tool("keymgr", &["-c", "knot.conf", "example.", "generate", "algorithm=ed25519", "ksk=no"]);
    assert!(bindings(&group).contains(id.trim()), "{id}");
    assert!(knot.tell(&["zone-sign", "example."]), "{}", knot.said());
    let text = fs::read_to_string(knot.zone()).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("\tDNSKEY\t")).count(), 3, "{text}");
    knot.zone_verifies();
    // Deleted by hand: Knot destroys it, and knows no other key by its id.
    knot.tool("keymgr", &["-c", "knot.conf", "example.", "delete", id.trim()]);
    assert!(bindings(&group).contains("state = \"released\""), "{}", bindings(&group));
    assert_eq!(knot.keys().len(), 2);
}

/// Without a quorum the zone stays as it was; when the nodes are back, the same server signs.
#[test]
fn knot_serves_the_old_zone_while_too_few_nodes_answer() {
    let mut group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256", "timeout_ms = 3000\n");
    let knot = Knot::start(&group, "ecdsap256sha256");
    knot.await_signed();
    let before = fs::read_to_string(knot.zone()).unwrap();
    (2..=4).for_each(|node| group.kill(node));
    let add = || {
        assert!(
            knot.tell(&["zone-begin", "example."])
                && knot.tell(&["zone-set", "example.", "mail", "1", "A", "192.0.2.7"])
        );
        // A transaction that cannot be signed is over.
        knot.tell(&["zone-commit", "example."])
    };
    assert!(!add(), "{}", knot.said());
    assert!(
        knot.said().contains("signing error") && log(&group).contains("signing with zone-ecdsa-p256-"),
        "{}",
        knot.said()
    );
    let answer = knot.ask("www.example.");
    assert!(answer.contains("192.0.2.1") && answer.contains("A 13 2 "), "{answer}");
    assert_eq!(knot.ask("mail.example."), "");
    assert_eq!(fs::read_to_string(knot.zone()).unwrap(), before);
    knot.zone_verifies();

    (2..=4).for_each(|node| group.start(node));
    (2..=4).for_each(|node| group.await_up(node));
    until("the zone is signed again", PATIENCE, add);
    let answer = knot.ask("mail.example.");
    assert!(answer.contains("192.0.2.7") && answer.contains("A 13 2 "), "{answer}");
    knot.zone_verifies();
}

//! One BIND with one zone: its files, its process, and the tools that talk to it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use theta_knot::{
    places::Places,
    server::{free_port, tied},
};

use crate::{
    group::{host_program, module, succeeds, until},
    harness::Group,
    knot::RECORDS,
    pkcs11_provider::modules,
    resolvers::delv,
};

/// How long the server has for what it does at once.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Who may tell the server what to do: it listens on loopback alone, while a test lasts.
const KEY: &str =
    "key \"rndc\" {\n  algorithm hmac-sha256;\n  secret \"YW4gZXhhbXBsZSdzIHNlY3JldCwgb2YgMzIgYnl0ZXM=\";\n};\n";

/// Times such that a change of keys lasts seconds.
pub(super) const TIMES: &str = "dnskey-ttl 1; max-zone-ttl 1; publish-safety 1; retire-safety 1; zone-propagation-delay 1; \
                     parent-ds-ttl 1; parent-propagation-delay 1;";

/// A name server of the zone `example`, on loopback. It ends when this is dropped, and when this process ends.
pub(super) struct Bind {
    places: Places,
    folder: PathBuf,
    port: u16,
    /// Ends, and its program with it, when its standard input is closed.
    server: Child,
}

/// What `theta pkcs11 config` prints for a host, without its words for people.
pub(super) fn printed(group: &Group, host: &str) -> String {
    let module = module().display().to_string();
    let words = ["pkcs11", "config", "--client", "host.client", "--module", &module, "--pool", "zone", host];
    let text = group.theta(&words).ok().text();
    let lines = text.lines().skip(1).map_while(|line| line.strip_prefix("  "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// What is printed for BIND, with these keys in the place of the printed ones if there are some.
fn policy_and_zone(group: &Group, keys: Option<&str>) -> String {
    let text = printed(group, "bind").replace("ZONE", "example");
    let policy = "dnssec-policy \"threshold\" {";
    assert_eq!(text.matches(policy).count(), 1, "{text}");
    let zone = "inline-signing yes;";
    assert_eq!(text.matches(zone).count(), 1, "{text}");
    let text = text.replace(policy, &format!("{policy}\n  {TIMES}"));
    let access = "allow-update { 127.0.0.1; };\n  allow-transfer { 127.0.0.1; };\n  checkds no;";
    let text = text.replace(zone, &format!("{zone}\n  {access}"));
    match keys {
        None => text,
        Some(keys) => {
            let (head, rest) = text.split_once("keys {\n").unwrap();
            let (_, tail) = rest.split_once("  };\n").unwrap();
            format!("{head}keys {{ {keys} }};\n{tail}")
        }
    }
}

/// A program that signs with the group's keys by OpenSSL, configured in this folder.
pub(super) fn signer(group: &Group, folder: &Path, name: &str) -> Command {
    let mut program = host_program(group, name);
    program.env("OPENSSL_CONF", folder.join("openssl.cnf")).env("OPENSSL_MODULES", modules());
    program
}

impl Bind {
    /// A server with the keys that `theta pkcs11 config bind` prints, or with others, which signs the zone with them. `signed` is how its
    /// signatures begin.
    pub(super) fn start(group: &Group, keys: Option<&str>, signed: &str) -> Self {
        let mut bind = Self::launch(group, &policy_and_zone(group, keys));
        bind.await_signed(signed);
        bind
    }

    /// A server with this policy and zone.
    pub(super) fn launch(group: &Group, policy_and_zone: &str) -> Self {
        let places = Places::of_this_machine();
        places.check(&["named", "rndc", "nsupdate", "dig", "ldns-verify-zone"]).unwrap();
        let (folder, port, control) = (group.path().join("bind"), free_port().unwrap(), free_port().unwrap());
        fs::create_dir_all(folder.join("keys")).unwrap();
        fs::write(folder.join("example.zone"), RECORDS).unwrap();
        let config = format!(
            "{KEY}options {{\n  directory \"{}\";\n  pid-file none;\n  session-keyfile none;\n  listen-on port {port} {{ 127.0.0.1; }};\n  \
             listen-on-v6 {{ none; }};\n  recursion no;\n  dnssec-validation no;\n  notify no;\n}};\n\
             controls {{ inet 127.0.0.1 port {control} allow {{ 127.0.0.1; }} keys {{ \"rndc\"; }}; }};\n{policy_and_zone}",
            folder.display(),
        );
        group.file("bind/named.conf", config);
        let default = "default-key \"rndc\"; default-server 127.0.0.1;";
        group.file("bind/rndc.conf", format!("{KEY}options {{ {default} default-port {control}; }};\n"));
        group.file("bind/openssl.cnf", printed(group, "openssl"));
        let mut named = signer(group, &folder, "named");
        named.args(["-g", "-c"]).arg(folder.join("named.conf"));
        let server = tied(&named, &folder.join("named.log")).unwrap();
        Self { places, folder, port, server }
    }

    /// Waits until the zone is signed; `signed` is how signatures begin.
    pub(super) fn await_signed(&mut self, signed: &str) {
        until("the zone is signed", PATIENCE, || {
            assert_eq!(self.server.try_wait().unwrap(), None, "BIND has ended: {}", self.said());
            self.ask("www.example").contains(signed)
        });
    }

    /// What it has written to its log so far.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(self.folder.join("named.log")).unwrap_or_default()
    }

    /// What its files of private keys say.
    pub(super) fn key_files(&self) -> Vec<String> {
        let files = fs::read_dir(self.folder.join("keys")).unwrap().map(|entry| entry.unwrap().path());
        let private = files.filter(|path| path.extension().is_some_and(|ending| ending == "private"));
        private.map(|path| fs::read_to_string(path).unwrap()).collect()
    }

    /// One of the tools, in the server's folder.
    pub(super) fn tool(&self, name: &str, words: &[&str]) -> Command {
        let mut tool = self.places.command(name);
        tool.args(words).current_dir(&self.folder).stdin(Stdio::null());
        tool
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).unwrap();
    }

    fn dig(&self, words: &[&str]) -> Command {
        let port = self.port.to_string();
        self.tool("dig", &[&["@127.0.0.1", "-p", &port, "+tries=1", "+time=10"][..], words].concat())
    }

    /// The addresses of a name as the server tells them, with their signature; nothing if it does not answer.
    pub(super) fn ask(&self, name: &str) -> String {
        let output = self.dig(&[name, "A", "+dnssec", "+short"]).output().unwrap();
        if output.status.success() { String::from_utf8_lossy(&output.stdout).into_owned() } else { String::new() }
    }

    /// Adds an address by a dynamic update, which the server has taken when this ends, and signs after.
    pub(super) fn update(&self, name: &str) {
        self.change(&[&format!("add {name}.example 1 A 192.0.2.7")]);
    }

    /// Another dynamic update, of all of this at once.
    pub(super) fn change(&self, updates: &[&str]) {
        let updates: String = updates.iter().map(|update| format!("update {update}\n")).collect();
        let words = format!("server 127.0.0.1 {}\nzone example\n{updates}send\n", self.port);
        self.write("update", &words);
        succeeds(self.tool("nsupdate", &["-v", "update"]));
    }

    /// Tells the server to do something; what it says.
    pub(super) fn tell(&self, words: &[&str]) -> String {
        succeeds(self.rndc(words))
    }

    fn rndc(&self, words: &[&str]) -> Command {
        self.tool("rndc", &[&["-c", "rndc.conf"][..], words].concat())
    }

    /// Whether the server does what it is told.
    pub(super) fn tries(&self, words: &[&str]) -> bool {
        self.rndc(words).output().unwrap().status.success()
    }

    /// The tags of the keys that sign the zone.
    pub(super) fn zone_keys(&self) -> Vec<String> {
        self.signers("zone")
    }

    /// The tags of the keys that sign this: the `zone`, or its keys (`key`).
    pub(super) fn signers(&self, what: &str) -> Vec<String> {
        let status = self.tell(&["dnssec", "-status", "example"]);
        // key: 40559 (ECDSAP256SHA256), ZSK
        //   zone signing:   yes - since ...
        let signing = format!("{what} signing:");
        let signs =
            |key: &&str| key.lines().any(|line| line.trim_start().starts_with(&signing) && line.contains("yes"));
        let keys = status.split("\nkey: ").skip(1).filter(signs);
        keys.filter_map(|key| key.split_whitespace().next()).map(str::to_owned).collect()
    }

    /// The keys of the zone's keys, as the server tells them: 257 3 13 KEY, the last of it in several words.
    pub(super) fn keys_of_keys(&self) -> Vec<String> {
        let keys = succeeds(self.dig(&["example", "DNSKEY", "+short"]));
        keys.lines().filter(|line| line.starts_with("257 ")).map(str::to_owned).collect()
    }

    /// Has the verifier of another house look at the whole zone, as a secondary server gets it, until it is content: BIND signs a part after
    /// the other. What it has looked at.
    pub(super) fn verify(&self) -> String {
        let mut zone = String::new();
        until("the whole zone is signed well", PATIENCE, || {
            zone = succeeds(self.dig(&["example", "AXFR", "+onesoa"]));
            self.write("transferred.zone", &zone);
            let output = self.tool("ldns-verify-zone", &["transferred.zone"]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).contains("Zone is verified and complete")
        });
        zone
    }

    /// Signs these records from nothing with the keys that the server has made, and has the verifier of another house look at them; what is signed.
    pub(super) fn sign_anew(&self, group: &Group, records: &str) -> String {
        self.write("new.zone", records);
        let mut sign = signer(group, &self.folder, "dnssec-signzone");
        sign.args(["-S", "-K", "keys", "-o", "example", "-f", "new.signed", "new.zone"]).current_dir(&self.folder);
        succeeds(sign);
        let output = self.tool("ldns-verify-zone", &["new.signed"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("Zone is verified and complete"), "{said}{}", String::from_utf8_lossy(&output.stderr));
        fs::read_to_string(self.folder.join("new.signed")).unwrap()
    }

    /// Has BIND's validator, which starts from the key of the zone's keys, look at a name.
    pub(super) fn validate(&self, name: &str) {
        let said = succeeds(self.delv(&self.keys_of_keys()[0], name));
        assert!(said.contains("; fully validated"), "{said}");
    }

    /// Whether the validator believes a name that starts from this key.
    pub(super) fn validates_from(&self, key: &str, name: &str) -> bool {
        let output = self.delv(key, name).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains("; fully validated")
    }

    fn delv(&self, key: &str, name: &str) -> Command {
        delv(&self.folder, self.port, key, name)
    }

    /// The port of 127.0.0.1 where it listens.
    pub(super) const fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Bind {
    fn drop(&mut self) {
        // Closes its standard input first. Nothing can be done about one that has ended by itself.
        let _ = self.server.wait();
    }
}

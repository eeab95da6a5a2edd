//! Programs that validate what a name server of a signed zone says, as those of users do: Unbound, and BIND's `delv`. Each starts from the key of the zone's
//! keys.

mod knot;

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

use crate::group::{succeeds, until};

/// How long a resolver may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// `delv`, which asks the server at this port for a name of `example` and starts from this key, the data of a DNSKEY record. Its files are in this folder.
pub(crate) fn delv(folder: &Path, port: u16, key: &str, name: &str) -> Command {
    let words: Vec<&str> = key.split(' ').collect();
    let (numbers, key) = (words[..3].join(" "), words[3..].concat());
    let anchor = format!("trust-anchors {{ example. static-key {numbers} \"{key}\"; }};\n");
    fs::write(folder.join("anchor"), anchor).unwrap();
    let places = Places::of_this_machine();
    places.check(&["delv"]).unwrap();
    let mut delv = places.command("delv");
    delv.args(["@127.0.0.1", "-p", &port.to_string(), "-a", "anchor", "+root=example", name, "A"]);
    delv.current_dir(folder).stdin(Stdio::null());
    delv
}

/// A resolver on loopback that finds `example` at one name server, and believes nothing of it that is not signed. It ends when this is dropped.
pub(crate) struct Unbound {
    places: Places,
    folder: PathBuf,
    port: u16,
    server: Child,
}

impl Unbound {
    /// Starts from this key, the data of a DNSKEY record, and asks the name server at this port. Its files are in a new folder of this name.
    pub(crate) fn start(folder: PathBuf, key: &str, name_server: u16) -> Self {
        let places = Places::of_this_machine();
        places.check(&["unbound", "kdig"]).unwrap();
        let port = free_port().unwrap();
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("anchor"), format!("example. 1 IN DNSKEY {key}\n")).unwrap();
        // Its name server is on loopback, and there is no other on the way to it.
        let config = format!(
            "server:\n  directory: \"\"\n  chroot: \"\"\n  username: \"\"\n  pidfile: \"\"\n  use-syslog: no\n  logfile: \"\"\n  \
             do-daemonize: no\n  interface: 127.0.0.1@{port}\n  port: {port}\n  do-not-query-localhost: no\n  \
             module-config: \"validator iterator\"\n  trust-anchor-file: \"{}\"\n  val-log-level: 2\n\
             stub-zone:\n  name: \"example.\"\n  stub-addr: 127.0.0.1@{name_server}\n",
            folder.join("anchor").display()
        );
        fs::write(folder.join("unbound.conf"), config).unwrap();
        let mut unbound = places.command("unbound");
        unbound.args(["-d", "-p", "-c"]).arg(folder.join("unbound.conf")).current_dir(&folder);
        let server = tied(&unbound, &folder.join("unbound.log")).unwrap();
        let mut resolver = Self { places, folder, port, server };
        until("the resolver answers", PATIENCE, || {
            assert_eq!(resolver.server.try_wait().unwrap(), None, "Unbound has ended: {}", resolver.said());
            resolver.command("example.", &["SOA", "+time=1", "+retry=0"]).output().unwrap().status.success()
        });
        resolver
    }

    fn command(&self, name: &str, words: &[&str]) -> Command {
        let mut kdig = self.places.command("kdig");
        kdig.args(["@127.0.0.1", "-p", &self.port.to_string(), name]).args(words).stdin(Stdio::null());
        kdig
    }

    /// All that it says of a name's addresses.
    pub(crate) fn ask(&self, name: &str) -> String {
        succeeds(self.command(name, &["A", "+dnssec"]))
    }

    /// The same without a check of signatures.
    pub(crate) fn ask_unchecked(&self, name: &str) -> String {
        succeeds(self.command(name, &["A", "+dnssec", "+cdflag"]))
    }

    /// What it has written to its log so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.folder.join("unbound.log")).unwrap_or_default()
    }
}

impl Drop for Unbound {
    fn drop(&mut self) {
        // Closes its standard input first. Nothing can be done about one that has ended by itself.
        let _ = self.server.wait();
    }
}

/// How an answer ended, such as NOERROR, and whether the resolver says that it is authentic.
pub(crate) fn status(answer: &str) -> (&str, bool) {
    let status = answer.split("status: ").nth(1).and_then(|rest| rest.split(';').next()).unwrap_or_default();
    // ;; Flags: qr rd ra ad; QUERY: 1; ...
    let flags = answer.split("Flags: ").nth(1).and_then(|rest| rest.split(';').next()).unwrap_or_default();
    (status, flags.split(' ').any(|flag| flag == "ad"))
}

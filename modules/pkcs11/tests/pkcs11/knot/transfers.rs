//! Knot DNS as an operator's own name server, from which its agent has its copy of the zone. No group takes part.

use std::{
    fs,
    path::Path,
    process::{Child, Stdio},
    sync::Arc,
    time::Duration,
};

use theta_dnssec::{
    transfer::{Copy, Primary, tsig::Key},
    zone::Zone,
};

use super::{PATIENCE, RECORDS, program};
use crate::group::{free_port, succeeds, until};

const SECRET: &str = "YW4gZXhhbXBsZSdzIHNlY3JldCwgb2YgMzIgYnl0ZXM=";

/// A name server that has the zone as it is, for whoever knows the key. It ends when this is dropped.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let (port, path) = (free_port(), folder.display());
        ["run", "db", "zones"].iter().for_each(|name| fs::create_dir_all(folder.join(name)).unwrap());
        let config = format!(
            "server:\n  rundir: \"{path}/run\"\n  listen: 127.0.0.1@{port}\n\
             log:\n  - target: \"{path}/knot.log\"\n    any: info\n\
             database:\n  storage: \"{path}/db\"\n\
             key:\n  - id: transfer.\n    algorithm: hmac-sha256\n    secret: {SECRET}\n\
             acl:\n  - id: out\n    key: transfer.\n    action: transfer\n\
             zone:\n  - domain: example.\n    storage: \"{path}/zones\"\n    file: \"%s.zone\"\n    acl: out\n"
        );
        fs::write(folder.join("knot.conf"), config).unwrap();
        let mut server = program(folder, "knotd");
        let process = server.args(["-c", "knot.conf"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { process, address: format!("127.0.0.1:{port}") }
    }

    fn follow(&self, line: &str) -> Arc<Copy> {
        let key = Key::parse(line).unwrap();
        let primary = Primary { address: self.address.clone(), key, refresh: Duration::from_millis(200) };
        Copy::follow(primary, Zone::origin("example.").unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A zone of many messages, a change of all of it, and one that comes by differences; with another secret or another key nothing comes.
#[test]
fn a_copy_follows_knot() {
    let folder = tempfile::tempdir().unwrap();
    let zone = folder.path().join("zones/example.zone");
    fs::create_dir_all(folder.path().join("zones")).unwrap();
    let hosts: String = (0..5_000).map(|number| format!("host-{number} A 192.0.2.{}\n", number % 256)).collect();
    fs::write(&zone, format!("{RECORDS}{hosts}")).unwrap();
    let knot = Server::start(folder.path());
    let copy = knot.follow(&format!("hmac-sha256 transfer. {SECRET}"));
    until("the zone is transferred", PATIENCE, || copy.transfers() == 1);
    let before = copy.zone().unwrap();
    assert_eq!((before.serial(), before.len()), (Some(1), 5_003));

    for (name, secret, words) in [
        ("transfer.", "AAAA", "the primary refuses the key: error 16 (BADSIG)"),
        ("other.", SECRET, "the primary refuses the key: error 17 (BADKEY)"),
    ] {
        let copy = knot.follow(&format!("hmac-sha256 {name} {secret}"));
        until("the key is refused", PATIENCE, || copy.zone().is_err_and(|said| said.contains(words)));
    }

    fs::write(&zone, format!("{}mail A 192.0.2.7\n", RECORDS.replace("admin 1 ", "admin 2 "))).unwrap();
    let mut reload = program(folder.path(), "knotc");
    reload.args(["-c", "knot.conf", "-b", "zone-reload", "example."]);
    succeeds(reload);
    until("the change is transferred", PATIENCE, || copy.transfers() == 2);
    let after = copy.zone().unwrap();
    assert_eq!((after.serial(), after.len()), (Some(2), 4));
    assert_eq!(copy.differences(), 0, "Knot does not know how a file has changed");

    for words in [
        &["zone-begin", "example."][..],
        &["zone-set", "example.", "more", "1", "A", "192.0.2.8"],
        &["zone-unset", "example.", "mail", "A"],
        &["zone-commit", "example."],
    ] {
        let mut knotc = program(folder.path(), "knotc");
        knotc.args(["-c", "knot.conf", "-b"]).args(words);
        succeeds(knotc);
    }
    until("the differences are transferred", PATIENCE, || copy.transfers() == 3);
    let changed = copy.zone().unwrap();
    let has = |name: &str| changed.set(&Zone::origin(name).unwrap(), 1).is_some();
    assert_eq!((copy.differences(), changed.len()), (1, 4));
    assert!(has("more.example.") && has("www.example.") && !has("mail.example."));
    drop(knot);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(copy.zone().unwrap().serial(), changed.serial(), "the last copy stays");
}

//! Who reads what is published: an rsync server gives it, and `rpki-client`, which starts from the anchor's locator and believes nothing that is not
//! signed, says what a router would be told.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use theta::exit::Failure;
use theta_knot::{KnotError, places::Places, server};

use crate::member::Origin;

/// The programs that this takes.
const PROGRAMS: [&str; 2] = ["rpki-client", "rsync"];

/// Readers, and where they read.
pub(crate) struct Readers {
    places: Places,
    dir: PathBuf,
    /// Ends, and rsync with it, when its standard input is closed.
    rsync: Child,
}

impl Drop for Readers {
    fn drop(&mut self) {
        // Closes its standard input first. Nothing can be done about one that has ended by itself.
        let _ = self.rsync.wait();
    }
}

fn failure(error: &KnotError) -> Failure {
    match error {
        KnotError::Missing { program, package } => Failure::Usage(format!(
            "{program} is missing: install Debian's package {package}, or let cargo xtask rpki unpack it"
        )),
        error => Failure::Failed(error.to_string()),
    }
}

fn is_root() -> bool {
    let told = Command::new("id").arg("-u").output();
    told.is_ok_and(|told| told.stdout.trim_ascii() == b"0")
}

/// Makes sure that the programs are there.
pub(crate) fn find() -> Result<Places, Failure> {
    let places = Places::of_this_machine();
    places.check(&PROGRAMS).map_err(|error| failure(&error))?;
    Ok(places)
}

/// A port for rsync.
pub(crate) fn port() -> Result<u16, Failure> {
    server::free_port().map_err(|error| failure(&error))
}

impl Readers {
    /// Starts rsync for what a publisher leaves in `published`.
    pub(crate) fn start(places: Places, dir: &Path, published: &Path, port: u16) -> Result<Self, Failure> {
        let owner = if is_root() { "uid = 0\ngid = 0\n" } else { "" };
        let place = published.join(format!("rsync/current/localhost:{port}"));
        let place = place.display();
        let text = format!("use chroot = no\n{owner}[repo]\npath = {place}/repo\n[ta]\npath = {place}/ta\n");
        let file = dir.join("rsyncd.conf");
        fs::write(&file, text).map_err(|error| Failure::writing(&file, &error))?;
        for name in ["cache", "told"] {
            let folder = dir.join(name);
            fs::create_dir(&folder).map_err(|error| Failure::writing(&folder, &error))?;
        }
        let mut rsync = places.command("rsync");
        rsync.args(["--daemon", "--no-detach", "--address=127.0.0.1", "--config=rsyncd.conf"]);
        rsync.arg(format!("--port={port}")).current_dir(dir);
        let rsync = server::tied(&rsync, &dir.join("rsync.log")).map_err(|error| failure(&error))?;
        Ok(Self { places, dir: dir.to_owned(), rsync })
    }

    /// What a router would be told.
    pub(crate) fn told(&self) -> Result<Vec<String>, Failure> {
        let (client, rsync) = (self.places.command("rpki-client"), self.places.command("rsync"));
        // As root it would become a user of its own, which few systems have.
        let mut command = Command::new(if is_root() { "unshare".as_ref() } else { client.get_program() });
        if is_root() {
            command.arg("--user").arg(client.get_program());
        }
        self.places.with_libraries(&mut command);
        command.current_dir(&self.dir).args(["-R", "-j", "-e"]).arg(rsync.get_program());
        command.args(["-t", "ta.tal", "-d", "cache", "told"]).stdin(Stdio::null());
        let output =
            command.output().map_err(|error| Failure::Failed(format!("rpki-client does not start: {error}")))?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if !output.status.success() {
            return Err(Failure::Failed(format!("rpki-client failed: {said}")));
        }
        let file = self.dir.join("told/json");
        let report = fs::read(&file).map_err(|error| Failure::reading(&file, &error))?;
        let report: Value = serde_json::from_slice(&report).map_err(Failure::internal)?;
        for what in ["failedmanifests", "invalidroas", "invalidcertificates"] {
            let count = report.pointer(&format!("/metadata/{what}")).and_then(Value::as_u64);
            if count != Some(0) {
                return Err(Failure::Failed(format!("rpki-client counts {count:?} {what}: {said}")));
            }
        }
        let routes = report.get("roas").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let route = |route: &Value| {
            let network = route.get("asn").and_then(Value::as_u64)?;
            Some(format!("AS{network} {}", route.get("prefix").and_then(Value::as_str)?))
        };
        let mut routes: Vec<String> = routes.iter().filter_map(route).collect();
        routes.sort();
        Ok(routes)
    }
}

/// As it is shown.
pub(crate) fn shown(Origin { network, prefix }: Origin) -> String {
    format!("AS{network} {prefix}")
}

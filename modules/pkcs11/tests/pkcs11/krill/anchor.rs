//! The Krill whose keys are the group's, and those who read what it publishes.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    ops::Deref,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use theta_knot::{places::Places, server::free_port};

use super::{PATIENCE, instance::Instance};
use crate::{
    group::{host_program, module, succeeds, until},
    harness::Group,
    routinator::Web,
};

/// `rpki-client` keeps a manifest that it knows unless the next one was issued in a later second, and Krill may issue two in one.
const ISSUED_LATER: Duration = Duration::from_millis(1100);

/// Krill with the group's keys, and servers for what it publishes. They end when this is dropped.
pub(super) struct Anchor {
    path: PathBuf,
    krill: Instance,
    rsync: Child,
    web: Web,
}

impl Deref for Anchor {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.krill
    }
}

/// Whether this process may do everything, so that programs which would give that up must not be started as they are.
fn is_root() -> bool {
    let told = Command::new("id").arg("-u").output().unwrap();
    told.stdout.trim_ascii() == b"0"
}

impl Anchor {
    /// With a trust anchor, an authority below it that may give others all there is, and a repository.
    pub(super) fn start(group: &Group) -> Self {
        let path = group.path().to_owned();
        let [api, files, secure] = std::array::from_fn(|_| free_port().unwrap());
        let web = Web::serve(&path, secure, &[("rrdp", path.join("krill/repo/rrdp")), ("ta", path.join("ta"))]);
        let site = web.site();
        ["ta", "tals", "cache", "out"].iter().for_each(|name| fs::create_dir(path.join(name)).unwrap());
        let module = module().display().to_string();
        let signer = ["pkcs11", "config", "--client", "host.client", "--module", &module, "--pool", "rpki", "krill"];
        let signer = group.theta(&signer).ok().text();
        let signer: Vec<_> = signer.lines().skip(1).map(str::trim_start).collect();
        let lines = format!(
            "[testbed]\nrrdp_base_uri = \"{site}/rrdp/\"\nrsync_jail = \"rsync://localhost:{files}/repo/\"\n\
             ta_uri = \"{site}/ta/ta.cer\"\nta_aia = \"rsync://localhost:{files}/ta/ta.cer\"\n{}\n",
            signer.join("\n")
        );
        let rsync = serve(group, files);
        let krill = Instance::start(path.clone(), api, &lines, Some(&path.join("pkcs11.toml")));
        let anchor = Self { path, krill, rsync, web };
        until("the trust anchor has published", PATIENCE, || anchor.files("mft").len() == 2);
        for name in ["ta.cer", "ta.tal"] {
            fs::write(anchor.path.join("ta").join(name), get(api, &format!("/ta/{name}"))).unwrap();
        }
        fs::copy(anchor.path.join("ta/ta.tal"), anchor.path.join("tals/ta.tal")).unwrap();
        anchor
    }

    /// What is published, of this kind.
    pub(super) fn files(&self, kind: &str) -> Vec<PathBuf> {
        let mut folders = vec![self.path.join("krill/repo/rsync/current")];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                match path.extension() {
                    _ if path.is_dir() => folders.push(path),
                    Some(extension) if extension == kind => found.push(path),
                    _ => {}
                }
            }
        }
        found
    }

    /// What a router would be told by `rpki-client`, which starts from the locator, believes nothing that is not signed, and sees so many certificates of
    /// authorities. What is published after this has later times than what was seen here.
    pub(super) fn validated(&self, certificates: u64) -> Vec<(u64, String)> {
        let places = Places::of_this_machine();
        places.check(&["rpki-client", "rsync"]).unwrap();
        let (client, rsync) = (places.command("rpki-client"), places.command("rsync"));
        let (client, rsync) = (client.get_program(), rsync.get_program());
        // As root it would become a user of its own, which few systems have.
        let mut command = if is_root() {
            let mut command = Command::new("unshare");
            command.arg("--user").arg(client);
            command
        } else {
            Command::new(client)
        };
        places.with_libraries(&mut command);
        command.current_dir(&self.path).args(["-R", "-j", "-e"]).arg(rsync);
        command.args(["-t", "ta/ta.tal", "-d", "cache", "out"]);
        let said = succeeds(command);
        let report: Value = serde_json::from_slice(&fs::read(self.path.join("out/json")).unwrap()).unwrap();
        let told = &report["metadata"];
        for (what, how_many) in [("invalidcertificates", 0), ("failedmanifests", 0), ("invalidroas", 0), ("tals", 1)] {
            assert_eq!(told[what], how_many, "{what}: {said} {told}");
        }
        assert_eq!(told["certificates"], certificates, "{said}");
        std::thread::sleep(ISSUED_LATER);
        let payloads = report["roas"].as_array().unwrap();
        payloads.iter().map(|it| (it["asn"].as_u64().unwrap(), it["prefix"].as_str().unwrap().to_owned())).collect()
    }

    /// What Routinator would tell it, which gets everything over TLS.
    pub(super) fn routinated(&self) -> BTreeSet<(u64, String)> {
        self.web.validated()
    }
}

impl Drop for Anchor {
    fn drop(&mut self) {
        let _ = self.rsync.kill();
        let _ = self.rsync.wait();
    }
}

/// A server of rsync for what Krill publishes, on this port.
fn serve(group: &Group, port: u16) -> Child {
    let shown = group.path().display();
    let owner = if is_root() { "uid = 0\ngid = 0\n" } else { "" };
    group.file(
        "rsyncd.conf",
        format!("use chroot = no\n{owner}[repo]\npath = {shown}/krill/repo/rsync/current\n[ta]\npath = {shown}/ta\n"),
    );
    let mut rsync = host_program(group, "rsync");
    rsync.args(["--daemon", "--no-detach", "--address=127.0.0.1", "--config=rsyncd.conf"]);
    rsync.arg(format!("--port={port}")).current_dir(group.path()).stdin(Stdio::null());
    rsync.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// What Krill gives to everybody.
fn get(port: u16, path: &str) -> Vec<u8> {
    let mut openssl = Command::new("openssl");
    openssl.args(["s_client", "-quiet", "-connect", &format!("localhost:{port}")]);
    let mut openssl = openssl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // It reads on when it has nothing more to say, until Krill ends the connection.
    write!(openssl.stdin.take().unwrap(), "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = openssl.wait_with_output().unwrap().stdout;
    assert!(answer.starts_with(b"HTTP/1.0 200") || answer.starts_with(b"HTTP/1.1 200"), "{path}");
    let head = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
    answer.split_off(head + 4)
}

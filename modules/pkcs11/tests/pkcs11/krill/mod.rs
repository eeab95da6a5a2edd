//! Krill, the certificate authority of the RPKI, as trust anchor and as host of other authorities; `rpki-client` judges what it
//! publishes, from the trust anchor's locator to validated payloads, and Routinator comes to the same.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use theta_knot::{places::Places, server::free_port};

use crate::{
    group::{configure, host_program, log, module, succeeds, until},
    harness::Group,
    routinator::Web,
};

/// Private keys of RSA whose primes are safe. They share primes, six in all: each is a key of its own, and none is for anything but tests.
const KEYS: &str = include_str!("keys.pem");
const END: &str = "-----END PRIVATE KEY-----\n";

/// How long Krill has for what it does at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// `rpki-client` keeps a manifest that it knows unless the next one was issued in a later second, and Krill may issue two in one.
const ISSUED_LATER: Duration = Duration::from_millis(1100);

/// Where `cargo xtask test` has built Krill.
const BUILT: &str = "THETA_KRILL";

/// Krill with the group's keys, and a server of rsync for what it publishes. Both end when this is dropped.
struct Krill {
    path: PathBuf,
    api: u16,
    server: Child,
    rsync: Child,
    web: Web,
}

/// A program of Krill's.
fn program(folder: &Path, name: &str) -> Command {
    let built = std::env::var_os(BUILT).map(|folder| Path::new(&folder).join(name));
    let mut command = Command::new(built.unwrap_or_else(|| PathBuf::from(name)));
    command.current_dir(folder).env("THETA_PKCS11_CONFIG", folder.join("pkcs11.toml")).env_remove("THETA_CLIENT");
    command
}

/// Whether this process may do everything, so that programs which would give that up must not be started as they are.
fn is_root() -> bool {
    let told = Command::new("id").arg("-u").output().unwrap();
    told.stdout.trim_ascii() == b"0"
}

impl Krill {
    /// With a trust anchor, an authority below it that may give others all there is, and a repository.
    fn start(group: &Group) -> Self {
        let path = group.path().to_owned();
        let [api, files, secure] = std::array::from_fn(|_| free_port().unwrap());
        let web = Web::serve(&path, secure, &[("rrdp", path.join("krill/repo/rrdp")), ("ta", path.join("ta"))]);
        let site = web.site();
        ["krill", "ta", "tals", "cache", "out"].iter().for_each(|name| fs::create_dir_all(path.join(name)).unwrap());
        let (shown, module) = (path.display(), module().display().to_string());
        let signer = ["pkcs11", "config", "--client", "host.client", "--module", &module, "--pool", "rpki", "krill"];
        let signer = group.theta(&signer).ok().text();
        let signer: Vec<_> = signer.lines().skip(1).map(str::trim_start).collect();
        let signer = signer.join("\n");
        group.file(
            "krill.conf",
            format!(
                "storage_uri = \"{shown}/krill/\"\nlog_type = \"file\"\nlog_file = \"{shown}/krill.log\"\nlog_level = \"info\"\n\
                 admin_token = \"secret\"\nip = \"127.0.0.1\"\nport = {api}\nhttps_mode = \"disable\"\nunix_socket_enabled = false\n\
                 service_uri = \"https://localhost:{api}/\"\nbgp_riswhois_enabled = false\n\
                 [testbed]\nrrdp_base_uri = \"{site}/rrdp/\"\nrsync_jail = \"rsync://localhost:{files}/repo/\"\n\
                 ta_uri = \"{site}/ta/ta.cer\"\nta_aia = \"rsync://localhost:{files}/ta/ta.cer\"\n{signer}\n"
            ),
        );
        let owner = if is_root() { "uid = 0\ngid = 0\n" } else { "" };
        group.file(
            "rsyncd.conf",
            format!(
                "use chroot = no\n{owner}[repo]\npath = {shown}/krill/repo/rsync/current\n[ta]\npath = {shown}/ta\n"
            ),
        );
        let mut rsync = host_program(group, "rsync");
        rsync.args(["--daemon", "--no-detach", "--address=127.0.0.1", "--config=rsyncd.conf"]);
        rsync.arg(format!("--port={files}")).current_dir(&path).stdin(Stdio::null());
        let rsync = rsync.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut server = program(&path, "krill");
        server.args(["-c", "krill.conf"]).stdout(Stdio::null()).stderr(Stdio::null());
        let server = server.spawn().expect("Krill is missing: let cargo xtask test build it, or install it");
        let krill = Self { path, api, server, rsync, web };
        until("the trust anchor has published", PATIENCE, || krill.files("mft").len() == 2);
        for name in ["ta.cer", "ta.tal"] {
            fs::write(krill.path.join("ta").join(name), krill.get(&format!("/ta/{name}"))).unwrap();
        }
        fs::copy(krill.path.join("ta/ta.tal"), krill.path.join("tals/ta.tal")).unwrap();
        krill
    }

    /// Runs Krill's command, which asks it for something; what it said, if Krill did that.
    fn ask(&self, words: &[&str]) -> Result<String, String> {
        let mut krillc = program(&self.path, "krillc");
        krillc.args(["--server", &format!("http://localhost:{}/", self.api), "--token", "secret"]).args(words);
        let output = krillc.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        if output.status.success() {
            Ok(text(output.stdout))
        } else {
            Err(text([output.stdout, output.stderr].concat()))
        }
    }

    /// The same, with the answer put into a file.
    fn ask_into(&self, file: &str, words: &[&str]) {
        fs::write(self.path.join(file), self.ask(words).unwrap()).unwrap();
    }

    /// What Krill gives to everybody.
    fn get(&self, path: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.api)).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let head = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
        assert!(answer.starts_with(b"HTTP/1.0 200") || answer.starts_with(b"HTTP/1.1 200"), "{path}");
        answer.split_off(head + 4)
    }

    /// What is published, of this kind.
    fn files(&self, kind: &str) -> Vec<PathBuf> {
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

    /// A registry of its own below the trust anchor: its addresses and its number, and keys of the group.
    fn host_registry(&self) {
        self.ask(&["add", "--ca", "reg"]).unwrap();
        self.ask_into("publisher.xml", &["repo", "request", "--ca", "reg"]);
        self.ask_into("repository.xml", &["pubserver", "publishers", "add", "--request", "publisher.xml"]);
        self.ask(&["repo", "configure", "--ca", "reg", "--response", "repository.xml"]).unwrap();
        self.ask_into("child.xml", &["parents", "request", "--ca", "reg"]);
        let resources = ["-4", "10.0.0.0/16", "-a", "AS64496"];
        let add = ["children", "add", "--ca", "testbed", "--child", "reg", "--request", "child.xml"];
        self.ask_into("parent.xml", &[&add[..], &resources].concat());
        self.ask(&["parents", "add", "--ca", "reg", "--parent", "testbed", "--response", "parent.xml"]).unwrap();
        until("the registry is certified and has published", PATIENCE, || self.files("mft").len() == 3);
    }

    /// What a router would be told by `rpki-client`, which starts from the locator and believes nothing that is not signed. What is
    /// published after this has later times than what was seen here.
    fn validated(&self) -> Vec<(u64, String)> {
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
        assert_eq!(told["certificates"], 3, "the trust anchor, the authority below it, the registry: {said}");
        std::thread::sleep(ISSUED_LATER);
        let payloads = report["roas"].as_array().unwrap();
        payloads.iter().map(|it| (it["asn"].as_u64().unwrap(), it["prefix"].as_str().unwrap().to_owned())).collect()
    }

    /// What Routinator would tell it, which gets everything over TLS.
    fn routinated(&self) -> BTreeSet<(u64, String)> {
        self.web.validated()
    }

    fn said(&self) -> String {
        fs::read_to_string(self.path.join("krill.log")).unwrap_or_default()
    }
}

impl Drop for Krill {
    fn drop(&mut self) {
        for child in [&mut self.server, &mut self.rsync] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A group with a pool of keys for Krill.
fn group() -> Group {
    let mut group = Group::made();
    for (key, number) in KEYS.split_inclusive(END).zip(1..) {
        group.file("rsa.pem", key);
        let name = format!("rpki-sh00-pkcs1-sha256-{number}");
        group.theta(&["keys", "import", "--name", &name, "--suite", "sh00-pkcs1-sha256", "rsa.pem"]).ok();
    }
    group.start_all();
    group.theta(&["client", "convert", "theta-group/client", "-o", "host.client"]).ok();
    configure(&group, "pool = \"rpki\"\ntimeout_ms = 6000\n");
    group
}

#[test]
fn krill_signs_from_the_trust_anchor_to_route_origins_with_keys_that_nobody_has() {
    let mut group = group();
    let krill = Krill::start(&group);
    krill.host_registry();
    assert_eq!(krill.validated(), []);
    let add = |origin: &str| krill.ask(&["roas", "update", "--ca", "reg", "--add", origin]);
    add("10.0.0.0/24 => 64496").unwrap_or_else(|error| panic!("{error} {}", krill.said()));
    until("the route origin is published", PATIENCE, || krill.files("roa").len() == 1);
    let first = vec![(64_496, "10.0.0.0/24".to_owned())];
    assert_eq!(krill.validated(), first);
    let bound = fs::read_to_string(group.path().join("bindings.toml")).unwrap();
    assert!(bound.matches("state = \"bound\"").count() >= 7, "{bound}");

    // Too few nodes: Krill refuses, and what is published stays as it is.
    (2..=4).for_each(|node| group.kill(node));
    add("10.0.1.0/24 => 64496").unwrap_err();
    assert!(log(&group).contains("failed"), "{}", log(&group));
    assert_eq!(krill.validated(), first);

    // One that takes a part suffices, and nothing has to be started again.
    group.start(2);
    group.await_up(2);
    until("Krill signs again", PATIENCE, || add("10.0.2.0/24 => 64496").is_ok());
    until("both are published", PATIENCE, || krill.files("roa").len() == 2);
    let both = [first, vec![(64_496, "10.0.2.0/24".to_owned())]].concat();
    assert_eq!(krill.validated(), both);
    assert_eq!(krill.routinated(), both.into_iter().collect());
}

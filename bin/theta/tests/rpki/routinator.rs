//! Routinator, a second relying party, written by others in another language than `rpki-client`: it gets what is published over TLS by RRDP alone.

use std::{
    collections::BTreeSet,
    fs,
    net::{Ipv4Addr, TcpStream},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::Value;

/// Where `cargo xtask test` has built it.
const BUILT: &str = "THETA_ROUTINATOR";
/// How long a web server may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A web server with a certificate of its own, for `https://localhost`. It ends when this is dropped.
pub(crate) struct Web {
    folder: PathBuf,
    port: u16,
    server: Child,
    /// What Routinator's environment has of a clock that is another one than the machine's.
    pub(crate) clock: Vec<(&'static str, PathBuf)>,
}

fn openssl(folder: &Path, words: &str) -> Command {
    let mut openssl = Command::new("openssl");
    openssl.current_dir(folder).args(words.split_whitespace()).stdin(Stdio::null());
    openssl.stdout(Stdio::null()).stderr(Stdio::null());
    openssl
}

impl Web {
    /// Serves these folders, by the names under which they are found, from a folder in which it makes others.
    pub(crate) fn serve(folder: &Path, port: u16, shown: &[(&str, PathBuf)]) -> Self {
        let make = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout web.key -out web.crt -days 400 -subj /CN=localhost \
                    -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE";
        assert!(openssl(folder, make).status().unwrap().success(), "openssl makes no certificate");
        let web = folder.join("web");
        fs::create_dir(&web).unwrap();
        shown.iter().for_each(|(name, place)| symlink(place, web.join(name)).unwrap());
        let words = format!("s_server -WWW -quiet -accept 127.0.0.1:{port} -cert ../web.crt -key ../web.key");
        let served =
            Self { folder: folder.to_owned(), port, server: openssl(&web, &words).spawn().unwrap(), clock: Vec::new() };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(Instant::now() < deadline, "the web server does not start");
            sleep(Duration::from_millis(20));
        }
        served
    }

    /// How its addresses begin.
    pub(crate) fn site(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// What a router would be told, from the anchor at this locator (of `tals/`) down: by which network, which prefix.
    #[track_caller]
    pub(crate) fn validated(&self) -> BTreeSet<(u64, String)> {
        let report = self.report();
        let told = |it: &Value| {
            let asn = it["asn"].as_str().unwrap().trim_start_matches("AS").parse().unwrap();
            (asn, it["prefix"].as_str().unwrap().to_owned())
        };
        report["roas"].as_array().unwrap().iter().map(told).collect()
    }

    /// And which networks say that others are their providers.
    #[track_caller]
    pub(crate) fn providers(&self) -> Vec<(String, Vec<String>)> {
        let text = |it: &Value| it.as_str().unwrap().to_owned();
        let told = |it: &Value| (text(&it["customer"]), it["providers"].as_array().unwrap().iter().map(text).collect());
        self.report()["aspas"].as_array().unwrap().iter().map(told).collect()
    }

    #[track_caller]
    fn report(&self) -> Value {
        let program = std::env::var_os(BUILT).unwrap_or_else(|| "routinator".into());
        let mut routinator = Command::new(program);
        // It looks for its own files there, and would take a proxy of the environment.
        routinator.current_dir(&self.folder).env("HOME", &self.folder).env("NO_PROXY", "localhost");
        routinator.envs(self.clock.iter().map(|(name, value)| (name, value)));
        let how = "--no-rir-tals --rrdp-root-cert web.crt --repository-dir routinator --allow-dubious-hosts --disable-rsync --strict --enable-aspa \
                   --log-repository-issues --extra-tals-dir tals vrps --complete --format json";
        routinator.args(how.split_whitespace()).stdin(Stdio::null());
        let output = routinator.output().expect("Routinator is missing: let cargo xtask test build it, or install it");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

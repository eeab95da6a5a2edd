//! One name server with one zone: its files, its process, and the tools that talk to it.

use std::{
    fs::{self, File},
    io,
    net::{TcpListener, UdpSocket},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{KnotError, config, places::Places};

/// The programs that this takes.
pub const PROGRAMS: [&str; 5] = ["knotd", "knotc", "keymgr", "kdig", "ldns-verify-zone"];

/// How long the server may take to start.
const START: Duration = Duration::from_secs(60);
/// How often it is looked whether something is so.
const GLANCE: Duration = Duration::from_millis(20);
/// How many ports are tried.
const ATTEMPTS: usize = 1_000;
/// The server's configuration, in its folder, where all programs run.
const CONFIG: [&str; 2] = ["-c", "knot.conf"];

/// Runs the program of its words, and kills it when standard input ends: that is when the process that has started this ends, in whichever way.
/// It ends when the program does.
const TIED: &str =
    "exec 3<&0; \"$@\" </dev/null & program=$!; (cat <&3 >/dev/null; kill -KILL $program) & wait $program";

/// What a name server is started with.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Its folder, which is made if it is not there. The PKCS#11 module's configuration is `pkcs11.toml` in it.
    pub folder: &'a Path,
    /// The zone's name, with its dot.
    pub zone: &'a str,
    /// The zone, without signatures.
    pub records: &'a str,
    /// What `knot.conf` has besides address, log, databases and the place of zones: [`config::signing`], or other sections.
    pub config: &'a str,
}

/// A name server of one zone, on loopback. It ends when this is dropped, and when this process ends.
#[derive(Debug)]
pub struct Knot {
    places: Places,
    folder: PathBuf,
    zone: String,
    port: u16,
    /// Ends, and its program with it, when its standard input is closed.
    server: Child,
}

impl Knot {
    /// Starts it, and waits until it takes commands.
    ///
    /// # Errors
    /// [`KnotError`]: a program is missing, the folder cannot be written, or the server does not start.
    pub fn start(places: &Places, setup: Setup<'_>) -> Result<Self, KnotError> {
        Self::start_within(places, setup, START)
    }

    /// The same with this patience: while the server signs for the first time it may take no commands.
    ///
    /// # Errors
    /// Those of [`Knot::start`].
    pub fn start_within(places: &Places, setup: Setup<'_>, patience: Duration) -> Result<Self, KnotError> {
        places.check(&PROGRAMS)?;
        let Setup { folder, zone, records, config } = setup;
        for name in ["run", "db", "zones"] {
            let made = folder.join(name);
            fs::create_dir_all(&made).map_err(|reason| KnotError::File { path: made, reason })?;
        }
        let absolute = folder.canonicalize();
        let folder = absolute.map_err(|reason| KnotError::File { path: folder.to_owned(), reason })?;
        let port = free_port()?;
        write(&folder.join("knot.conf"), &(config::base(&folder, port) + config))?;
        write(&zone_file(&folder, zone), records)?;
        let mut knotd = program(places, &folder, "knotd");
        knotd.args(CONFIG);
        let server = tied(&knotd, &folder.join("knotd.out"))?;
        let mut knot = Self { places: places.clone(), folder, zone: zone.to_owned(), port, server };
        knot.await_ready(patience)?;
        Ok(knot)
    }

    /// The version of the Knot DNS in these places, such as 3.4.6.
    ///
    /// # Errors
    /// [`KnotError`]: it is not there, or does not say its version.
    pub fn version(places: &Places) -> Result<String, KnotError> {
        places.check(&["knotd"])?;
        let output = places.command("knotd").arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|reason| KnotError::Start { program: "knotd".to_owned(), reason })?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        version_in(&said).map(str::to_owned).ok_or_else(|| {
            let command = "knotd --version".to_owned();
            KnotError::Tool { command, status: output.status, said: said.trim().to_owned() }
        })
    }

    fn await_ready(&mut self, patience: Duration) -> Result<(), KnotError> {
        let deadline = Instant::now() + patience;
        loop {
            let mut status = program(&self.places, &self.folder, "knotc");
            status.args(CONFIG).arg("status").stdin(Stdio::null());
            if status.output().is_ok_and(|output| output.status.success()) {
                return Ok(());
            }
            if matches!(self.server.try_wait(), Ok(Some(_))) {
                return Err(KnotError::Ended(self.last_words()));
            }
            if Instant::now() > deadline {
                return Err(self.late("the name server takes commands", patience));
            }
            sleep(GLANCE);
        }
    }

    /// Runs one of the tools in the server's folder; what it said.
    ///
    /// # Errors
    /// [`KnotError::Start`], [`KnotError::Tool`].
    pub fn tool(&self, name: &str, words: &[&str]) -> Result<String, KnotError> {
        let mut tool = program(&self.places, &self.folder, name);
        let output = tool.args(words).stdin(Stdio::null()).output();
        let output = output.map_err(|reason| KnotError::Start { program: name.to_owned(), reason })?;
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        if output.status.success() {
            return Ok(said);
        }
        let command = [&[name][..], words].concat().join(" ");
        Err(KnotError::Tool { command, status: output.status, said: said.trim().to_owned() })
    }

    /// Tells the server to do something, and waits until it has, a minute at most; whether it could. If not, [`Knot::said`] has why.
    pub fn tell(&self, words: &[&str]) -> bool {
        self.told(words).is_ok()
    }

    /// The same, with what the command has said if it could not.
    ///
    /// # Errors
    /// Those of [`Knot::tool`].
    pub fn told(&self, words: &[&str]) -> Result<(), KnotError> {
        self.tool("knotc", &[&CONFIG[..], &["-b", "-t", "60"], words].concat()).map(drop)
    }

    /// The addresses of a name as the server tells them, with their signature.
    ///
    /// # Errors
    /// Those of [`Knot::tool`].
    pub fn ask(&self, name: &str) -> Result<String, KnotError> {
        self.tool("kdig", &["@127.0.0.1", "-p", &self.port.to_string(), name, "A", "+dnssec", "+short"])
    }

    /// The keys of the zone in the order of their tags, each with what the server says of it.
    ///
    /// # Errors
    /// Those of [`Knot::tool`].
    pub fn keys(&self) -> Result<Vec<String>, KnotError> {
        let listed = self.tool("keymgr", &[&CONFIG[..], &[self.zone.as_str(), "list"]].concat())?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// Has the verifier of another house look at the whole zone, as it is in the server's file.
    ///
    /// # Errors
    /// [`KnotError::Unverified`], and those of [`Knot::tool`].
    pub fn verify(&self) -> Result<(), KnotError> {
        let said = self.tool("ldns-verify-zone", &[&self.zone_file().to_string_lossy()])?;
        if said.contains("Zone is verified and complete") { Ok(()) } else { Err(KnotError::Unverified(said)) }
    }

    /// Waits until the server has signed the zone.
    ///
    /// # Errors
    /// [`KnotError::Late`], or [`KnotError::Ended`] if it has given up.
    pub fn await_signed(&self, patience: Duration) -> Result<(), KnotError> {
        let deadline = Instant::now() + patience;
        while !self.is_signed() {
            let said = self.said();
            if let Some(line) = said.lines().find(|line| line.contains("critical:")) {
                return Err(KnotError::Ended(line.to_owned()));
            }
            if Instant::now() > deadline {
                return Err(self.late("the zone is signed", patience));
            }
            sleep(GLANCE);
        }
        Ok(())
    }

    /// Whether there are signatures in the server's file of the zone.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        fs::read_to_string(self.zone_file()).is_ok_and(|text| text.contains("RRSIG"))
    }

    /// The server's file of the zone.
    #[must_use]
    pub fn zone_file(&self) -> PathBuf {
        zone_file(&self.folder, &self.zone)
    }

    /// Where it listens: a port of 127.0.0.1, UDP and TCP.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// What it has written to its log so far.
    #[must_use]
    pub fn said(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    fn log(&self) -> PathBuf {
        self.folder.join("knot.log")
    }

    fn late(&self, what: &'static str, patience: Duration) -> KnotError {
        KnotError::Late { what, patience, log: self.log() }
    }

    /// The last line of its log, or what it said before it had one.
    fn last_words(&self) -> String {
        let said = fs::read_to_string(self.folder.join("knotd.out")).unwrap_or_default() + &self.said();
        said.lines().last().unwrap_or("it left no word").to_owned()
    }
}

impl Drop for Knot {
    fn drop(&mut self) {
        // Closes its standard input first. Nothing can be done about one that has ended by itself.
        let _ = self.server.wait();
    }
}

/// The version in what Knot says of itself: `knotd, Knot DNS 3.4.6`, or before 3.4 `knotd (Knot DNS), version 3.2.6`.
fn version_in(said: &str) -> Option<&str> {
    said.split_whitespace()
        .last()
        .filter(|word| said.contains("Knot DNS") && word.starts_with(|c: char| c.is_ascii_digit()))
}

/// Knot leaves the last dot out of names of files.
fn zone_file(folder: &Path, zone: &str) -> PathBuf {
    folder.join("zones").join(format!("{}.zone", zone.trim_end_matches('.')))
}

fn write(path: &Path, text: &str) -> Result<(), KnotError> {
    fs::write(path, text).map_err(|reason| KnotError::File { path: path.to_owned(), reason })
}

/// A program in the server's folder, with the configuration of PKCS#11 modules: of the group's, and of SoftHSM.
fn program(places: &Places, folder: &Path, name: &str) -> Command {
    let mut command = places.command(name);
    command.current_dir(folder).env("THETA_PKCS11_CONFIG", folder.join("pkcs11.toml")).env_remove("THETA_CLIENT");
    command.env("SOFTHSM2_CONF", folder.join("softhsm2.conf"));
    command
}

/// Starts a program that ends when this process does, or when its standard input is closed. What it says goes to a file.
///
/// # Errors
/// [`KnotError`].
pub fn tied(program: &Command, output: &Path) -> Result<Child, KnotError> {
    let file = |path: &Path| {
        let opened = File::options().create(true).append(true).open(path);
        opened.map_err(|reason| KnotError::File { path: path.to_owned(), reason })
    };
    let mut shell = Command::new("sh");
    shell.args(["-c", TIED, "sh"]).arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    if let Some(folder) = program.get_current_dir() {
        shell.current_dir(folder);
    }
    shell.stdin(Stdio::piped()).stdout(file(output)?).stderr(file(output)?);
    let shown = program.get_program().to_string_lossy().into_owned();
    shell.spawn().map_err(|reason| KnotError::Start { program: shown, reason })
}

/// A port on which nobody listens now, neither by UDP nor by TCP.
///
/// # Errors
/// [`KnotError::Port`]: none was found.
pub fn free_port() -> Result<u16, KnotError> {
    let free = || -> io::Result<u16> {
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        let port = tcp.local_addr()?.port();
        UdpSocket::bind(("127.0.0.1", port)).map(|_| port)
    };
    let mut found = free();
    for _ in 1..ATTEMPTS {
        if found.is_ok() {
            break;
        }
        found = free();
    }
    found.map_err(KnotError::Port)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It ends when its standard input does, whatever it is busy with, and its program with it.
    #[test]
    fn a_tied_program_ends_with_whoever_started_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut busy = Command::new("sh");
        busy.args(["-c", "echo $$ > pid; exec sleep 600"]).current_dir(dir.path());
        let mut child = tied(&busy, &dir.path().join("out")).unwrap();
        let pid = loop {
            let text = fs::read_to_string(dir.path().join("pid")).unwrap_or_default();
            if text.ends_with('\n') {
                break text.trim().to_owned();
            }
            sleep(GLANCE);
        };
        assert!(child.try_wait().unwrap().is_none());
        assert!(!child.wait().unwrap().success());
        assert!(!Path::new(&format!("/proc/{pid}/exe")).exists());
    }

    #[test]
    fn versions_are_said_in_two_ways() {
        for (said, version) in [
            ("knotd (Knot DNS), version 3.2.6\n", Some("3.2.6")),
            ("knotd, Knot DNS 3.4.6\n", Some("3.4.6")),
            ("knotd, Knot DNS\n", None),
            ("BIND 9.20.23\n", None),
            ("", None),
        ] {
            assert_eq!(version_in(said), version, "{said}");
        }
    }

    #[test]
    fn the_end_of_a_tied_program_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let mut brief = Command::new("sh");
        brief.args(["-c", "echo no >&2; exit 3"]);
        let mut child = tied(&brief, &dir.path().join("out")).unwrap();
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None => sleep(GLANCE),
            }
        };
        assert_eq!(status.code(), Some(3));
        assert_eq!(fs::read_to_string(dir.path().join("out")).unwrap(), "no\n");
    }
}

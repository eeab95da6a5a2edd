//! The programs of an RPKI, as processes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use theta_knot::places::Places;

use crate::{
    clock::Clock,
    harness::{EXE, Group},
};

/// How long something may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A program of this workspace, in a directory.
pub(crate) fn program(folder: &Path, name: &str, words: &str) -> Command {
    let built = Path::new(EXE).with_file_name(name);
    assert!(built.is_file(), "{} is missing: cargo build --workspace --bins makes it", built.display());
    let mut command = Command::new(built);
    command.current_dir(folder).args(words.split_whitespace()).env_remove("THETA_CLIENT").env("NO_COLOR", "1");
    command.stdin(Stdio::null());
    command
}

/// The same by this clock, or by the machine's.
pub(crate) fn under(clock: Option<&Clock>, mut command: Command) -> Command {
    command.envs(clock.into_iter().flat_map(Clock::environment));
    command
}

/// A program that goes on. It ends when this is dropped.
pub(crate) struct Standing {
    child: Child,
    log: PathBuf,
}

impl Standing {
    /// What it says goes to a file.
    pub(crate) fn start(mut command: Command, log: PathBuf) -> Self {
        let file = fs::File::options().create(true).append(true).open(&log).unwrap();
        let child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        Self { child, log }
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// How many lines it has said with these words.
    pub(crate) fn count(&self, words: &str) -> usize {
        self.said().lines().filter(|line| line.contains(words)).count()
    }

    /// Waits until there are so many.
    #[track_caller]
    pub(crate) fn await_count(&self, lines: usize, words: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.count(words) < lines {
            assert!(Instant::now() < deadline, "it does not say {words:?} {lines} times: {}", self.said());
            sleep(Duration::from_millis(50));
        }
    }

    /// SIGTERM.
    pub(crate) fn told_to_end(self) -> Self {
        signal(&self.child, "-TERM");
        self
    }

    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// With which code it ends, or none if the signal itself has ended it, and what it has said in all.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + PATIENCE;
        while self.runs() {
            assert!(Instant::now() < deadline, "it does not end: {}", self.said());
            sleep(Duration::from_millis(20));
        }
        (self.child.wait().unwrap().code(), self.said())
    }
}

/// Sends a process a signal.
pub(crate) fn signal(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

impl Drop for Standing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a program said, and whether it has done what it should.
pub(crate) struct Said(bool, String);

impl Said {
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert!(self.0, "{}", self.1);
        self.1
    }

    #[track_caller]
    pub(crate) fn fails(self) -> String {
        assert!(!self.0, "{}", self.1);
        self.1
    }
}

pub(crate) fn said(mut command: Command) -> Said {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    Said(output.status.success(), text)
}

pub(crate) fn is_root() -> bool {
    said({
        let mut id = Command::new("id");
        id.arg("-u");
        id
    })
    .1
    .trim()
        == "0"
}

/// A registry's agent, with a memory of its own, by this clock and with these options.
pub(crate) fn agent(group: &Group, node: u16, clock: Option<&Clock>, options: &str) -> Child {
    let own = group.node_dir(node);
    let (socket, memory): (PathBuf, PathBuf) = (own.join("rpki.sock"), own.join("rpki.memory"));
    // The first time it begins its memory.
    let begin = if memory.exists() { "" } else { "--new-memory" };
    let overrides = own.join("overrides");
    fs::create_dir_all(&overrides).unwrap();
    let words = format!(
        "agent --registry registry.toml --statements statements --overrides {} --pool pool.keys --store store --memory {} {begin} {options} --socket {}",
        overrides.display(),
        memory.display(),
        socket.display()
    );
    let log = fs::File::options().create(true).append(true).open(own.join("rpki.log")).unwrap();
    let child = under(clock, program(group.path(), "theta-rpki", &words)).stderr(log).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while !socket.exists() {
        let log = fs::read_to_string(own.join("rpki.log")).unwrap_or_default();
        assert!(Instant::now() < deadline, "the agent of node {node} does not serve: {log}");
        sleep(Duration::from_millis(20));
    }
    child
}

/// What is published, for readers.
pub(crate) fn serve(group: &Group, port: u16) -> Child {
    let places = Places::of_this_machine();
    places.check(&["rsync"]).unwrap();
    let (owner, shown) = (if is_root() { "uid = 0\ngid = 0\n" } else { "" }, group.path().display());
    let place = format!("{shown}/pub/rsync/current/localhost:{port}");
    group
        .file("rsyncd.conf", format!("use chroot = no\n{owner}[repo]\npath = {place}/repo\n[ta]\npath = {place}/ta\n"));
    let mut rsync = places.command("rsync");
    rsync.args(["--daemon", "--no-detach", "--address=127.0.0.1", "--config=rsyncd.conf"]);
    rsync.arg(format!("--port={port}")).current_dir(group.path()).stdin(Stdio::null());
    rsync.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

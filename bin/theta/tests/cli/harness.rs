//! Runs `theta`, and groups of `theta node run`.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU16, Ordering},
    },
    time::{Duration, Instant},
};

use tempfile::TempDir;

pub(crate) use super::run::{Run, command, run_in as theta_in};

/// The program, and its name in messages: see run.rs.
pub(crate) const EXE: &str = env!("CARGO_BIN_EXE_theta");
pub(crate) const PROGRAM: &str = "theta";

/// Runs `theta` with bytes on its standard input.
pub(crate) fn theta_with_stdin(dir: &Path, arguments: &[&str], input: &[u8]) -> Run {
    let mut child = command()
        .args(arguments)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    // A command may well end before it has read everything.
    let _ = writer.join().unwrap();
    output.into()
}

/// Lets the client ann in at a node that nobody may ask yet, as a person does: her lines go into its `policy.toml`, and the rule that stands there for
/// her loses its marks of a comment.
pub(crate) fn let_in(policy: &Path, lines: &str) {
    let text = fs::read_to_string(policy).unwrap();
    let (head, rest) = text.split_once("# [[rule]]\n# name = \"ann").unwrap();
    let (rule, tail) = rest.split_once("\n\n").unwrap();
    let rule = format!("[[rule]]\nname = \"ann{}\n", rule.replace("\n# ", "\n").replace("\n#", "\n"));
    fs::write(policy, [head, lines, &rule, tail].join("\n")).unwrap();
}

/// A base port such that the ports of `nodes` nodes are free.
pub(crate) fn base_port(nodes: u16) -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % 150).unwrap() * 100;
    for _ in 0..500 {
        let base = 12_000 + (start + NEXT.fetch_add(200, Ordering::Relaxed)) % 20_000;
        let ports = (1..=nodes).flat_map(|node| (0..3).map(move |offset| base + 10 * node + offset));
        let held: Vec<_> = ports.map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port))).collect();
        if held.iter().all(Result::is_ok) {
            return base;
        }
    }
    panic!("no free ports");
}

/// A group of node processes. They end when it is dropped, and when this process ends.
pub(crate) struct Group {
    dir: TempDir,
    base: u16,
    nodes: Vec<Option<Child>>,
}

impl Group {
    /// Four nodes, any two of which act together, made but not started.
    pub(crate) fn made() -> Self {
        Self::made_with(&[])
    }

    /// The same with these options of `theta group init`.
    pub(crate) fn made_with(options: &[&str]) -> Self {
        let nodes =
            options.iter().position(|option| *option == "--nodes").map_or(4, |at| options[at + 1].parse().unwrap());
        let (dir, base) = (TempDir::new().unwrap(), base_port(nodes));
        theta_in(dir.path(), &[&["group", "init", "--base-port", &base.to_string()], options].concat()).ok();
        Self { dir, base, nodes: (0..nodes).map(|_| None).collect() }
    }

    /// Room for four nodes that are still to be made, in the directories where those of a group are.
    pub(crate) fn unmade() -> Self {
        let (dir, base) = (TempDir::new().unwrap(), base_port(4));
        fs::create_dir(dir.path().join("theta-group")).unwrap();
        Self { dir, base, nodes: (0..4).map(|_| None).collect() }
    }

    /// The ports of a node: for nodes, for clients.
    pub(crate) fn ports(&self, node: u16) -> (u16, u16) {
        (self.base + 10 * node, self.base + 10 * node + 1)
    }

    /// Room for one more node.
    pub(crate) fn grow(&mut self) {
        self.nodes.push(None);
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u16> + use<> {
        1..=u16::try_from(self.nodes.len()).unwrap()
    }

    /// The same, started.
    pub(crate) fn started() -> Self {
        let mut group = Self::made();
        group.start_all();
        group
    }

    pub(crate) fn start_all(&mut self) {
        self.numbers().for_each(|node| self.start(node));
        self.numbers().for_each(|node| self.await_up(node));
        self.await_peers();
    }

    /// Waits until all nodes are connected to each other, for a while: some groups never are.
    pub(crate) fn await_peers(&self) {
        let (others, deadline) = (self.nodes.len() - 1, Instant::now() + Duration::from_secs(15));
        let is_peer = |line: &&str| line.starts_with("theta_peer_connected{") && line.ends_with(" 1");
        let peers = |node| self.told(node, "/metrics").lines().filter(is_peer).count();
        while self.numbers().any(|node| peers(node) < others) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A group for all tests that do not change it.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Group> = OnceLock::new();
        SHARED.get_or_init(Self::started)
    }

    /// The working directory of commands; the group is in `theta-group` below it, where `theta` looks by default.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn node_dir(&self, node: u16) -> PathBuf {
        self.path().join(format!("theta-group/node-{node}"))
    }

    /// Runs `theta` beside the group.
    pub(crate) fn theta(&self, arguments: &[&str]) -> Run {
        theta_in(self.path(), arguments)
    }

    /// A file of the test.
    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        fs::write(self.path().join(name), contents).unwrap();
        name.to_owned()
    }

    /// Adds to a file of a node's.
    pub(crate) fn append(&self, node: u16, file: &str, text: &str) {
        let path = self.node_dir(node).join(file);
        let old = fs::read_to_string(&path).unwrap();
        fs::write(path, old + text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path().join(name)).unwrap()
    }

    pub(crate) fn start(&mut self, node: u16) {
        self.start_by(node, command());
    }

    /// Starts a node by a command that runs the program with whatever follows.
    pub(crate) fn start_by(&mut self, node: u16, mut program: Command) {
        let log = File::options().create(true).append(true).open(self.log_path(node)).unwrap();
        let child = program
            .args(["node", "run", "--stop-on-eof", "--dir"])
            .arg(self.node_dir(node))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.nodes[usize::from(node) - 1] = Some(child);
    }

    /// Waits until a node takes connections.
    pub(crate) fn await_up(&self, node: u16) {
        let port = self.base + 10 * node + 1;
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(Instant::now() < deadline, "node {node} does not come up: {}", self.log(node));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a node has put its changed policy in force: it looks at the file every second or so.
    #[track_caller]
    pub(crate) fn await_changed_policy(&self, node: u16) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.told(node, "/metrics").contains("theta_policy_reloads_total{result=\"changed\"} ") {
            assert!(Instant::now() < deadline, "node {node} does not take its new policy");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A node's answer about its readiness.
    pub(crate) fn ready(&self, node: u16) -> String {
        self.told(node, "/readyz")
    }

    /// What a node tells the monitoring system.
    pub(crate) fn told(&self, node: u16, what: &str) -> String {
        let mut answer = String::new();
        let request = format!("GET {what} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let asked = TcpStream::connect((Ipv4Addr::LOCALHOST, self.base + 10 * node + 2)).and_then(|mut stream| {
            stream.write_all(request.as_bytes())?;
            stream.read_to_string(&mut answer)
        });
        asked.map_or_else(|error| error.to_string(), |_| answer)
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self, node: u16) {
        let mut child = self.nodes[usize::from(node) - 1].take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// The process of a node.
    pub(crate) fn child(&mut self, node: u16) -> &mut Child {
        self.nodes[usize::from(node) - 1].as_mut().unwrap()
    }

    pub(crate) fn log(&self, node: u16) -> String {
        fs::read_to_string(self.log_path(node)).unwrap_or_default()
    }

    fn log_path(&self, node: u16) -> PathBuf {
        self.path().join(format!("node-{node}.log"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for child in self.nodes.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

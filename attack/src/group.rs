//! A group of real node processes on loopback ports, made with the product's own commands.

mod tools;

use std::{
    fs::{self, OpenOptions},
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tempfile::TempDir;
use theta_client::{Client, ClientOptions};
use theta_names::NodeId;
use theta_network::{
    Identity,
    group::{GroupFile, GroupNode},
};

use crate::{
    attack::{Shape, Trouble},
    process,
    until::until,
};

/// n and k of a group that is attacked, unless an attack says otherwise.
pub(crate) const NODES: u16 = 4;
/// See [`NODES`].
pub(crate) const THRESHOLD: u16 = 2;
/// A key of the group that signs without nonces (BLS).
pub(crate) const SIGNER: &str = "sign";
/// A key that honest clients do not use, and the signing rule that gives it slots.
pub(crate) const SLOTS: &str = "beacon";
/// See [`SLOTS`].
pub(crate) const SLOTS_RULE: &str = "[[signing]]\nname = \"heights\"\nkeys = [\"beacon\"]\nslot = \"claimed\"\n";
/// A client that the policy knows by a token and gives no rights. Because of it the nodes accept connections without a
/// certificate, as they do wherever tokens are used.
const ROBOT: &str = "robot";
/// How long an honest client waits for one answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Node processes and their directory. Dropping it kills them all.
pub(crate) struct Group {
    theta: PathBuf,
    dir: PathBuf,
    /// The directory is removed with it, unless it is kept.
    _temporary: Option<TempDir>,
    file: GroupFile,
    base: u16,
    children: Vec<(u16, Child)>,
    /// The CPU time of nodes that were killed.
    spent: Duration,
}

impl Group {
    /// Makes a group, starts its nodes, and returns when they serve.
    pub(crate) async fn create(theta: &Path, keep: Option<&Path>, name: &str, shape: Shape) -> Result<Self, Trouble> {
        let (parent, temporary) = match keep {
            Some(keep) => {
                fs::create_dir_all(keep)?;
                (keep.to_owned(), None)
            }
            None => {
                let temporary = tempfile::Builder::new().prefix("theta-attack-").tempdir()?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        let dir = parent.join(name);
        let base = free_base(shape.nodes)?;
        let (nodes, threshold, port) = (shape.nodes.to_string(), shape.threshold.to_string(), base.to_string());
        let mut init = Command::new(theta);
        init.args(["group", "init", "--nodes", &nodes, "--threshold", &threshold, "--base-port", &port]);
        run(init.arg("--dir").arg(&dir))?;
        let mut token = Command::new(theta);
        token.args(["token", "new", "--name", ROBOT, "--output"]).arg(dir.join("robot.token"));
        let lines = run(&mut token)?;
        let file = GroupFile::load(&dir.join("group.toml")).map_err(|error| Trouble::new(error.to_string()))?;
        for node in 1..=shape.nodes {
            let policy = dir.join(format!("node-{node}/policy.toml"));
            let text = fs::read_to_string(&policy)?;
            fs::write(&policy, format!("{text}\n{lines}"))?;
        }
        let mut group = Self {
            theta: theta.to_owned(),
            dir,
            _temporary: temporary,
            file,
            base,
            children: Vec::new(),
            spent: Duration::ZERO,
        };
        for node in group.numbers() {
            group.start(node)?;
        }
        group.serves().await?;
        Ok(group)
    }

    /// Starts a node that is not running.
    pub(crate) fn start(&mut self, node: u16) -> Result<(), Trouble> {
        self.start_by(node, Command::new(&self.theta))
    }

    /// Starts a node to which writing beyond a limit of its files is an error, as on a full disk; otherwise it would be
    /// killed.
    pub(crate) fn start_ignoring_limits(&mut self, node: u16) -> Result<(), Trouble> {
        let mut shell = Command::new("sh");
        // Ignored signals stay ignored in the program that replaces the shell.
        shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(&self.theta);
        self.start_by(node, shell)
    }

    fn start_by(&mut self, node: u16, mut program: Command) -> Result<(), Trouble> {
        let log = OpenOptions::new().create(true).append(true).open(self.log(node))?;
        let child = program
            .args(["node", "run", "--stop-on-eof", "--dir"])
            .arg(self.node_dir(node))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        self.children.push((node, child));
        Ok(())
    }

    /// Kills a node at once (SIGKILL).
    pub(crate) fn kill(&mut self, node: u16) -> Result<(), Trouble> {
        let Some(place) = self.children.iter().position(|(number, _)| *number == node) else { return Ok(()) };
        let (_, mut child) = self.children.swap_remove(place);
        self.spent += process::cpu_time(child.id());
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Waits until the group signs.
    pub(crate) async fn serves(&self) -> Result<(), Trouble> {
        let client = self.client()?;
        let signed = until(Duration::from_secs(60), || client.sign(SIGNER, "is anybody there?".into())).await;
        signed.map(drop).map_err(|error| Trouble::new(format!("the group does not come up: {error}")))
    }

    /// An honest client with its own connections.
    pub(crate) fn client(&self) -> Result<Client, Trouble> {
        self.client_maker()()
    }

    /// An honest client that waits so long for each answer.
    pub(crate) fn patient_client(&self, patience: Duration) -> Result<Client, Trouble> {
        open(&self.dir.join("client"), patience)
    }

    /// Makes honest clients.
    pub(crate) fn client_maker(&self) -> impl Fn() -> Result<Client, Trouble> + Send + Sync + 'static {
        let folder = self.dir.join("client");
        move || open(&folder, PATIENCE)
    }

    /// The certificate of the client that may do everything.
    pub(crate) fn client_identity(&self) -> Result<Identity, Trouble> {
        let folder = self.dir.join("client");
        identity(&folder.join("client.crt"), &folder.join("client.key"))
    }

    /// The certificate of a member.
    pub(crate) fn member_identity(&self, node: u16) -> Result<Identity, Trouble> {
        let folder = self.node_dir(node);
        identity(&folder.join("node.crt"), &folder.join("node.key"))
    }

    /// A node's addresses and certificate.
    pub(crate) fn node(&self, node: u16) -> Result<&GroupNode, Trouble> {
        let found = NodeId::try_from(node).ok().and_then(|id| self.file.node(id));
        found.ok_or_else(|| Trouble::new(format!("there is no node {node}")))
    }

    /// The group file.
    pub(crate) const fn file(&self) -> &GroupFile {
        &self.file
    }

    /// The numbers of all nodes.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u16> + use<> {
        1..=u16::try_from(self.file.nodes().len()).unwrap_or_default()
    }

    /// All nodes.
    pub(crate) fn nodes(&self) -> &[GroupNode] {
        self.file.nodes()
    }

    /// The directory of a node, with everything on its disk.
    pub(crate) fn node_dir(&self, node: u16) -> PathBuf {
        self.dir.join(format!("node-{node}"))
    }

    /// The port of a node's metrics, on loopback.
    pub(crate) const fn metrics_port(&self, node: u16) -> u16 {
        // The rule of --base-port: peers, clients, metrics.
        self.base + 10 * node + 2
    }

    /// The file of a node's log.
    pub(crate) fn log(&self, node: u16) -> PathBuf {
        self.dir.join(format!("node-{node}.log"))
    }

    /// The bytes of all logs.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.numbers().filter_map(|node| fs::metadata(self.log(node)).ok()).map(|log| log.len()).sum()
    }

    /// The CPU time of all nodes, including those that were killed.
    pub(crate) fn cpu_time(&self) -> Duration {
        self.spent + self.children.iter().map(|(_, child)| process::cpu_time(child.id())).sum::<Duration>()
    }

    /// The resident memory of all running nodes, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.children.iter().map(|(_, child)| process::memory(child.id())).sum()
    }

    /// The process id of a running node.
    pub(crate) fn pid(&self, node: u16) -> Result<u32, Trouble> {
        let child = self.children.iter().find(|(number, _)| *number == node);
        child.map(|(_, child)| child.id()).ok_or_else(|| Trouble::new(format!("node {node} does not run")))
    }

    /// The nodes that ended by themselves.
    pub(crate) fn ended(&mut self) -> Vec<u16> {
        let ended = |child: &mut Child| matches!(child.try_wait(), Ok(Some(_)));
        self.children.iter_mut().filter_map(|(node, child)| ended(child).then_some(*node)).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Kill all first, then collect them. Errors are ignored: a node may have ended by itself.
        for (_, child) in &mut self.children {
            let _ = child.kill();
        }
        for (_, child) in &mut self.children {
            let _ = child.wait();
        }
    }
}

fn identity(certificate: &Path, key: &Path) -> Result<Identity, Trouble> {
    Identity::load(certificate, key).map_err(|error| Trouble::new(error.to_string()))
}

/// Runs one of the product's commands to its end and returns its standard output.
fn run(command: &mut Command) -> Result<String, Trouble> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Trouble::new(format!("{command:?} failed: {}", words.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A first port such that all ports by the rule of `--base-port` are free. It is below the range from which systems take
/// ports for outgoing connections, so the ports stay free until the nodes bind them. No two groups of this process have a port in
/// common, in whichever order their nodes start and are killed.
fn free_base(nodes: u16) -> Result<u16, Trouble> {
    /// Ports of one group, the range of all, and how many groups there is room for.
    const BLOCK: u16 = 100;
    const FIRST: u16 = 12_000;
    const BLOCKS: u32 = 190;
    /// Which block comes next, counted from one that is drawn once, so that two processes are unlikely to meet.
    static NEXT: OnceLock<AtomicU32> = OnceLock::new();
    let drawn = getrandom::u32().map_err(|error| Trouble::new(error.to_string()))?;
    let next = NEXT.get_or_init(|| AtomicU32::new(drawn % BLOCKS));
    for _ in 0..BLOCKS {
        let block = u16::try_from(next.fetch_add(1, Ordering::Relaxed) % BLOCKS).unwrap_or_default();
        let base = FIRST + block * BLOCK;
        let mut ports = (1..=nodes).flat_map(|node| (0..3).map(move |offset| base + 10 * node + offset));
        if ports.all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()) {
            return Ok(base);
        }
    }
    Err(Trouble::new("no free loopback ports found between 12000 and 31000"))
}

/// The client of a client folder, with its own connections.
fn open(folder: &Path, patience: Duration) -> Result<Client, Trouble> {
    let options = ClientOptions { timeout: patience, connect_timeout: PATIENCE, ..ClientOptions::default() };
    Ok(Client::open_with(folder, options)?)
}

//! A group of real node processes on this machine.

use std::{
    fs::{self, File, OpenOptions},
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rand_core::Rng;
use theta::{
    exit::{self, Failure},
    group::{
        self,
        plan::{Addresses, Plan},
    },
};

/// What becomes of the nodes when this process ends, however it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// They end with it: their standard input closes when it dies.
    Tied,
    /// They live on if [`Cluster::release`] is reached.
    Kept,
}

/// Where the processes of nodes run, and how they reach each other.
pub trait Site: Send + Sync {
    /// Addresses for so many nodes, on which nobody listens.
    fn addresses(&self, nodes: u16) -> Result<Vec<Addresses>, Failure>;

    /// Starts the process of a node.
    fn spawn(&self, node: u16, command: &mut Command) -> io::Result<Child>;
}

/// This machine, over its loopback device.
#[derive(Clone, Copy, Debug)]
pub struct Loopback;

impl Site for Loopback {
    fn addresses(&self, nodes: u16) -> Result<Vec<Addresses>, Failure> {
        free_addresses(nodes)
    }

    fn spawn(&self, _node: u16, command: &mut Command) -> io::Result<Child> {
        command.spawn()
    }
}

/// Node processes and their directory. Dropping it kills them all.
pub struct Cluster {
    site: Box<dyn Site>,
    pub(crate) program: PathBuf,
    dir: PathBuf,
    lifetime: Lifetime,
    nodes: Vec<NodeProcess>,
}

struct NodeProcess {
    number: u16,
    api: SocketAddr,
    metrics: SocketAddr,
    child: Option<Child>,
}

impl Cluster {
    /// Makes the group's directory, which must not exist, on free loopback ports. Starts nothing yet. `program` is what the
    /// nodes will run: `theta`, or one that has its command `node run`.
    pub fn create(program: PathBuf, dir: &Path, plan: &Plan, lifetime: Lifetime) -> Result<Self, Failure> {
        Self::create_at(Box::new(Loopback), program, dir, plan, lifetime)
    }

    /// The same elsewhere. Clients must reach the addresses of that site, too.
    pub fn create_at(
        site: Box<dyn Site>,
        program: PathBuf,
        dir: &Path,
        plan: &Plan,
        lifetime: Lifetime,
    ) -> Result<Self, Failure> {
        let addresses = site.addresses(plan.nodes())?;
        group::create(dir, plan, &addresses)?;
        let node = |(number, addresses): (u16, &Addresses)| NodeProcess {
            number,
            api: addresses.api,
            metrics: addresses.metrics,
            child: None,
        };
        let nodes = (1..=plan.nodes()).zip(&addresses).map(node).collect();
        Ok(Self { site, program, dir: dir.to_owned(), lifetime, nodes })
    }

    /// What `--client` takes.
    pub fn client_dir(&self) -> PathBuf {
        self.dir.join("client")
    }

    /// Starts every node.
    pub fn start_all(&mut self) -> Result<(), Failure> {
        let numbers: Vec<u16> = self.nodes.iter().map(|node| node.number).collect();
        numbers.into_iter().try_for_each(|number| self.start(number))
    }

    /// Starts one node that is not running.
    pub fn start(&mut self, number: u16) -> Result<(), Failure> {
        self.start_as(number, &["node", "run"])
    }

    /// The same by another command of the program, which takes the options of `theta node run`.
    pub fn start_as(&mut self, number: u16, words: &[&str]) -> Result<(), Failure> {
        let log_path = self.log(number);
        let log = OpenOptions::new().create(true).append(true).open(&log_path);
        let log: File = log.map_err(|error| Failure::writing(&log_path, &error))?;
        let mut command = Command::new(&self.program);
        command.args(words).arg("--dir").arg(self.node_dir(number)).stdout(Stdio::null()).stderr(log);
        match self.lifetime {
            Lifetime::Tied => command.arg("--stop-on-eof").stdin(Stdio::piped()),
            // Out of the terminal's foreground group, so that a later Ctrl-C there is not meant for them.
            Lifetime::Kept => command.stdin(Stdio::null()).process_group(0),
        };
        let child = self.site.spawn(number, &mut command).map_err(|error| {
            Failure::Failed(format!("cannot start the process of node {number}: {}", exit::reason(&error)))
        })?;
        if let Some(node) = self.node(number) {
            node.child = Some(child);
        }
        Ok(())
    }

    /// Ends one node as a power failure would: SIGKILL.
    pub fn kill(&mut self, number: u16) -> Result<(), Failure> {
        let Some(mut child) = self.node(number).and_then(|node| node.child.take()) else { return Ok(()) };
        let killed = child.kill().and_then(|()| child.wait());
        killed.map(drop).map_err(|error| Failure::Failed(format!("cannot kill node {number}: {error}")))
    }

    /// Waits until every started node takes connections from clients.
    pub async fn listening(&mut self, patience: Duration) -> Result<(), Failure> {
        let deadline = Instant::now() + patience;
        let started: Vec<(u16, SocketAddr)> =
            self.nodes.iter().filter(|node| node.child.is_some()).map(|node| (node.number, node.api)).collect();
        for (number, api) in started {
            while tokio::net::TcpStream::connect(api).await.is_err() {
                if let Some(status) = self.exited(number) {
                    return Err(Failure::Failed(format!(
                        "node {number} ended ({status}): {}",
                        self.last_words(number)
                    )));
                }
                if Instant::now() > deadline {
                    let log = self.log(number);
                    return Err(Failure::NoAnswer(format!("node {number} does not come up: see {}", log.display())));
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        Ok(())
    }

    /// The process ids of the running nodes, with their numbers.
    pub fn pids(&self) -> Vec<(u16, u32)> {
        self.nodes.iter().filter_map(|node| Some((node.number, node.child.as_ref()?.id()))).collect()
    }

    /// Where every node serves its metrics, in the order of their numbers.
    pub fn metrics(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.metrics).collect()
    }

    /// Lets the nodes run on without this process.
    pub fn release(mut self) {
        if self.lifetime == Lifetime::Kept {
            for node in &mut self.nodes {
                node.child = None;
            }
        }
    }

    /// Where a node writes what it has to say.
    pub fn log(&self, number: u16) -> PathBuf {
        self.dir.join(format!("node-{number}.log"))
    }

    /// The directories of all nodes.
    pub fn node_dirs(&self) -> Vec<PathBuf> {
        self.nodes.iter().map(|node| self.node_dir(node.number)).collect()
    }

    fn node_dir(&self, number: u16) -> PathBuf {
        self.dir.join(format!("node-{number}"))
    }

    fn node(&mut self, number: u16) -> Option<&mut NodeProcess> {
        self.nodes.iter_mut().find(|node| node.number == number)
    }

    fn exited(&mut self, number: u16) -> Option<ExitStatus> {
        self.node(number)?.child.as_mut()?.try_wait().ok()?
    }

    fn last_words(&self, number: u16) -> String {
        let log = fs::read_to_string(self.log(number)).unwrap_or_default();
        log.lines().last().unwrap_or("it left no word").to_owned()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let mut children: Vec<Child> = self.nodes.iter_mut().filter_map(|node| node.child.take()).collect();
        // All at once, then collect them: nothing can be done about one that has ended by itself.
        for child in &mut children {
            let _ = child.kill();
        }
        for mut child in children {
            let _ = child.wait();
        }
    }
}

/// The running program, for [`Cluster::create`] of programs that have `node run` themselves.
pub fn this_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(Failure::internal)
}

/// Addresses that nobody listens on now. Outside the range that systems take the ports of outgoing connections from, so
/// that they are still free when the nodes bind them a moment later.
fn free_addresses(nodes: u16) -> Result<Vec<Addresses>, Failure> {
    // Held until all are found, so that none is found twice.
    let mut held = Vec::new();
    let found = (0..nodes).map(|_| {
        Some(Addresses {
            peer: free_address(&mut held)?,
            api: free_address(&mut held)?,
            metrics: free_address(&mut held)?,
        })
    });
    found
        .collect::<Option<_>>()
        .ok_or_else(|| Failure::Failed("no free loopback ports found between 12000 and 32000".into()))
}

fn free_address(held: &mut Vec<TcpListener>) -> Option<SocketAddr> {
    const ATTEMPTS: usize = 1_000;
    let mut rng = theta::random::generator().ok()?;
    (0..ATTEMPTS).find_map(|_| {
        let offset = u16::try_from(rng.next_u32() % 20_000).ok()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 12_000 + offset)).ok()?;
        let address = listener.local_addr().ok()?;
        held.push(listener);
        Some(address)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_distinct() {
        let addresses = free_addresses(20).unwrap();
        let mut all: Vec<_> = addresses.iter().flat_map(|a| [a.peer, a.api, a.metrics]).collect();
        assert!(all.iter().all(|address| TcpListener::bind(address).is_ok()));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 60);
    }
}

//! Faults of the nodes, and when they happen.

use std::{fmt, process::Command, time::Duration};

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use theta::exit::Failure;
use theta_cluster::Cluster;
use tokio::time::{self, Instant};

use super::SoakArgs;

/// A fault of one node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// SIGKILL: the node loses what is not on its disk.
    Killed(u16),
    /// SIGSTOP: connections stay open and nobody answers.
    Frozen(u16),
}

/// The next event.
pub(super) enum Plague {
    /// The fault begins.
    Begins(Fault),
    /// The fault ends.
    Ends(Fault),
}

impl Fault {
    pub(super) fn befall(self, cluster: &mut Cluster) -> Result<(), Failure> {
        match self {
            Self::Killed(node) => cluster.kill(node),
            Self::Frozen(node) => signal(cluster, node, "STOP"),
        }
    }

    pub(super) fn end(self, cluster: &mut Cluster) -> Result<(), Failure> {
        match self {
            Self::Killed(node) => cluster.start(node),
            Self::Frozen(node) => signal(cluster, node, "CONT"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed(node) => write!(f, "node {node} killed"),
            Self::Frozen(node) => write!(f, "node {node} frozen"),
        }
    }
}

/// Decides which node is away and when; at most one is at a time.
pub(super) struct Faults {
    rng: ChaCha20Rng,
    nodes: u16,
    spare: u16,
    every: Duration,
    down: Duration,
    /// The number of faults so far.
    count: u32,
    due: Instant,
    current: Option<Fault>,
}

impl Faults {
    pub(super) fn new(args: &SoakArgs, begin: Instant) -> Result<Self, Failure> {
        let rng = theta::random::generator()?;
        let SoakArgs { nodes, spare, every, down, .. } = *args;
        Ok(Self { rng, nodes, spare, every, down, count: 0, due: begin + every, current: None })
    }

    /// Waits for the next event. Dropping the future has no effect.
    pub(super) async fn next(&mut self) -> Result<Plague, Failure> {
        time::sleep_until(self.due).await;
        if let Some(fault) = self.current.take() {
            self.due += self.every.saturating_sub(self.down);
            return Ok(Plague::Ends(fault));
        }
        let victims = u32::from(self.nodes.saturating_sub(self.spare)).max(1);
        let victim = u16::try_from(self.rng.next_u32() % victims).map_err(Failure::internal)? + self.spare + 1;
        let fault = if self.count.is_multiple_of(2) { Fault::Killed(victim) } else { Fault::Frozen(victim) };
        self.count += 1;
        self.due += self.down;
        self.current = Some(fault);
        Ok(Plague::Begins(fault))
    }

    /// Brings back the node that is away.
    pub(super) fn end_all(&mut self, cluster: &mut Cluster) -> Result<(), Failure> {
        self.current.take().map_or(Ok(()), |fault| fault.end(cluster))
    }
}

fn signal(cluster: &Cluster, node: u16, signal: &str) -> Result<(), Failure> {
    let Some((_, pid)) = cluster.pids().into_iter().find(|(number, _)| *number == node) else { return Ok(()) };
    let status = Command::new("kill").arg(format!("-{signal}")).arg(pid.to_string()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Failed(format!("kill -{signal} of node {node} failed: {status}"))),
        Err(error) => Err(Failure::Failed(format!("cannot run `kill`: {error}"))),
    }
}

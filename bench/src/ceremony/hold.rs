//! Lets a group make one key, and counts what that costs.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use theta::{connect::Session, exit::Failure};
use theta_client::{CeremonyEnd, KeyChange};
use theta_cluster::Cluster;
use theta_schemes::{Delivery, Suite};
use tokio::time::Instant;

use crate::{
    lab::usage::{self, Traffic},
    process,
    wan::Reach,
};

/// How long the nodes may take to come up and connect.
pub(crate) const GETTING_READY: Duration = Duration::from_secs(300);

/// What one key cost.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) seconds: f64,
    pub(crate) outcome: String,
    /// Whether there is a key.
    pub(crate) made: bool,
    /// CPU of the nodes: the busiest, all together.
    pub(crate) cpu_busiest_seconds: f64,
    pub(crate) cpu_all_seconds: f64,
    /// The most memory that a node has had so far.
    pub(crate) peak_memory_bytes: u64,
    /// Of the node that sent most, and of all.
    pub(crate) sent_most_bytes: u64,
    pub(crate) sent_all_bytes: u64,
    pub(crate) messages_all: u64,
    /// The messages between custodians and their bytes, by what they are about.
    pub(crate) about: BTreeMap<String, (u64, u64)>,
}

/// A key to be made by all nodes of a group.
pub(crate) struct Wanted<'a> {
    pub(crate) name: &'a str,
    pub(crate) suite: Suite,
    pub(crate) nodes: u16,
    pub(crate) threshold: u16,
}

/// Waits until every node is connected to every other one.
pub(crate) fn connected(cluster: &Cluster, reach: &Reach, nodes: u16, started: Instant) -> Result<(), Failure> {
    let wanted = usize::from(nodes.saturating_sub(1));
    for (node, address) in (1..).zip(cluster.metrics()) {
        while usage::traffic(reach, node, address).is_none_or(|traffic| traffic.connected < wanted) {
            if started.elapsed() > GETTING_READY {
                return Err(Failure::NoAnswer("the nodes do not connect to each other".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(if started.elapsed() < Duration::from_secs(1) {
                10
            } else {
                100
            }));
        }
    }
    Ok(())
}

/// Makes a key.
pub(crate) fn hold(wanted: &Wanted<'_>, session: &Session, cluster: &Cluster, reach: &Reach) -> Result<Held, Failure> {
    let key = wanted.name.parse().map_err(Failure::internal)?;
    let holders = (1..=wanted.nodes).collect();
    let change =
        KeyChange::Create { key, suite: wanted.suite.into(), delivery: Delivery::All, k: wanted.threshold, holders };
    let (sent_before, cpu_before) = (sent(cluster, reach), cpu(cluster));
    let started = Instant::now();
    let outcome = session.block_on(session.client().hold(change, |_| {}))?;
    let seconds = started.elapsed().as_secs_f64();
    // The nodes that were not needed for the answer may still be at work.
    std::thread::sleep(Duration::from_millis(500));
    let used = cpu(cluster).into_iter().zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
    let (busiest, all) = used.fold((Duration::ZERO, Duration::ZERO), |(most, sum), one| (most.max(one), sum + one));
    let mut held = Held {
        seconds,
        made: matches!(outcome.end, CeremonyEnd::Activated { .. }),
        outcome: match outcome.end {
            CeremonyEnd::Activated { .. } => format!("made by {} nodes", outcome.agreed.len()),
            CeremonyEnd::Recovered => "recovered".to_owned(),
            CeremonyEnd::Aborted => "aborted".to_owned(),
            CeremonyEnd::Cancelled => "cancelled".to_owned(),
            CeremonyEnd::Failed(why) => why,
        },
        cpu_busiest_seconds: busiest.as_secs_f64(),
        cpu_all_seconds: all.as_secs_f64(),
        peak_memory_bytes: peak_memory(cluster),
        sent_most_bytes: 0,
        sent_all_bytes: 0,
        messages_all: 0,
        about: BTreeMap::new(),
    };
    for (after, before) in sent(cluster, reach).into_iter().zip(sent_before) {
        let bytes = after.bytes.saturating_sub(before.bytes);
        held.sent_most_bytes = held.sent_most_bytes.max(bytes);
        held.sent_all_bytes = held.sent_all_bytes.saturating_add(bytes);
        for (about, (messages, bytes)) in after.about {
            let (messages_before, bytes_before) = before.about.get(&about).copied().unwrap_or_default();
            let sum = held.about.entry(about).or_default();
            sum.0 += messages.saturating_sub(messages_before);
            sum.1 += bytes.saturating_sub(bytes_before);
        }
        held.messages_all = held.messages_all.saturating_add(after.messages.saturating_sub(before.messages));
    }
    Ok(held)
}

/// What every node's metrics say.
pub(crate) fn sent(cluster: &Cluster, reach: &Reach) -> Vec<Traffic> {
    let nodes = (1..).zip(cluster.metrics());
    nodes.map(|(node, address)| usage::traffic(reach, node, address).unwrap_or_default()).collect()
}

/// The CPU time of every node so far.
pub(crate) fn cpu(cluster: &Cluster) -> Vec<Duration> {
    cluster.pids().into_iter().map(|(_, pid)| theta_cluster::cpu_time(pid).unwrap_or_default()).collect()
}

/// The most memory that any node has had.
pub(crate) fn peak_memory(cluster: &Cluster) -> u64 {
    cluster.pids().into_iter().filter_map(|(_, pid)| process::peak_memory(pid)).max().unwrap_or(0)
}

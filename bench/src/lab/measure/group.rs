//! A group of node processes that is measured.

use std::{
    fs::OpenOptions,
    io::Write,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use theta::{
    connect::Session,
    exit::Failure,
    group::plan::{KeySpec, Plan},
};
use theta_client::Client;
use theta_cluster::{Cluster, Lifetime, this_program};
use theta_schemes::Suite;
use tokio::time::Instant;

use super::{collector::Collector, load, usage};
use crate::{
    ceremony::{self, GETTING_READY, Held, Wanted},
    drive,
    lab::protocol::{Loaded, Order, Started},
    requests::Pool,
    wan::Reach,
};

/// For so long a group that does nothing is watched.
const IDLE: Duration = Duration::from_secs(2);
/// How long a ceremony may take.
const CEREMONY: Duration = Duration::from_secs(300);

/// What a group is made of.
pub(super) struct Making {
    pub(super) nodes: u16,
    pub(super) threshold: u16,
    pub(super) suites: Vec<Suite>,
    pub(super) delivery: theta_names::Delivery,
    pub(super) traced: Option<u32>,
    pub(super) patience: Duration,
}

/// Node processes, and their client in this process.
pub(super) struct Group {
    cluster: Cluster,
    session: Session,
    collector: Option<Collector>,
    reach: Reach,
    making: Making,
    started: Started,
    /// What each node uses when it does nothing, in microseconds a second.
    idle_us_per_s: Vec<f64>,
    ceremonies: u32,
}

impl Group {
    /// Makes a group, starts it, and waits until it is ready.
    /// `home` is an empty directory.
    pub(super) fn start(making: Making, reach: Reach, home: &Path) -> Result<Self, Failure> {
        let key = |suite: &Suite| KeySpec::of(*suite)?.delivered(making.delivery);
        let keys = making.suites.iter().map(key).collect::<Result<Vec<_>, _>>()?;
        let dealt = keys.len();
        let plan = Plan::new(making.nodes, making.threshold, keys)?;
        let dir = home.join("group");
        let mut cluster = Cluster::create_at(reach.site(), this_program()?, &dir, &plan, Lifetime::Tied)?;
        let collector = making.traced.map(|one_in| trace(&cluster, &reach, making.nodes, one_in)).transpose()?;
        let session = Session::open_for(&cluster.client_dir(), making.patience, CEREMONY)?;
        let began = Instant::now();
        cluster.start_all()?;
        session.block_on(cluster.listening(GETTING_READY))?;
        ceremony::connected(&cluster, &reach, making.nodes, began)?;
        let connected_seconds = began.elapsed().as_secs_f64();
        let used = ceremony::cpu(&cluster);
        let started = Started {
            connected_seconds,
            cpu_busiest_seconds: used.iter().max().copied().unwrap_or_default().as_secs_f64(),
            cpu_all_seconds: used.iter().sum::<Duration>().as_secs_f64(),
            memory_bytes: ceremony::peak_memory(&cluster),
        };
        session.block_on(drive::settle(session.client(), dealt))?;
        let before = ceremony::cpu(&cluster);
        std::thread::sleep(IDLE);
        let used = ceremony::cpu(&cluster).into_iter().zip(before);
        let idle = used.map(|(after, before)| after.saturating_sub(before).as_secs_f64() * 1e6 / IDLE.as_secs_f64());
        let idle_us_per_s = idle.collect();
        Ok(Self { cluster, session, collector, reach, making, started, idle_us_per_s, ceremonies: 0 })
    }

    /// What it took until all were connected.
    pub(super) const fn started(&self) -> Started {
        self.started
    }

    /// Makes a key.
    pub(super) fn hold(&mut self, suite: Suite) -> Result<Held, Failure> {
        self.ceremonies += 1;
        let name = format!("made-{}", self.ceremonies);
        let (nodes, threshold) = (self.making.nodes, self.making.threshold);
        ceremony::hold(&Wanted { name: &name, suite, nodes, threshold }, &self.session, &self.cluster, &self.reach)
    }

    /// Sends requests, and counts what they cost.
    pub(super) fn load(&self, order: &Order) -> Result<Loaded, Failure> {
        let Order::Load { suite, operation, payload, pace, milliseconds, traced } = order else {
            return Err(Failure::internal("not a load"));
        };
        let key = self.session.keyring().named(suite)?;
        let count = load::requests(*pace, *milliseconds, *payload);
        let pool = Arc::new(Pool::make(*operation, &key, *payload, count)?);
        self.session.block_on(drive::warm_up(self.client(), &pool))?;
        let begin = now();
        let before = self.usage();
        let run = self.session.block_on(drive::run(
            self.client(),
            &pool,
            load::drive_pace(*pace),
            Duration::from_millis(*milliseconds),
        ))?;
        let client = theta_cluster::cpu_time(std::process::id()).unwrap_or_default();
        let busy = usage::machine_busy();
        let ended = Instant::now();
        // Nodes whose answers were not needed may still be at work for the last requests.
        std::thread::sleep(Duration::from_millis(300));
        let after = load::Usage { client, busy, at: ended, ..self.usage() };
        let parts =
            self.collector.as_ref().filter(|_| *traced).map(|collector| collector.drain(begin)).unwrap_or_default();
        let spans = load::Spans { before: &before, after: &after, idle_us_per_s: &self.idle_us_per_s };
        Ok(load::loaded(&run, &spans, &parts, suite, *pace))
    }

    fn client(&self) -> &Client {
        self.session.client()
    }

    fn usage(&self) -> load::Usage {
        let memory = self.cluster.pids().into_iter().map(|(_, pid)| crate::process::peak_memory(pid).unwrap_or(0));
        load::Usage {
            memory: memory.collect(),
            traffic: ceremony::sent(&self.cluster, &self.reach),
            nodes: ceremony::cpu(&self.cluster),
            client: theta_cluster::cpu_time(std::process::id()).unwrap_or_default(),
            busy: usage::machine_busy(),
            at: Instant::now(),
        }
    }
}

/// Starts a collector, and tells the nodes, which do not run yet, to export to it.
fn trace(cluster: &Cluster, reach: &Reach, nodes: u16, one_in: u32) -> Result<Collector, Failure> {
    let collector = Collector::start(reach, nodes)?;
    for (dir, address) in cluster.node_dirs().iter().zip(collector.addresses()) {
        let path = dir.join("node.toml");
        let file = OpenOptions::new().append(true).open(&path);
        let written =
            file.and_then(|mut file| write!(file, "\n[traces]\ncollector = \"{address}\"\none_in = {one_in}\n"));
        written.map_err(|error| Failure::writing(&path, &error))?;
    }
    Ok(collector)
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

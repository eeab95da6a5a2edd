//! The story, act by act.

use std::{path::Path, time::Duration};

use theta::{
    connect, culprits,
    exit::Failure,
    group::plan::{KeySpec, Plan},
    keys::Keyring,
    units::{self, Bytes},
};
use theta_client::{Client, ClientOptions};
use theta_cluster::{Cluster, Show};
use theta_wire::v1::PeerState;
use tokio::time::{self, Instant};

use super::{
    LIAR, PATIENCE,
    material::Material,
    show::Row,
    work::{Operation, Tally, Worker},
};

/// A liar is named when its share is among the first k at some node; that takes a few requests, never this many.
const ATTEMPTS_TO_NAME: u16 = 300;

/// Everything that the acts have in common.
pub(crate) struct Stage<'a> {
    pub(crate) show: &'a Show,
    pub(crate) material: &'a Material,
    pub(crate) plan: &'a Plan,
    pub(crate) keys: &'a [KeySpec],
    pub(crate) group: &'a Path,
    pub(crate) rounds: u16,
}

impl Stage<'_> {
    /// Plays all acts. Gives back the running network and the table.
    pub(crate) async fn play(&self, mut cluster: Cluster) -> Result<(Cluster, Vec<Row>), Failure> {
        let (n, k) = (self.plan.nodes(), self.plan.threshold());
        self.show.act(format_args!("A group of {} is made; any {k} of them can act, fewer learn nothing", nodes(n)));
        self.show
            .say(format_args!("certificates, configuration, policies and sealed stores in {}", self.group.display()));

        self.show.act("Each node starts as a process of its own");
        let begin = Instant::now();
        cluster.start_all()?;
        cluster.listening(PATIENCE).await?;
        for (node, pid) in cluster.pids() {
            self.show.say(format_args!("node {node}: process {pid}"));
        }
        let worker = self.worker()?;
        await_mesh(&worker.client, n.into()).await?;
        self.show.good(format_args!(
            "all nodes are connected to each other over mutually authenticated TLS 1.3, after {}",
            units::human(begin.elapsed())
        ));

        self.make_keys(&worker.client).await?;
        self.show.act("All nodes work");
        let contents = u64::try_from(self.material.contents.len()).unwrap_or(u64::MAX);
        self.show.say(format_args!(
            "the material is {} ({}); encryption asks no node",
            self.material.name,
            Bytes(contents)
        ));
        let mut rows = self.work(&worker, &Operation::ALL_AND_TWO_ROUNDS, "all up").await?;
        rows.push(self.refresh(&worker).await?);
        rows.extend(self.trouble(&mut cluster, &worker).await?);
        self.refuse(&worker.client).await?;
        self.check_logs(&worker.client).await?;
        Ok((cluster, rows))
    }

    /// One node dies, one lies.
    async fn trouble(&self, cluster: &mut Cluster, worker: &Worker<'_>) -> Result<Vec<Row>, Failure> {
        if self.plan.nodes() == self.plan.threshold() {
            self.show.act("It takes all nodes, so none may fail");
            self.show.say("with --threshold below --nodes, one would be killed and one would lie");
            return Ok(Vec::new());
        }
        let mut rows = self.one_dies(cluster, worker).await?;
        if self.plan.threshold() == 1 {
            self.show.act("Any node can act alone, so none listens to another's lies");
            self.show.say("with --threshold 2 or more, one would lie and be named");
        } else {
            rows.extend(self.one_lies(cluster, worker).await?);
        }
        Ok(rows)
    }

    fn worker(&self) -> Result<Worker<'_>, Failure> {
        let dir = self.group.join("client");
        let options = ClientOptions { timeout: Duration::from_secs(10), ..ClientOptions::default() };
        let client = Client::open_with(&dir, options)?;
        Ok(Worker { client, keyring: Keyring::new(&dir), material: self.material })
    }

    /// These operations, first told and then repeated.
    async fn work(
        &self,
        worker: &Worker<'_>,
        operations: &[Operation],
        act: &'static str,
    ) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        for operation in operations.iter().copied() {
            let first = worker.perform(operation, act, 0).await?;
            let mut contributors: Vec<u16> = first.answer.contributors.iter().map(|node| node.get()).collect();
            contributors.sort_unstable();
            self.show.good(format_args!(
                "{} ({}, {})",
                first.account,
                connect::nodes(&contributors),
                units::human(first.answer.latency)
            ));
            rows.push(worker.repeat(operation, act, self.rounds).await?.row(act));
        }
        self.show.aside(format_args!("each {} more on new inputs, for the table", times(self.rounds)));
        Ok(rows)
    }

    async fn one_dies(&self, cluster: &mut Cluster, worker: &Worker<'_>) -> Result<Vec<Row>, Failure> {
        let (n, victim) = (self.plan.nodes(), self.plan.nodes());
        self.show.act(format_args!("Node {victim} is killed (SIGKILL), and nobody waits for it"));
        cluster.kill(victim)?;
        let mut rows = self.work(worker, &Operation::ALL, "one killed").await?;

        self.show.act(format_args!("Node {victim} starts again"));
        cluster.start(victim)?;
        cluster.listening(PATIENCE).await?;
        let begin = Instant::now();
        await_mesh(&worker.client, n.into()).await?;
        self.show.good(format_args!("connected to the others again after {}", units::human(begin.elapsed())));
        rows.extend(self.work(worker, &Operation::ALL, "restarted").await?);
        Ok(rows)
    }

    /// One node sends false shares until it is named, with every result right meanwhile.
    async fn one_lies(&self, cluster: &mut Cluster, worker: &Worker<'_>) -> Result<Vec<Row>, Failure> {
        const ACT: &str = "one lies";
        let liar = 1;
        self.show.act(format_args!("Node {liar} is replaced by one that sends false shares"));
        cluster.kill(liar)?;
        cluster.start_as(liar, &[LIAR])?;
        cluster.listening(PATIENCE).await?;
        await_mesh(&worker.client, self.plan.nodes().into()).await?;
        self.show.say("its shares are well-formed, but each belongs to another request");

        let mut tallies = Vec::new();
        for operation in Operation::ALL {
            tallies.push(worker.repeat(operation, ACT, self.rounds).await?);
        }
        self.show.good(format_args!("{} good results all the same", usize::from(self.rounds) * tallies.len()));
        for (attempt, operation) in (1..=ATTEMPTS_TO_NAME).zip(Operation::ALL.into_iter().cycle()) {
            if let Some(misbehaviour) = self.named(&worker.client, liar).await {
                self.show.good(format_args!("node {liar} is named by the others: {misbehaviour}"));
                if let Some(tally) = tallies.first_mut() {
                    tally.caught(liar);
                }
                // Whoever keeps the network is to have an honest one.
                cluster.kill(liar)?;
                cluster.start(liar)?;
                cluster.listening(PATIENCE).await?;
                await_mesh(&worker.client, self.plan.nodes().into()).await?;
                self.show.good(format_args!("node {liar} is replaced by an honest one again"));
                return Ok(tallies.into_iter().map(|tally| Tally::row(tally, ACT)).collect());
            }
            let extra = self.rounds.saturating_add(attempt);
            let done = worker.perform(operation, ACT, extra).await?;
            if let Some(tally) = tallies.iter_mut().find(|tally| tally.operation() == operation) {
                tally.add(&done);
            }
        }
        Err(Failure::Failed(format!("node {liar} lied {ATTEMPTS_TO_NAME} times and was not named")))
    }

    /// What a node is blamed for, if it is.
    async fn named(&self, client: &Client, liar: u16) -> Option<String> {
        let culprits = culprits::of_statuses(&client.status().await);
        culprits.into_iter().find(|culprit| culprit.node == liar).map(|culprit| culprit.misbehaviour)
    }
}

/// Waits until `expected` nodes answer and each of them is connected to all the others.
pub(super) async fn await_mesh(client: &Client, expected: usize) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let statuses = client.status().await;
        let connected = statuses.iter().filter_map(|status| status.status.as_ref().ok()).filter(|(response, _)| {
            let up = response.peers.iter().filter(|peer| peer.state() == PeerState::Connected).count();
            up + 1 >= expected
        });
        if connected.count() >= expected {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(Failure::NoAnswer("the nodes do not find each other".to_owned()));
        }
        time::sleep(Duration::from_millis(20)).await;
    }
}

fn nodes(count: u16) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") }
}

fn times(count: u16) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

//! The acts about keys: made by the nodes, renewed while they are used, kept by a policy, and all of it on record.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use theta::{connect, exit::Failure, group::plan::KeySpec, units};
use theta_client::{Client, ClientError, KeyChange, KeyState, audit};
use theta_names::{Delivery, NodeId};
use tokio::task::JoinSet;

use super::{
    acts::Stage,
    show::Row,
    work::{Operation, Worker},
};

/// The key that is renewed, and that nobody may destroy.
const KEPT: &str = "files";
/// The rule that the demo adds to the nodes' policies.
const RULE: &str = "nobody-destroys-files";
/// Records that are asked for at one time.
const PAGE: usize = 1_000;

/// Writes the rule into the policies of nodes that do not run yet.
pub(super) fn forbid_destroying(group: &Path, nodes: u16) -> Result<(), Failure> {
    let rule = format!(
        "\n[[rule]]\nname = \"{RULE}\"\neffect = \"deny\"\nclients = [\"*\"]\nkeys = [\"{KEPT}\"]\noperations = \
         [\"keys.destroy\"]\n"
    );
    (1..=nodes).try_for_each(|node| {
        let file = group.join(format!("node-{node}/policy.toml"));
        let policy = fs::read_to_string(&file).map_err(|error| Failure::reading(&file, &error))?;
        fs::write(&file, policy + &rule).map_err(|error| Failure::writing(&file, &error))
    })
}

impl Stage<'_> {
    /// All keys are generated, several at a time.
    pub(super) async fn make_keys(&self, client: &Client) -> Result<(), Failure> {
        let (n, k) = (self.plan.nodes(), self.plan.threshold());
        self.show.act(format_args!("The nodes make {} keys among themselves; nobody ever holds one", self.keys.len()));
        let begin = Instant::now();
        let mut making = JoinSet::new();
        for key in self.keys {
            let (client, name, suite) = (client.clone(), key.key_name().clone(), key.suite());
            let change = KeyChange::Create {
                key: name,
                suite: suite.into(),
                delivery: Delivery::All,
                k,
                holders: (1..=n).collect(),
            };
            making.spawn(async move { client.hold(change, |_| ()).await });
        }
        while let Some(made) = making.join_next().await {
            made.map_err(Failure::internal)?.map_err(Failure::from)?;
        }
        let latency = units::human(begin.elapsed());
        let names: Vec<&str> = self.keys.iter().map(KeySpec::name).collect();
        self.show.good(format_args!("{} by distributed key generation, after {latency}", names.join(", ")));
        Ok(())
    }

    /// New shares, while requests run.
    pub(super) async fn refresh(&self, worker: &Worker<'_>) -> Result<Row, Failure> {
        const ACT: &str = "refreshed";
        self.show.act(format_args!("The shares of {KEPT} are renewed while it is used"));
        let before = worker.keyring.named(KEPT)?.public;
        let over = AtomicBool::new(false);
        let ceremony = async {
            let key = KEPT.parse().map_err(Failure::internal)?;
            let held = worker.client.hold(KeyChange::Refresh { key, version: None }, |_| ()).await;
            over.store(true, Ordering::Relaxed);
            held.map_err(Failure::from)
        };
        let requests = async {
            let mut tally = worker.tally(Operation::Decrypt)?;
            let mut round = 0;
            while round < self.rounds || !over.load(Ordering::Relaxed) {
                round += 1;
                tally.add(&worker.perform(Operation::Decrypt, ACT, round).await?);
            }
            Ok::<_, Failure>(tally.row(ACT))
        };
        let (held, row) = tokio::join!(ceremony, requests);
        let (held, row) = (held?, row?);
        if worker.client.public_key(KEPT).await?.key_id() != before.key_id() {
            return Err(Failure::Failed(format!("the refresh of {KEPT} changed its public key")));
        }
        self.show.good(format_args!(
            "epoch {}: shares that were stolen before are worthless now; the public key is the same ({})",
            held.epoch,
            units::human(held.latency)
        ));
        self.show.good(format_args!("{} requests meanwhile, all answered", row.of));
        Ok(row)
    }

    /// A request that the policy does not allow.
    pub(super) async fn refuse(&self, client: &Client) -> Result<(), Failure> {
        self.show.act("Every node decides for itself who may ask for what");
        match client.change_state(KEPT, None, KeyState::Destroyed).await {
            Err(ClientError::Denied { rule: Some(rule), .. }) if rule == RULE => {
                self.show
                    .good(format_args!("destroying {KEPT} is refused, by the rule {rule:?} of the nodes' policies"));
                Ok(())
            }
            Err(error) => Err(error.into()),
            Ok(_) => Err(Failure::Failed(format!("{KEPT} was destroyed although a rule forbids it"))),
        }
    }

    /// The logs of all nodes, which must be whole and have the refusal.
    pub(super) async fn check_logs(&self, client: &Client) -> Result<(), Failure> {
        self.show.act("Every decision is on record, in a chain of hashes at every node");
        let mut whole = Vec::new();
        let mut records = 0;
        for node in 1..=self.plan.nodes() {
            let count = check_log(client, node).await?;
            records += count;
            whole.push(node);
        }
        self.show.good(format_args!("{records} records; the logs of {} are whole", connect::nodes(&whole)));
        Ok(())
    }
}

/// Reads and verifies one node's log. Gives the number of its records.
async fn check_log(client: &Client, node: u16) -> Result<u64, Failure> {
    let peer = NodeId::try_from(node).map_err(Failure::internal)?;
    let (mut reached, mut refused) = (audit::Checkpoint::START, false);
    loop {
        let page = client.audit(peer, reached.count, PAGE as u64).await?;
        reached = audit::verify(&page, reached, None)
            .map_err(|error| Failure::Failed(format!("the log of node {node}: {error}")))?;
        refused |= page.iter().any(|entry| entry.record.rule.as_deref() == Some(RULE));
        // To read the log is on record, too: the last page is one that is not full, never an empty one.
        if page.len() < PAGE {
            break;
        }
    }
    if refused { Ok(reached.count) } else { Err(Failure::Failed(format!("node {node} has no record of its refusal"))) }
}

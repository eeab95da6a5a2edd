//! The keys as the nodes report them: versions, states, epochs, holders.

use std::collections::BTreeSet;

use serde::Serialize;
use theta_client::{KeyEnd, KeyRef, KeyState, ListedKey, Version};
use theta_names::NodeId;
use theta_statements::UnixTime;

use crate::{
    ask::quarantines,
    connect::{self, ClientArgs, Session},
    exit::{self, Failure},
    output::{self, Output, Table},
};

/// One version of a key, as some nodes describe it.
#[derive(Serialize)]
struct LiveKey {
    name: String,
    version: u32,
    state: String,
    /// Whether these nodes have disabled it before the group has decided so.
    frozen: bool,
    /// When it will be destroyed, in seconds since 1970, by the group's ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    destroyed_at: Option<u64>,
    primary: bool,
    epoch: u64,
    generation: u64,
    suite: String,
    purpose: String,
    delivery: String,
    threshold: u32,
    holders: Vec<u32>,
    key_id: String,
    public_key: String,
    /// The nodes that report it.
    nodes: Vec<u16>,
    /// Those of them that hold a share of it.
    shares_at: Vec<u16>,
}

impl From<ListedKey> for LiveKey {
    fn from(ListedKey { info, nodes, held, generation, .. }: ListedKey) -> Self {
        let numbers = |nodes: &[NodeId]| nodes.iter().map(|node| node.get()).collect();
        Self {
            name: info.name,
            version: info.version,
            state: info.state,
            frozen: info.frozen,
            destroyed_at: None,
            primary: info.primary,
            epoch: info.epoch,
            generation,
            suite: info.suite,
            purpose: info.purpose,
            delivery: info.delivery,
            threshold: info.threshold,
            holders: info.holders,
            key_id: hex::encode(&info.key_id),
            public_key: hex::encode(&info.public_key),
            nodes: numbers(&nodes),
            shares_at: numbers(&held),
        }
    }
}

impl LiveKey {
    fn state_in_words(&self) -> String {
        match self.destroyed_at {
            _ if self.frozen => format!("{}, not decided", self.state),
            Some(at) => format!("{}, destroyed at {}", self.state, UnixTime(at.saturating_mul(1_000))),
            None => self.state.clone(),
        }
    }

    fn cells(&self) -> [String; 10] {
        let holders: Vec<String> = self.holders.iter().map(ToString::to_string).collect();
        let mark = if self.primary { "" } else { " (older)" };
        [
            format!("{}@{}{mark}", self.name, self.version),
            self.state_in_words(),
            self.epoch.to_string(),
            self.generation.to_string(),
            self.suite.clone(),
            self.delivery.clone(),
            format!("{} of {}", self.threshold, self.holders.len()),
            holders.join(", "),
            self.key_id.get(..8).unwrap_or_default().to_owned(),
            connect::nodes(&self.nodes),
        ]
    }
}

/// Learns of keys that are disabled whether they will be destroyed: nodes say no more than that they are disabled.
fn note_ends(session: &Session, keys: &mut [LiveKey]) {
    let mut disabled = keys.iter_mut().filter(|key| key.state == KeyState::Disabled.name()).peekable();
    if disabled.peek().is_some() {
        session.renew();
    }
    for key in disabled {
        let end = key.name.parse().ok().and_then(|name| session.client().end_of(&name, Version::new(key.version)));
        key.destroyed_at = if let Some(KeyEnd::Doomed(at)) = end { Some(at) } else { None };
    }
}

/// Asks the nodes for their keys, or for the versions of one.
pub(super) fn show(args: &ClientArgs, key: Option<&KeyRef>, output: Output) -> Result<(), Failure> {
    let session = args.open()?;
    let (listed, problems) = session.block_on(session.client().list_keys());
    for problem in &problems {
        output::diagnostic("warning", &exit::tidy(&problem.to_string()));
    }
    if problems.len() == session.client().group().nodes().len() {
        return Err(if problems.iter().any(|problem| exit::is_absence(&problem.problem)) {
            Failure::NoAnswer("no node lists its keys; theta status shows who is up".to_owned())
        } else {
            Failure::Failed("no node lists its keys: all are there and refuse this client, as said above".to_owned())
        });
    }
    let is_version = |version: u32| key.is_none_or(|key| key.version.is_none_or(|meant| meant.get() == version));
    let is_key = |name: &str| key.is_none_or(|key| key.name.as_str() == name);
    let of_interest = |key: &&ListedKey| is_key(&key.info.name) && is_version(key.info.version);
    let quarantined = quarantines::of(listed.iter().filter(of_interest));
    let mut keys: Vec<LiveKey> = listed.into_iter().map(LiveKey::from).collect();
    if let Some(key) = key {
        let known: BTreeSet<String> = keys.iter().filter(|key| key.primary).map(|key| key.name.clone()).collect();
        keys.retain(|key| is_key(&key.name));
        let versions: BTreeSet<u32> = keys.iter().map(|key| key.version).collect();
        keys.retain(|key| is_version(key.version));
        if keys.is_empty() {
            return Err(Failure::Usage(if versions.is_empty() {
                let known: Vec<String> = known.into_iter().collect();
                format!("the nodes have no key {:?}; they have: {}", key.name.as_str(), known.join(", "))
            } else {
                let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
                format!("the nodes have no {key}; of {} they have the versions {}", key.name, versions.join(", "))
            }));
        }
    }
    note_ends(&session, &mut keys);
    keys.sort_by(|a, b| (&a.name, a.version, &a.nodes).cmp(&(&b.name, b.version, &b.nodes)));
    output.result(&keys, |out| {
        let mut table = Table::new(
            &["key", "state", "epoch", "generation", "suite", "delivery", "takes", "holders", "key id", "according to"],
            &[2, 3],
        );
        for key in &keys {
            table.row(key.cells());
        }
        table.write(out)?;
        quarantines::write(&quarantined, out)
    })
}

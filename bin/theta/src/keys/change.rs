//! Changes of keys as arguments, the same for callers and approvers.

use clap::Args;
use theta_client::{KeyChange, KeyRef};
use theta_names::{Delivery, KeyName, Operation, Version};
use theta_network::group::GroupFile;
use theta_schemes::Suite;

use crate::{
    connect::nodes,
    exit::Failure,
    group::plan::{KeySpec, check_delivery, check_holders},
    suites,
};

/// What a ceremony would do, as people consent to it: everything that the request says.
pub(crate) fn in_words(change: &KeyChange) -> String {
    let named = |key: &KeyName, version: &Option<Version>| KeyRef { name: key.clone(), version: *version }.to_string();
    match change {
        KeyChange::Create { key, suite, delivery, k, holders } => {
            let mode = match delivery {
                Delivery::All => "",
                Delivery::Quorum => ", in quorum mode",
                Delivery::DishonestMajority => ", whose holders may cheat but for one of those that sign",
            };
            format!("a new key {key} ({suite}{mode}), made and held by {}, any {k} of which use it", nodes(holders))
        }
        KeyChange::Rotate { key } => format!("the next version of {key}, which takes the place of the one before"),
        KeyChange::Refresh { key, version } => {
            format!("new shares of {} for those who hold it; the old ones are destroyed", named(key, version))
        }
        KeyChange::Reshare { key, version, k, holders } => format!(
            "new shares of {} for {}, any {k} of which use it; the old ones are destroyed",
            named(key, version),
            nodes(holders)
        ),
        KeyChange::Recover { key, version, node } => {
            format!("the lost share of {} computed by the others for node {node}", named(key, version))
        }
    }
}

/// Who makes shares of a key.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DeliveryArgs {
    /// Who makes shares for a request: all the holders, or with quorum as many as it takes and one more, of which two combine. Fixed
    /// for good. [default: all]
    #[arg(long, value_name = "all|quorum", value_parser = parse_delivery)]
    delivery: Option<Delivery>,
    /// For ECDSA: how many of the holders that compute signatures together may cheat. With honest, fewer than half of 2k - 1 (malicious Shamir, fast, one
    /// that lies or is down is left behind); with dishonest, all but one of k (MASCOT, any k from 2, also 2 of 2, slower; one that lies stops them).
    /// Fixed for good. [default: honest]
    #[arg(long, value_name = "honest|dishonest", conflicts_with = "delivery")]
    majority: Option<MajorityWord>,
}

/// How many of the holders that compute together may cheat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MajorityWord {
    /// Fewer than half of them.
    Honest,
    /// All but one.
    Dishonest,
}

/// The deliveries that are not said by --majority.
fn parse_delivery(text: &str) -> Result<Delivery, String> {
    match text.parse() {
        Ok(delivery @ (Delivery::All | Delivery::Quorum)) => Ok(delivery),
        _ => Err("a delivery is all or quorum".to_owned()),
    }
}

impl DeliveryArgs {
    /// What was asked for.
    pub(crate) fn get(&self) -> Delivery {
        match self.majority {
            Some(MajorityWord::Dishonest) => Delivery::DishonestMajority,
            Some(MajorityWord::Honest) | None => self.delivery.unwrap_or_default(),
        }
    }

    /// Whether any argument was given.
    const fn is_given(&self) -> bool {
        self.delivery.is_some() || self.majority.is_some()
    }

    /// These keys with it; refuses suites that do not have it.
    pub(crate) fn of(&self, keys: &[KeySpec]) -> Result<Vec<KeySpec>, Failure> {
        keys.iter().map(|key| key.clone().delivered(self.get())).collect()
    }
}

/// The holders of a key's shares.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct HoldersArgs {
    /// How many holders it takes [default: the group's threshold]
    #[arg(long, value_name = "K")]
    threshold: Option<u16>,
    /// The nodes that hold the shares, as 1,2,4 [default: all nodes of the group]
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    holders: Vec<u16>,
}

impl HoldersArgs {
    /// Whether any argument was given.
    pub(crate) fn is_given(&self) -> bool {
        self.threshold.is_some() || !self.holders.is_empty()
    }

    /// k and the holders, by default those of the group.
    pub(crate) fn resolve(&self, group: &GroupFile) -> Result<(u16, Vec<u16>), Failure> {
        let nodes: Vec<u16> = group.nodes().iter().map(|node| node.id.get()).collect();
        let mut holders = if self.holders.is_empty() { nodes.clone() } else { self.holders.clone() };
        holders.sort_unstable();
        if holders.windows(2).any(|pair| pair.first() == pair.last()) {
            return Err(Failure::Usage("--holders names a node twice: name each once".to_owned()));
        }
        if let Some(unknown) = holders.iter().find(|holder| !nodes.contains(holder)) {
            let nodes = crate::connect::nodes(&nodes);
            return Err(Failure::Usage(format!("--holders: there is no node {unknown}; the group has {nodes}")));
        }
        let k = self.threshold.unwrap_or_else(|| group.threshold());
        if k == 0 || usize::from(k) > holders.len() {
            let n = holders.len();
            return Err(Failure::Usage(format!(
                "--threshold {k} with {n} holders: it takes at least 1 and at most all of them; name both --threshold and \
                 --holders"
            )));
        }
        Ok((k, holders))
    }
}

/// The parts of a change besides its operation and key, for approvers.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ChangeArgs {
    /// What the key will be, for keys.create
    #[arg(long, value_name = "SUITE", value_parser = suites::parse)]
    suite: Option<Suite>,
    #[command(flatten)]
    delivery: DeliveryArgs,
    #[command(flatten)]
    holders: HoldersArgs,
    /// The node whose share is lost, for keys.recover; the member, for group.change
    #[arg(long, value_name = "NODE")]
    node: Option<u16>,
}

impl ChangeArgs {
    /// Whether any argument was given.
    pub(crate) fn is_given(&self) -> bool {
        self.suite.is_some() || self.delivery.is_given() || self.node.is_some() || self.holders.is_given()
    }

    /// The node that was named.
    pub(crate) const fn node(&self) -> Option<u16> {
        self.node
    }

    /// The change, if the operation is a ceremony.
    pub(crate) fn change(
        &self,
        operation: Operation,
        key: KeyRef,
        group: impl FnOnce() -> Result<GroupFile, Failure>,
    ) -> Result<Option<KeyChange>, Failure> {
        let missing = |what: &str| Failure::Usage(format!("{operation} needs {what}, as theta keys is given it"));
        let KeyRef { name: key, version } = key;
        if let Some(version) = version.filter(|_| matches!(operation, Operation::KeysCreate | Operation::KeysRotate)) {
            return Err(Failure::Usage(format!("{operation} is of a key, not of a version: leave out @{version}")));
        }
        Ok(Some(match operation {
            Operation::KeysCreate => {
                let suite = self.suite.ok_or_else(|| missing("--suite"))?;
                let (k, holders) = self.holders.resolve(&group()?)?;
                let delivery = self.delivery.get();
                check_delivery(key.as_str(), suite, delivery)?;
                check_holders(key.as_str(), (suite, delivery), k, &holders)?;
                KeyChange::Create { key, suite: suite.into(), delivery, k, holders }
            }
            Operation::KeysRotate => KeyChange::Rotate { key },
            Operation::KeysRefresh => KeyChange::Refresh { key, version },
            Operation::KeysReshare => {
                if !self.holders.is_given() {
                    return Err(missing("--threshold or --holders"));
                }
                let (k, holders) = self.holders.resolve(&group()?)?;
                KeyChange::Reshare { key, version, k, holders }
            }
            Operation::KeysRecover => {
                KeyChange::Recover { key, version, node: self.node.ok_or_else(|| missing("--node"))? }
            }
            _ => return Ok(None),
        }))
    }
}

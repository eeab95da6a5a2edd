//! Changes of keys as arguments, the same for callers and approvers.

use clap::Args;
use theta_client::{KeyChange, KeyRef};
use theta_names::{Delivery, KeyName, Operation, Version};
use theta_network::group::GroupFile;
use theta_schemes::Suite;
use theta_sharing::Threshold;

use crate::{
    connect::nodes,
    exit::Failure,
    group::plan::{KeySpec, any_of, check_delivery, check_threshold, note_of_majority},
    output::diagnostic,
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
                Delivery::Passive => {
                    ", with passive security: a holder that does not follow the protocol may learn the key"
                }
                Delivery::PassiveDishonestMajority => {
                    ", with passive security and a dishonest majority: a holder that does not follow the protocol may learn the key"
                }
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
    /// For ECDSA: what holders that turn against the key may do. With active, whatever they like: a lie is noticed before anything leaves that could
    /// show the key (malicious Shamir; MASCOT with a dishonest majority). With passive, only put together what they have seen: one whose software was
    /// changed may learn the key, and nobody notices; presignatures take a quarter less work and a quarter of the rounds (Shamir), or a fifth of work and
    /// bytes (Semi-OT with a dishonest majority). Fixed for good. [default: active]
    #[arg(long, value_name = "active|passive", conflicts_with = "delivery")]
    security: Option<SecurityWord>,
    /// For ECDSA: how many of the holders that compute signatures together may turn against the key. With honest, fewer than half of 2k - 1 (malicious
    /// Shamir, or Shamir: fast, one that lies or is down is left behind; k from 2 to 8, n >= 2k - 1); with dishonest, all but one of k (MASCOT, or
    /// Semi-OT: k from 2 to 15, also 2 of 2, slower; one that lies stops them). Fixed for good. [default: honest if n >= 2k - 1]
    #[arg(long, value_name = "honest|dishonest", conflicts_with = "delivery")]
    majority: Option<MajorityWord>,
}

/// What holders may do that turn against a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SecurityWord {
    /// Whatever they like.
    Active,
    /// Put together what they have seen.
    Passive,
}

/// How many of the holders that compute together may cheat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MajorityWord {
    /// Fewer than half of them.
    Honest,
    /// All but one.
    Dishonest,
}

/// The deliveries that are not said by --security and --majority.
fn parse_delivery(text: &str) -> Result<Delivery, String> {
    match text.parse() {
        Ok(delivery @ (Delivery::All | Delivery::Quorum)) => Ok(delivery),
        _ => Err("a delivery is all or quorum".to_owned()),
    }
}

impl DeliveryArgs {
    /// What was asked for in words.
    pub(crate) fn get(&self) -> Delivery {
        match (self.security, self.majority) {
            (Some(SecurityWord::Passive), Some(MajorityWord::Dishonest)) => Delivery::PassiveDishonestMajority,
            (Some(SecurityWord::Passive), _) => Delivery::Passive,
            (_, Some(MajorityWord::Dishonest)) => Delivery::DishonestMajority,
            _ => self.delivery.unwrap_or_default(),
        }
    }

    /// What a key of this suite and threshold has: what was asked for, and with no word of a majority the one that k and n imply.
    pub(crate) fn implied(&self, suite: Suite, threshold: Threshold) -> Delivery {
        let asked = self.get();
        let is_open = self.majority.is_none() && self.delivery.is_none();
        if is_open { suite.implied_delivery(asked, threshold) } else { asked }
    }

    /// Whether any argument was given.
    const fn is_given(&self) -> bool {
        self.delivery.is_some() || self.security.is_some() || self.majority.is_some()
    }

    /// Refuses keys of suites that do not have what was asked for.
    pub(crate) fn check(&self, keys: &[KeySpec]) -> Result<(), Failure> {
        keys.iter().try_for_each(|key| check_delivery(key.name(), key.suite(), self.get()))
    }

    /// These keys with it; refuses suites and thresholds that do not have it. Says what people should know before such keys are made.
    pub(crate) fn of(&self, keys: &[KeySpec], threshold: Threshold) -> Result<Vec<KeySpec>, Failure> {
        let delivered = |key: &KeySpec| {
            let key = key.clone().delivered(self.implied(key.suite(), threshold))?;
            key.check_threshold(threshold)?;
            Ok(key)
        };
        let keys = keys.iter().map(delivered).collect::<Result<Vec<_>, Failure>>()?;
        keys.iter().for_each(|key| self.comment(key.name(), key.delivery()));
        Ok(keys)
    }

    /// What people should know before a key with this delivery is made.
    pub(crate) fn comment(&self, name: &str, delivery: Delivery) {
        if delivery != self.get() {
            note_of_majority(&format!("key {name}"));
        }
        warn_of_passive(name, delivery);
    }
}

/// What people should know before a key with passive security, another version of it, or shares for other holders are made.
pub(crate) fn warn_of_passive(name: &str, delivery: Delivery) {
    if delivery.is_passive() {
        diagnostic(
            "warning",
            &format!(
                "key {name} has passive security: it is safe as long as every holder follows the protocol. One whose software was changed may \
                 learn the whole key, alone and without being noticed, and sign with it for ever. Do this only where you would trust each \
                 holder with the key; it cannot be changed later. --security active has no such weakness"
            ),
        );
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
                let threshold = any_of(k, &holders)?;
                let delivery = self.delivery.implied(suite, threshold);
                check_delivery(key.as_str(), suite, delivery)?;
                check_threshold(key.as_str(), (suite, delivery), threshold)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_majority_follows_from_k_and_n() {
        let implied = |k, n, words: DeliveryArgs| words.implied(Suite::EcdsaP256, Threshold::new(k, n).unwrap());
        for ((k, n), delivery) in [
            ((2, 3), Delivery::All),
            ((2, 2), Delivery::DishonestMajority),
            ((3, 4), Delivery::DishonestMajority),
            // There is an honest majority, of more than its protocol takes: that is refused, and not another protocol taken for ever.
            ((9, 20), Delivery::All),
        ] {
            assert_eq!(implied(k, n, DeliveryArgs::default()), delivery, "{k} of {n}");
        }
        let passive = || DeliveryArgs { security: Some(SecurityWord::Passive), ..DeliveryArgs::default() };
        assert_eq!(implied(2, 2, passive()), Delivery::PassiveDishonestMajority);
        assert_eq!(implied(9, 20, passive()), Delivery::Passive);
    }
}

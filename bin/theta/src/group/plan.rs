//! The plan of a new group: how many nodes, which keys, which addresses.

use std::{
    collections::BTreeSet,
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    str::FromStr,
};

use theta_names::Delivery;
use theta_schemes::{Suite, keys::KeyName};
use theta_sharing::Threshold;

use super::deal::DEFAULT_BITS;
use crate::{exit::Failure, founding::note_of_size, output, suites, vault::SealWord};

/// The keys of a new group by default: quick to make, and the usual one of each purpose has the shortest name.
const DEFAULT_KEYS: [(&str, Suite); 7] = [
    ("files", Suite::Sg02Ristretto255),
    ("files-bls", Suite::Sg02Bls12381),
    ("sign", Suite::Bls04MinPk),
    ("sign-ed25519", Suite::FrostEd25519),
    ("beacon", Suite::Bls04MinSig),
    ("coin", Suite::Cks05Ristretto255),
    ("coin-bls", Suite::Cks05Bls12381),
];

/// A key to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpec {
    name: KeyName,
    suite: Suite,
    delivery: Delivery,
}

impl KeySpec {
    /// A key with the name of its suite.
    pub fn of(suite: Suite) -> Result<Self, Failure> {
        let name = suite.name().parse().map_err(Failure::internal)?;
        Ok(Self { name, suite, delivery: Delivery::All })
    }

    /// The same with this delivery.
    pub fn delivered(self, delivery: Delivery) -> Result<Self, Failure> {
        check_delivery(self.name(), self.suite, delivery)?;
        Ok(Self { delivery, ..self })
    }

    /// The key's name.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The key's name, checked.
    pub const fn key_name(&self) -> &KeyName {
        &self.name
    }

    /// The key's suite.
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// The same with the delivery that this threshold implies, where nobody has chosen one.
    pub(crate) fn implied(self, threshold: Threshold) -> Self {
        Self { delivery: self.suite.implied_delivery(self.delivery, threshold), ..self }
    }

    /// Refuses a threshold that it cannot have.
    pub(crate) fn check_threshold(&self, threshold: Threshold) -> Result<(), Failure> {
        check_threshold(self.name(), (self.suite, self.delivery), threshold)
    }

    /// Who makes shares for a request.
    pub const fn delivery(&self) -> Delivery {
        self.delivery
    }
}

/// The keys of `theta group init` without `--keys`.
pub fn default_keys() -> Vec<KeySpec> {
    let parsed = DEFAULT_KEYS.iter().map(|(name, suite)| format!("{name}={suite}").parse());
    parsed.filter_map(Result::ok).collect()
}

impl FromStr for KeySpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, suite) = text.split_once('=').unwrap_or((text, text));
        let suite = suites::parse(suite).map_err(|error| {
            // Without a "=" it is the suite's name. What is like none is the name of a key whose suite was left out.
            let left_out = !text.contains('=') && suites::nearest(text).is_none();
            if left_out { format!("{text:?} has no suite: write {text}=SUITE; theta suites lists them") } else { error }
        })?;
        let name = name.parse().map_err(|error| format!("{error}"))?;
        Ok(Self { name, suite, delivery: Delivery::All })
    }
}

impl fmt::Display for KeySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.suite)
    }
}

/// A group to be made.
#[derive(Debug)]
pub struct Plan {
    threshold: Threshold,
    keys: Vec<KeySpec>,
    modulus_bits: u32,
    seal: SealWord,
}

impl Plan {
    /// Checks that the numbers and names fit together. Keys for which nobody has chosen a delivery get the one that the threshold implies.
    pub fn new(nodes: u16, threshold: u16, keys: Vec<KeySpec>) -> Result<Self, Failure> {
        let threshold = Threshold::new(threshold, nodes)
            .map_err(|error| Failure::Usage(format!("--threshold {threshold} --nodes {nodes}: {error}")))?;
        check_names(&keys)?;
        let keys: Vec<_> = keys.into_iter().map(|key| key.implied(threshold)).collect();
        keys.iter().try_for_each(|key| key.check_threshold(threshold))?;
        Ok(Self { threshold, keys, modulus_bits: DEFAULT_BITS, seal: SealWord::default() })
    }

    /// The plan with RSA keys of this size.
    pub(crate) fn with_modulus_bits(self, modulus_bits: u32) -> Self {
        Self { modulus_bits, ..self }
    }

    /// The plan with stores that are sealed in this way.
    pub(crate) fn with_seal(self, seal: SealWord) -> Self {
        Self { seal, ..self }
    }

    /// How the nodes' stores are sealed.
    pub(crate) const fn seal(&self) -> &SealWord {
        &self.seal
    }

    /// Bits of the RSA keys.
    pub(crate) const fn modulus_bits(&self) -> u32 {
        self.modulus_bits
    }

    /// What can go wrong that would not in a larger group: see the table of `spec/ledger.md`, Small groups.
    pub(super) fn warning(&self) -> Option<String> {
        note_of_size(self.threshold.k(), self.threshold.n())
    }

    /// n.
    pub const fn nodes(&self) -> u16 {
        self.threshold.n()
    }

    /// k.
    pub const fn threshold(&self) -> u16 {
        self.threshold.k()
    }

    /// k and n.
    pub(crate) const fn any_k_of_n(&self) -> Threshold {
        self.threshold
    }

    /// The keys to make.
    pub(crate) fn keys(&self) -> &[KeySpec] {
        &self.keys
    }
}

/// Refuses a delivery for a suite that does not have it.
pub(crate) fn check_delivery(name: &str, suite: Suite, delivery: Delivery) -> Result<(), Failure> {
    suite.check_delivery(delivery).map_err(|reason| Failure::Usage(format!("key {name}: {reason}")))
}

/// Refuses a threshold that keys of a suite cannot have.
pub(crate) fn check_threshold(
    name: &str,
    (suite, delivery): (Suite, Delivery),
    threshold: Threshold,
) -> Result<(), Failure> {
    suite.check_threshold(threshold, delivery).map_err(|reason| Failure::Usage(format!("key {name}: {reason}")))
}

/// Says that the majority was implied, before such keys are made: `what` are they?
pub(crate) fn note_of_majority(what: &str) {
    output::diagnostic(
        "note",
        &format!(
            "{what}: k and n leave no honest majority, so all but one of the k holders that compute a signature may turn against the key \
             (--majority dishonest): signatures take longer, and a holder that lies stops them"
        ),
    );
}

/// The threshold of a key of these holders, k of whom it takes.
pub(crate) fn any_of(k: u16, holders: &[u16]) -> Result<Threshold, Failure> {
    let n = u16::try_from(holders.len()).unwrap_or(u16::MAX);
    Threshold::new(k, n).map_err(|error| Failure::Usage(error.to_string()))
}

/// Refuses two keys of one name.
pub(crate) fn check_names(keys: &[KeySpec]) -> Result<(), Failure> {
    let mut names = BTreeSet::new();
    match keys.iter().find(|key| !names.insert(key.name())) {
        Some(twice) => Err(Failure::Usage(format!("there are two keys {:?}: write NAME=SUITE for one", twice.name()))),
        None => Ok(()),
    }
}

/// The addresses at which one node listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// For the other nodes.
    pub peer: SocketAddr,
    /// For clients.
    pub api: SocketAddr,
    /// For the monitoring system; always on loopback.
    pub metrics: SocketAddr,
}

/// An address of `--host`.
pub(crate) fn parse_host(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("{text:?} is not an IP address: write for example 10.0.0.1"))
}

/// The addresses of all nodes by the rule of `--base-port`.
pub(crate) fn addresses(nodes: u16, hosts: &[IpAddr], base: u16) -> Result<Vec<Addresses>, Failure> {
    if hosts.len() != 1 && hosts.len() != usize::from(nodes) {
        let given = hosts.len();
        return Err(Failure::Usage(format!("--host lists {given} addresses for {nodes} nodes: give one, or {nodes}")));
    }
    let port = |offset: u16, node: u16| node.checked_mul(10)?.checked_add(offset)?.checked_add(base);
    (1..=nodes)
        .zip(hosts.iter().cycle())
        .map(|(node, host)| {
            Some(Addresses {
                peer: SocketAddr::new(*host, port(0, node)?),
                api: SocketAddr::new(*host, port(1, node)?),
                metrics: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port(2, node)?),
            })
        })
        .collect::<Option<_>>()
        .ok_or_else(|| {
            Failure::Usage(format!(
                "--base-port {base} leaves no ports below 65536 for {nodes} nodes: give a smaller one"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn defaults_are_all_understood_and_quick() {
        let suites: BTreeSet<_> = default_keys().iter().map(KeySpec::suite).collect();
        assert_eq!(suites.len(), DEFAULT_KEYS.len());
        assert!(suites.iter().all(|suite| suite.group() != "RSA"), "primes take too long");
    }

    #[test]
    fn keys_are_named_or_named_after_their_suite() {
        let key: KeySpec = "sg02-ristretto255".parse().unwrap();
        assert_eq!(key.name(), "sg02-ristretto255");
        let key: KeySpec = "vault=sg02-bls12381".parse().unwrap();
        assert_eq!((key.name(), key.suite()), ("vault", Suite::Sg02Bls12381));
        assert!("vault=rot13".parse::<KeySpec>().unwrap_err().contains("theta suites"));
        assert!("../x=sg02-bls12381".parse::<KeySpec>().unwrap_err().contains("is not a key name"));
    }

    #[test]
    fn impossible_groups_are_refused() {
        let refused = |k| Plan::new(4, k, default_keys()).unwrap_err().to_string();
        assert!(refused(0).contains("0 of 4") && refused(5).contains("5 of 4"));
        let keys = vec!["gold=ecdsa-p256".parse().unwrap()];
        assert!(Plan::new(3, 2, keys.clone()).is_ok());
        let refused = Plan::new(3, 1, keys).unwrap_err().to_string();
        assert!(
            refused.contains("key gold: ") && refused.contains("1 of 3") && refused.contains("take k = 2"),
            "{refused}"
        );
        let gold: KeySpec = "gold=ecdsa-p256".parse().unwrap();
        let implied = |k, n| gold.clone().implied(Threshold::new(k, n).unwrap());
        assert_eq!(implied(2, 3), gold);
        assert_eq!(implied(3, 4).delivery(), Delivery::DishonestMajority);
        assert_eq!(Plan::new(4, 3, vec![gold.clone()]).unwrap().keys[0], implied(3, 4));
        let twice = [default_keys(), default_keys()].concat();
        assert!(Plan::new(4, 2, twice).unwrap_err().to_string().contains("\"files\""));
    }

    #[test]
    fn hosts_are_ip_addresses() {
        assert_eq!(parse_host("127.0.0.1"), Ok(LOCAL));
        assert!(parse_host("localhost").unwrap_err().contains("10.0.0.1"));
    }

    #[test]
    fn ports_follow_the_rule() {
        let addresses = addresses(4, &[LOCAL], 7100).unwrap();
        assert_eq!(addresses[2].api, "127.0.0.1:7131".parse().unwrap());
        let refused = |n, hosts: &[IpAddr], base| super::addresses(n, hosts, base).unwrap_err().to_string();
        assert!(refused(4, &[LOCAL], 65_500).contains("--base-port 65500"));
        assert!(refused(4, &[LOCAL, LOCAL], 7100).contains("2 addresses for 4 nodes"));
        assert!(refused(u16::MAX, &[LOCAL], 1).contains("--base-port 1"));
    }
}

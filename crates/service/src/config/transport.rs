//! How a node reaches the other nodes.

use std::{fmt, num::NonZeroU16, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use theta_names::Address;
use theta_network::Fingerprint;

/// What carries the messages between the nodes. All nodes of a group have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransportKind {
    /// Connections between all nodes.
    #[default]
    Mesh,
    /// The network of the host platform: [`HostConfig`].
    P2pProxy,
    /// Connections to a few neighbours, which pass on what any node says: [`GossipConfig`]. Takes a build with the feature `gossip`.
    Gossip,
}

impl TransportKind {
    /// As `node.toml` has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mesh => "mesh",
            Self::P2pProxy => "p2p-proxy",
            Self::Gossip => "gossip",
        }
    }

    /// What to do about it, if this build has no such transport.
    #[must_use]
    pub const fn missing(self) -> Option<&'static str> {
        self.missing_from(cfg!(feature = "gossip"))
    }

    const fn missing_from(self, has_gossip: bool) -> Option<&'static str> {
        match self {
            Self::Gossip if !has_gossip => {
                Some("transport = \"gossip\" takes a build that has it: cargo build --release --features gossip")
            }
            _ => None,
        }
    }
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TransportKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [Self::Mesh, Self::P2pProxy, Self::Gossip];
        let known = || all.map(Self::name).join(" or ");
        all.into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("there is no transport {text:?}: write {}", known()))
    }
}

/// The host platform beside a node: it serves `theta.host.v1.MessageHost` and carries the frames between the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// Where it listens for this node.
    #[serde(deserialize_with = "address")]
    pub address: String,
    /// The SHA-256 of the public key of its certificate.
    pub fingerprint: Fingerprint,
    /// The longest frame that this node makes, in bytes: 1,200 to 1,048,576, and no more than its host and those of the others carry. It takes longer ones
    /// all the same. Default 32,768.
    #[serde(default = "frame_bytes", deserialize_with = "frame_size")]
    pub frame_bytes: usize,
}

impl HostConfig {
    /// A host there, with that key.
    #[must_use]
    pub fn new(address: &Address, fingerprint: Fingerprint) -> Self {
        Self { address: address.to_string(), fingerprint, frame_bytes: frame_bytes() }
    }
}

/// How a node gossips.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GossipConfig {
    /// The numbers of the nodes to which this one connects, at their addresses in the group; others may connect to it all the same. Empty: to as
    /// many as a group of its size takes, drawn from all.
    #[serde(default)]
    pub neighbours: Vec<NonZeroU16>,
    /// The longest sealed frame, in bytes: 1,200 to 1,048,576, the same at all nodes. Default 32,768.
    #[serde(default = "frame_bytes", deserialize_with = "frame_size")]
    pub frame_bytes: usize,
}

impl Default for GossipConfig {
    fn default() -> Self {
        Self { neighbours: Vec::new(), frame_bytes: frame_bytes() }
    }
}

const fn frame_bytes() -> usize {
    32 << 10
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = || D::Error::custom(format!("{text:?} is no address: write for example \"localhost:7300\""));
    text.parse::<Address>().map_err(|_| wrong())?;
    Ok(text)
}

fn frame_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let size = usize::deserialize(deserializer)?;
    if (1_200..=1 << 20).contains(&size) {
        Ok(size)
    } else {
        Err(D::Error::custom(format!("frames have 1200 to 1048576 bytes, and not {size}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_gossip_says_how_to_get_one_that_has_it() {
        let missing = TransportKind::Gossip.missing_from(false).unwrap();
        assert!(missing.contains("cargo build --release --features gossip"), "{missing}");
        assert_eq!(TransportKind::Gossip.missing_from(true), None);
        assert_eq!([TransportKind::Mesh, TransportKind::P2pProxy].map(|kind| kind.missing_from(false)), [None; 2]);
        assert_eq!(TransportKind::Gossip.missing().is_none(), cfg!(feature = "gossip"));
    }
}

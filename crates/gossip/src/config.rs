//! What a node that gossips is started with: bounds, times, and how many neighbours it has.

use core::time::Duration;

use theta_names::NodeId;
use theta_network::{
    Identity,
    carrier::{CarrierLimits, RelayedError},
    mesh::{Listen, MeshError, MeshPeer},
};

const MIB: u32 = 1 << 20;

/// The configuration of a node that gossips.
#[derive(Debug)]
pub struct GossipConfig {
    /// The group's name. Groups of other names have other topics, and no signature of one is right in another.
    pub group: String,
    /// This node.
    pub local: NodeId,
    /// The certificate that the peers have pinned for this node.
    pub identity: Identity,
    /// Where neighbours connect.
    pub listen: Listen,
    /// All other nodes.
    pub peers: Vec<MeshPeer>,
    /// The nodes that this one connects to; others may connect to it all the same. Empty: as many as its degree says, drawn from all.
    pub neighbours: Vec<NodeId>,
    /// Bounds and times of sessions with peers.
    pub carrier: CarrierLimits,
    /// Bounds and times of gossip.
    pub limits: GossipLimits,
}

/// Bounds and times of gossip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GossipLimits {
    /// Bytes of the frames that leave in one message, at least 1,200; a frame that is longer leaves alone.
    pub bundle_bytes: usize,
    /// A node's messages leave with this pause between them, times the number of nodes, so that what there is to check in a second does not grow with the group. One that comes
    /// after a longer silence leaves at once.
    pub pace: Duration,
    /// Messages of all authors together that a node checks and passes on in a second: each author has its share.
    pub messages_per_second: u32,
    /// Bytes of all authors together that a node passes on in a second: each author has its share. As much is read from each neighbour.
    pub bytes_per_second: u32,
    /// For how long an author may save up its share.
    pub burst: Duration,
    /// Messages that wait for one neighbour; what comes beyond is lost on the way to it.
    pub neighbour_messages: usize,
    /// False messages of one neighbour, less one a second, after which it is left. It is left as well if it passes on twice as many messages as all
    /// authors together may say, or takes none for ten seconds.
    pub false_messages: u32,
    /// For how long a neighbour that was left is not let in again.
    pub banned_for: Duration,
    /// Incoming connections that may be in the handshake at once.
    pub handshakes: usize,
    /// Time to connect, to look a name up and to shake hands.
    pub handshake_timeout: Duration,
    /// How often the mesh is mended.
    pub heartbeat: Duration,
    /// First pause before connecting again; doubles up to `backoff_max`.
    pub backoff_min: Duration,
    /// Longest pause before connecting again.
    pub backoff_max: Duration,
}

impl Default for GossipLimits {
    fn default() -> Self {
        Self {
            bundle_bytes: 48 << 10,
            pace: Duration::from_millis(1),
            messages_per_second: 4_000,
            bytes_per_second: 32 * MIB,
            burst: Duration::from_secs(2),
            neighbour_messages: 512,
            false_messages: 20,
            banned_for: Duration::from_secs(60),
            handshakes: 256,
            handshake_timeout: Duration::from_secs(5),
            heartbeat: Duration::from_millis(500),
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(5),
        }
    }
}

impl GossipLimits {
    pub(crate) fn check(&self) -> Result<(), GossipError> {
        let checks = [
            ("bundle_bytes", (1_200..=1 << 20).contains(&self.bundle_bytes)),
            ("messages_per_second", self.messages_per_second > 0),
            ("bytes_per_second", self.bytes_per_second >= 1 << 10),
            ("burst", !self.burst.is_zero()),
            ("neighbour_messages", self.neighbour_messages > 0),
            ("handshakes", self.handshakes > 0),
            ("handshake_timeout", !self.handshake_timeout.is_zero()),
            ("heartbeat", !self.heartbeat.is_zero()),
            ("backoff_min", !self.backoff_min.is_zero()),
            ("backoff_max", self.backoff_max >= self.backoff_min),
        ];
        checks.into_iter().find(|(_, holds)| !holds).map_or(Ok(()), |(name, _)| Err(GossipError::Limit(name)))
    }
}

/// How many neighbours in the mesh a node wants, and between which numbers it leaves things as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Degree {
    /// With fewer, more are asked at the next heartbeat.
    pub low: usize,
    /// What is aimed at.
    pub aim: usize,
    /// With more, some are let go.
    pub high: usize,
}

impl Degree {
    /// The degree in a group of n nodes: log2 n + 1, at least 3, so that a message takes few steps, and a random graph hardly falls apart, by itself
    /// or when some nodes are away. All others, in groups of up to four, and then no fewer will do: gossipsub looks for more neighbours
    /// below `low` alone.
    #[must_use]
    pub fn of(n: usize) -> Self {
        let logarithm = usize::try_from(n.max(1).next_power_of_two().trailing_zeros()).unwrap_or(0);
        let aim = (logarithm + 1).clamp(3, 16);
        let low = if n <= aim + 1 { aim } else { aim * 2 / 3 };
        Self { low, aim, high: aim * 2 }
    }
}

/// Why a node does not gossip. Each message is one line.
#[derive(Debug, thiserror::Error)]
pub enum GossipError {
    /// A limit is out of its range.
    #[error("the limit {0} is out of range")]
    Limit(&'static str),
    /// A neighbour is no member, or this node itself.
    #[error("node {0} cannot be a neighbour: the group has no such other node")]
    Neighbour(NodeId),
    /// The address cannot be listened on, or the peers cannot be these.
    #[error(transparent)]
    Peers(#[from] MeshError),
    /// The sessions with the peers did not start.
    #[error(transparent)]
    Relayed(#[from] RelayedError),
    /// The library refused its configuration.
    #[error("gossipsub cannot be configured: {0}")]
    Gossipsub(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_degree_grows_with_the_logarithm_of_the_group() {
        let aims = [1, 2, 4, 7, 8, 31, 100, 1_000, 60_000].map(|n| Degree::of(n).aim);
        assert_eq!(aims, [3, 3, 3, 4, 4, 6, 8, 11, 16]);
        for n in 1..2_000 {
            let Degree { low, aim, high } = Degree::of(n);
            assert!(1 <= low && low <= aim && aim <= high, "{n}");
            assert!(n > 4 || low + 1 >= n, "all are neighbours in a group of {n}");
        }
    }

    #[test]
    fn the_defaults_are_in_range_and_nonsense_is_named() {
        assert!(GossipLimits::default().check().is_ok());
        let none = GossipLimits { messages_per_second: 0, ..GossipLimits::default() };
        assert_eq!(none.check().unwrap_err().to_string(), "the limit messages_per_second is out of range");
    }
}

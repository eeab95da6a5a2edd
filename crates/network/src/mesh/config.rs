//! What a mesh is started with, and why it may refuse to start.

use core::time::Duration;
use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::atomic::{AtomicUsize, Ordering},
};

use theta_names::NodeId;

use crate::{Fingerprint, Identity};

/// The configuration of a mesh.
#[derive(Debug)]
pub struct MeshConfig {
    /// This node.
    pub local: NodeId,
    /// The certificate that the peers have pinned for this node.
    pub identity: Identity,
    /// Where peers connect.
    pub listen: Listen,
    /// All other nodes.
    pub peers: Vec<MeshPeer>,
    /// Bounds and times.
    pub limits: MeshLimits,
}

/// Where to listen.
#[derive(Debug)]
pub enum Listen {
    /// Bind this address; with port 0 the system chooses the port, which [`Mesh::local_addr`](super::Mesh::local_addr)
    /// returns.
    Address(SocketAddr),
    /// Use a listener that is already bound.
    Bound(TcpListener),
}

/// Another node of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshPeer {
    /// Which node.
    pub id: NodeId,
    /// Where it listens for peers, `host:port`.
    pub address: String,
    /// The certificate it must show.
    pub certificate: Fingerprint,
}

/// Bounds and times of a mesh. Each peer has its own send queue, so that one peer cannot take another's room; the inbox
/// is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshLimits {
    /// Largest message, in bytes, sent or received.
    pub message_bytes: usize,
    /// Messages that may wait for one peer's acknowledgement.
    pub queue_messages: usize,
    /// Bytes that may wait for one peer's acknowledgement; a message is always taken into an empty queue.
    pub queue_bytes: usize,
    /// Messages received and not yet read by the application, of all peers together.
    pub inbound_messages: usize,
    /// Bytes of received messages over 64 KiB, per peer, that the application has not dropped yet.
    pub inbound_large_bytes: usize,
    /// Incoming connections that may be in the handshake at once; at the bound the oldest is ended ([`crate::doorway`]).
    pub handshakes: usize,
    /// Time to connect and greet.
    pub handshake_timeout: Duration,
    /// A sign of life is sent after this silence; among more than 32 peers after a longer one, up to [`LONGEST_SILENCE`].
    pub keepalive: Duration,
    /// A connection is given up after this silence of the other side, or after two and a half times as long as signs of life take.
    pub dead_after: Duration,
    /// First pause before connecting again; doubles up to `backoff_max`.
    pub backoff_min: Duration,
    /// Longest pause before connecting again.
    pub backoff_max: Duration,
}

impl Default for MeshLimits {
    fn default() -> Self {
        Self {
            message_bytes: 16 * MIB + MIB / 16,
            queue_messages: 65_536,
            queue_bytes: 64 * MIB,
            inbound_messages: 4096,
            inbound_large_bytes: 64 * MIB,
            handshakes: 1024,
            handshake_timeout: Duration::from_secs(5),
            keepalive: Duration::from_millis(2500),
            dead_after: Duration::from_secs(10),
            backoff_min: Duration::from_millis(50),
            backoff_max: Duration::from_secs(5),
        }
    }
}

/// The most peers whose signs of life come as often as [`MeshLimits::keepalive`] says. Each has two connections, each with signs of life in both
/// directions: 127 nodes on two cores spent 1.3 of them on these.
const CLOSE_PEERS: usize = 32;
/// Signs of life come at least so often: sooner than any node gives a connection up, however few peers that one has.
pub const LONGEST_SILENCE: Duration = Duration::from_secs(8);

/// How long connections are silent, by how many peers there are now. All links of a mesh share it.
#[derive(Debug)]
pub(crate) struct Silence {
    keepalive: Duration,
    dead_after: Duration,
    peers: AtomicUsize,
}

impl Silence {
    pub(crate) const fn new(keepalive: Duration, dead_after: Duration) -> Self {
        Self { keepalive, dead_after, peers: AtomicUsize::new(0) }
    }

    /// There are so many peers from now on.
    pub(crate) fn among(&self, peers: usize) {
        self.peers.store(peers, Ordering::Relaxed);
    }

    /// After how long a sign of life is due.
    pub(crate) fn keepalive(&self) -> Duration {
        let peers = u32::try_from(self.peers.load(Ordering::Relaxed).max(CLOSE_PEERS)).unwrap_or(u32::MAX);
        let close = u32::try_from(CLOSE_PEERS).unwrap_or(1);
        let scaled = self.keepalive.saturating_mul(peers) / close;
        scaled.min(LONGEST_SILENCE).max(self.keepalive)
    }

    /// After how long the other side is gone.
    pub(crate) fn dead_after(&self) -> Duration {
        self.dead_after.max(self.keepalive().saturating_mul(5) / 2)
    }
}

const MIB: usize = 1024 * 1024;

/// Far above any use, and small enough for the 32-bit lengths of frames.
const MAX_MESSAGE_BYTES: usize = 1024 * MIB;

impl MeshLimits {
    pub(super) fn check(&self) -> Result<(), MeshError> {
        let checks = [
            ("message_bytes", (1..=MAX_MESSAGE_BYTES).contains(&self.message_bytes)),
            ("queue_messages", self.queue_messages > 0),
            ("queue_bytes", self.queue_bytes > 0),
            ("inbound_messages", (1..=MAX_PERMITS).contains(&self.inbound_messages)),
            ("inbound_large_bytes", (1..=MAX_PERMITS).contains(&self.inbound_large_bytes)),
            ("handshakes", (1..=MAX_PERMITS).contains(&self.handshakes)),
            ("handshake_timeout", !self.handshake_timeout.is_zero()),
            ("keepalive", !self.keepalive.is_zero()),
            ("dead_after", self.dead_after > self.keepalive),
            ("backoff_min", !self.backoff_min.is_zero()),
            ("backoff_max", self.backoff_max >= self.backoff_min),
        ];
        checks.into_iter().find(|(_, holds)| !holds).map_or(Ok(()), |(name, _)| Err(MeshError::Limit(name)))
    }
}

/// The largest count of a semaphore.
const MAX_PERMITS: usize = tokio::sync::Semaphore::MAX_PERMITS;

/// Why a mesh did not start. Each message is one line.
#[derive(Debug, thiserror::Error)]
pub enum MeshError {
    /// Another process listens there.
    #[error("the peer address {0} is in use; stop the process that listens there or change this node's peer address")]
    AddressInUse(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen for peers on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// The local node or a peer comes twice.
    #[error("node {0} is listed twice; the peers are all nodes but this one, each once")]
    DuplicatePeer(NodeId),
    /// Two nodes, this one included, would share a certificate.
    #[error("node {0} has the certificate of another node; each needs its own")]
    DuplicateCertificate(NodeId),
    /// Started outside a tokio runtime.
    #[error("a mesh must be started inside a tokio runtime")]
    NoRuntime,
    /// A limit is zero, or too large for the frame format.
    #[error("the limit {0} is out of range")]
    Limit(&'static str),
    /// The TLS library refused the configuration.
    #[error("TLS cannot be configured: {0}")]
    Tls(#[from] rustls::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_peers_are_silent_for_longer_and_nobody_is_given_up_for_it() {
        let limits = MeshLimits::default();
        let silence = Silence::new(limits.keepalive, limits.dead_after);
        let at = |peers| {
            silence.among(peers);
            (silence.keepalive().as_millis(), silence.dead_after().as_millis())
        };
        assert_eq!([at(0), at(3), at(32)], [(2_500, 10_000); 3]);
        assert_eq!(at(64), (5_000, 12_500));
        assert_eq!([at(126), at(60_000)], [(8_000, 20_000); 2]);
        // A node that believes to be in a small group waits longer than one that knows a large one is silent.
        assert!(LONGEST_SILENCE < MeshLimits::default().dead_after);
        // What somebody has set is never made shorter.
        let slow = MeshLimits {
            keepalive: Duration::from_secs(30),
            dead_after: Duration::from_secs(90),
            ..MeshLimits::default()
        };
        let silence = Silence::new(slow.keepalive, slow.dead_after);
        silence.among(500);
        assert_eq!((silence.keepalive(), silence.dead_after()), (Duration::from_secs(30), Duration::from_secs(90)));
    }
}

//! Peers as a node sees them.

use core::time::Duration;

use theta_names::NodeId;

/// Whether a peer can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// Messages flow.
    Connected,
    /// Trying to connect; messages wait in the bounded queue.
    Connecting,
}

/// One peer as this node sees it.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// The peer.
    pub peer: NodeId,
    /// Its address.
    pub address: String,
    /// Whether it can be reached.
    pub state: PeerState,
    /// The reason if it cannot be reached; one line.
    pub last_error: Option<String>,
    /// Messages not yet acknowledged by the peer.
    pub queued: usize,
    /// How long messages take until the peer acknowledges them, what they wait here and there included; `None` if none was measured.
    pub latency: Option<Duration>,
}

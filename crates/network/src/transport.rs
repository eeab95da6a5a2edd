//! The trait of all transports.

use core::time::Duration;

use bytes::Bytes;
use theta_names::{Channel, NodeId};

/// A message that arrived. The transport sets `from` and `channel`; the sender has no influence on them.
#[derive(Clone, Debug)]
pub struct Inbound {
    /// The sender.
    pub from: NodeId,
    /// The channel that it came by. The transport guarantees that channel's privacy and order.
    pub channel: Channel,
    /// The message; a view into the receive buffer, not a copy.
    pub bytes: Bytes,
}

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

/// Why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The peer's queue is full: it is slow or away. Other peers are not affected.
    #[error("the queue to node {0} is full")]
    QueueFull(NodeId),
    /// The group has no such peer.
    #[error("node {0} is not a peer")]
    UnknownPeer(NodeId),
    /// The message is larger than a frame may be.
    #[error("a message of {0} bytes is over the limit")]
    TooLarge(usize),
    /// The transport has been shut down.
    #[error("the transport is shut down")]
    Closed,
}

/// Carries messages between the nodes of one group: authenticated, ordered for each peer, framed, bounded, with
/// back-pressure.
///
/// Sending never blocks: a message is accepted into the peer's bounded queue or refused. All messages that wait for one
/// peer leave in one write. Inbound messages come from the receiver that the transport's constructor returns. Not
/// reading from it slows the senders down and does not fill this node's memory.
pub trait Transport: Send + Sync + 'static {
    /// This node.
    fn local(&self) -> NodeId;
    /// The other nodes, ascending.
    fn peers(&self) -> Vec<NodeId>;
    /// Queues a message for one peer.
    ///
    /// # Errors
    /// [`SendError`]: nothing was queued.
    fn send(&self, to: NodeId, message: Bytes) -> Result<(), SendError>;
    /// Queues a message for all peers, which share its buffer. Returns an error for each peer that could not take it.
    fn broadcast(&self, message: Bytes) -> Vec<SendError> {
        self.peers().into_iter().filter_map(|peer| self.send(peer, message.clone()).err()).collect()
    }
    /// The state of all peers.
    fn status(&self) -> Vec<PeerStatus>;
}

//! The one trait behind which every transport stands.

use bytes::Bytes;
use theta_names::{Channel, NodeId};

/// A message that arrived. The transport vouches for `from` and `channel`: nobody else has a word in them.
#[derive(Clone, Debug)]
pub struct Inbound {
    /// Who sent it.
    pub from: NodeId,
    /// How it came: what is secret must not have come in the open, and what needs an order has one only by an ordered channel.
    pub channel: Channel,
    /// The message; a view into the receive buffer, not a copy.
    pub bytes: Bytes,
}

/// Whether a peer can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// Messages flow.
    Connected,
    /// Trying; messages wait in the bounded queue.
    Connecting,
}

/// One peer as this node sees it.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// Who.
    pub peer: NodeId,
    /// Where.
    pub address: String,
    /// Whether it can be reached.
    pub state: PeerState,
    /// Why not, when it cannot; one line.
    pub last_error: Option<String>,
    /// Messages not yet acknowledged by the peer.
    pub queued: usize,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The peer's queue is full: it is slow or away. The others are not affected.
    #[error("the queue to node {0} is full")]
    QueueFull(NodeId),
    /// No such peer in the group.
    #[error("node {0} is not a peer")]
    UnknownPeer(NodeId),
    /// Larger than a frame may be.
    #[error("a message of {0} bytes is over the limit")]
    TooLarge(usize),
    /// The transport is shut down.
    #[error("the transport is shut down")]
    Closed,
}

/// Moves messages between the nodes of one group: authenticated, ordered per peer, framed, bounded, with back-pressure.
///
/// Sending never blocks: a message is taken into the peer's bounded queue or refused. All messages that wait for one
/// peer leave in one write. Inbound messages come from the receiver that the transport's constructor returns; not
/// reading from it slows the senders down, not this node's memory.
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
    /// Queues a message for all peers, sharing its buffer. Returns those that could not take it.
    fn broadcast(&self, message: Bytes) -> Vec<SendError> {
        self.peers().into_iter().filter_map(|peer| self.send(peer, message.clone()).err()).collect()
    }
    /// All peers and how they are.
    fn status(&self) -> Vec<PeerStatus>;
}

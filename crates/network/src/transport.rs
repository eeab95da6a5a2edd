//! The trait of all transports.

use core::{num::NonZeroUsize, pin::Pin, time::Duration};
use std::{fmt, sync::Arc};

use bytes::Bytes;
use theta_names::{Channel, NodeId};

use crate::PeerStatus;
use crate::mesh::{MeshError, MeshPeer, PeerCounters};

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

/// Ends when a transport has closed everything.
pub type Stopping<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// What came to a transport and was nobody's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Connections, or frames, that did not prove to be a peer's.
    pub strangers: u64,
    /// Those of them that made room for newer ones.
    pub shed: u64,
}

/// The host through which a node reaches its peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostStatus {
    /// Where it is.
    pub address: String,
    /// Why it is away, if it is; one line.
    pub away: Option<String>,
    /// Frames that wait until it takes them.
    pub waiting: usize,
    /// For how long it has taken none of them.
    pub stalled: Duration,
    /// How often this node has attached to it.
    pub attached: u64,
    /// Frames that it was given, and that it gave.
    pub given: u64,
    /// Frames that came from it.
    pub got: u64,
    /// Frames that came from it and were dropped: longer than any node makes them, or in the name of a number that no node has.
    pub dropped: u64,
}

/// A transport of a node of a group whose members change while it runs.
pub trait GroupTransport: Transport + fmt::Debug {
    /// Puts these peers in the place of the present ones, while the transport runs: those who stay are undisturbed. A peer may be listed more than
    /// once, with another certificate each time. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`MeshError`]: nothing has changed.
    fn set_peers(&self, peers: Vec<MeshPeer>) -> Result<(), MeshError>;
    /// The peers to which nothing gets through now, by their machines.
    fn unreached(&self) -> Vec<MeshPeer>;
    /// The counters of each present peer, in ascending order of peers.
    fn peer_counters(&self) -> Vec<Arc<PeerCounters>>;
    /// What came and was nobody's.
    fn refused(&self) -> Refused;
    /// The host through which all messages go; `None` if peers are reached directly.
    fn host(&self) -> Option<HostStatus> {
        None
    }
    /// Lets at most so many connections that come be in the handshake at once from now on, where peers connect to this node at all: each takes
    /// a file descriptor, of which there may be fewer than before.
    fn limit_handshakes(&self, most: NonZeroUsize) {
        let _ = most;
    }
    /// Closes everything; queued messages are lost. Returns at once; may be called again.
    fn shutdown(&self);
    /// Waits, after [`shutdown`](Self::shutdown), until everything is closed.
    fn stopped(&self) -> Stopping<'_>;
}

//! The counters of a mesh.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use theta_names::NodeId;

use super::links::Links;

/// Counts events, or holds a level. Its ordering is relaxed: the numbers are for display and decide nothing.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// The present value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, amount: usize) {
        self.0.fetch_add(u64::try_from(amount).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn increment(&self) {
        self.add(1);
    }
}

/// All counters of a mesh, to be exported as metrics. They never fall while the process runs.
#[derive(Debug)]
pub struct MeshCounters {
    /// Incoming connections that failed before they had proven to be a peer's.
    pub handshake_failures: Counter,
    /// Those of them that were ended because too many were in the handshake at once.
    pub handshakes_shed: Counter,
    links: Arc<Links>,
}

impl MeshCounters {
    pub(super) fn new(links: Arc<Links>) -> Self {
        Self { handshake_failures: Counter::default(), handshakes_shed: Counter::default(), links }
    }

    /// The counters of each present peer, in ascending order of peers; of one for which several machines may speak, those of one of them.
    #[must_use]
    pub fn peers(&self) -> Vec<Arc<PeerCounters>> {
        let mut peers: Vec<_> = self.links.present().links.iter().map(|link| Arc::clone(&link.counters)).collect();
        peers.dedup_by_key(|counters| counters.peer);
        peers
    }
}

/// Counters of one peer.
#[derive(Debug)]
pub struct PeerCounters {
    /// Which peer.
    pub peer: NodeId,
    /// Messages sent; each counts once, however often it is sent again.
    pub frames_sent: Counter,
    /// Bytes of these messages.
    pub bytes_sent: Counter,
    /// Messages sent again after a reconnect.
    pub frames_resent: Counter,
    /// Messages refused because the peer's queue was full.
    pub frames_dropped: Counter,
    /// Messages delivered to the application.
    pub frames_received: Counter,
    /// Bytes of these messages.
    pub bytes_received: Counter,
    /// Outgoing connections made after the first.
    pub reconnects: Counter,
    /// Outgoing attempts that failed before the greeting was done.
    pub connect_failures: Counter,
    /// Incoming connections closed, or through a carrier sealed frames not read to their end, because the peer broke the protocol.
    pub protocol_errors: Counter,
    /// Frames in the peer's name that are not from it, or came before: a carrier's, never those of a connection.
    pub false_frames: Counter,
    /// The same of steps of handshakes.
    pub false_handshakes: Counter,
    /// Frames in the peer's name that came faster than they were looked at, and were dropped.
    pub frames_overrun: Counter,
}

impl PeerCounters {
    /// All of a peer, at zero.
    #[must_use]
    pub fn new(peer: NodeId) -> Self {
        Self {
            peer,
            frames_sent: Counter::default(),
            bytes_sent: Counter::default(),
            frames_resent: Counter::default(),
            frames_dropped: Counter::default(),
            frames_received: Counter::default(),
            bytes_received: Counter::default(),
            reconnects: Counter::default(),
            connect_failures: Counter::default(),
            protocol_errors: Counter::default(),
            false_frames: Counter::default(),
            false_handshakes: Counter::default(),
            frames_overrun: Counter::default(),
        }
    }
}

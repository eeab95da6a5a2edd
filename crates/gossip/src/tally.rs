//! What a node has seen of gossip.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Counts since the start, and how many neighbours there are now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GossipCounts {
    /// Neighbours with a connection now.
    pub neighbours: usize,
    /// Of these, neighbours that messages are passed on to as they come.
    pub in_mesh: usize,
    /// Messages that this node has sent as their author.
    pub sent: u64,
    /// Messages that found no way out. Their frames are sent again.
    pub unsent: u64,
    /// Messages of others, each counted once, however often and by whom it came.
    pub received: u64,
    /// Messages that came before and had been forgotten by gossipsub.
    pub replayed: u64,
    /// Messages beyond their authors' shares.
    pub excessive: u64,
    /// Messages of nobody who is a member.
    pub strange: u64,
    /// Messages of a format that this node does not know.
    pub unknown: u64,
    /// Messages that their authors have not signed.
    pub forged: u64,
    /// How often a neighbour was left because of those.
    pub banned: u64,
    /// Bytes that connections have carried out, and in, within TLS.
    pub bytes_sent: u64,
    /// The same, in.
    pub bytes_received: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    neighbours: AtomicUsize,
    in_mesh: AtomicUsize,
    pub(crate) sent: AtomicU64,
    pub(crate) unsent: AtomicU64,
    pub(crate) received: AtomicU64,
    pub(crate) replayed: AtomicU64,
    pub(crate) excessive: AtomicU64,
    pub(crate) strange: AtomicU64,
    pub(crate) unknown: AtomicU64,
    pub(crate) forged: AtomicU64,
    pub(crate) banned: AtomicU64,
}

impl Tally {
    pub(crate) fn note(&self, neighbours: usize, in_mesh: usize) {
        self.neighbours.store(neighbours, Relaxed);
        self.in_mesh.store(in_mesh, Relaxed);
    }

    pub(crate) fn counts(&self, (bytes_sent, bytes_received): (u64, u64)) -> GossipCounts {
        GossipCounts {
            neighbours: self.neighbours.load(Relaxed),
            in_mesh: self.in_mesh.load(Relaxed),
            sent: self.sent.load(Relaxed),
            unsent: self.unsent.load(Relaxed),
            received: self.received.load(Relaxed),
            replayed: self.replayed.load(Relaxed),
            excessive: self.excessive.load(Relaxed),
            strange: self.strange.load(Relaxed),
            unknown: self.unknown.load(Relaxed),
            forged: self.forged.load(Relaxed),
            banned: self.banned.load(Relaxed),
            bytes_sent,
            bytes_received,
        }
    }
}

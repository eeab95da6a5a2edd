//! The peers of a transport through a carrier, which change while it runs.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use theta_names::NodeId;
use tokio::sync::{Semaphore, mpsc, watch};

use super::{
    config::CarrierLimits,
    frame::{self, Tag},
    stream::Outbox,
};
use crate::{
    PeerState, PeerStatus,
    mesh::{Counter, MeshPeer, PeerCounters},
};

/// The most bytes of frames in the name of one peer that wait to be opened.
const FRAME_QUEUE_BYTES: usize = 2 << 20;

/// What a transport and the task of one peer share.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) target: MeshPeer,
    pub(super) outbox: Arc<Outbox>,
    pub(super) counters: Arc<PeerCounters>,
    /// Room for large messages that the application has not dropped yet, in bytes.
    pub(super) large_bytes: Arc<Semaphore>,
    /// All of that room.
    pub(super) most_large_bytes: usize,
    /// Set when the peer is one no more.
    pub(super) ended: watch::Sender<bool>,
    frames: mpsc::Sender<Bytes>,
    frame_bytes: AtomicUsize,
    health: Mutex<Health>,
}

#[derive(Debug, Default)]
struct Health {
    connected: bool,
    last_error: Option<String>,
}

impl Peer {
    /// `before`: the outbox of the machine in whose place this one is.
    pub(super) fn new(
        target: MeshPeer,
        limits: &CarrierLimits,
        before: Option<&Self>,
    ) -> (Arc<Self>, mpsc::Receiver<Bytes>) {
        let (frames, waiting) = mpsc::channel(limits.peer_frames);
        let outbox = before.map_or_else(
            || Arc::new(Outbox::new(limits.queue_messages, limits.queue_bytes)),
            |before| Arc::clone(&before.outbox),
        );
        let peer = Self {
            counters: Arc::new(PeerCounters::new(target.id)),
            target,
            outbox,
            large_bytes: Arc::new(Semaphore::new(limits.inbound_large_bytes)),
            most_large_bytes: limits.inbound_large_bytes,
            ended: watch::Sender::new(false),
            frames,
            frame_bytes: AtomicUsize::new(0),
            health: Mutex::default(),
        };
        (Arc::new(peer), waiting)
    }

    /// A frame in the peer's name comes; without room for it, it is lost.
    pub(super) fn put_frame(&self, frame: Bytes) {
        let bytes = frame.len();
        let fits = self.frame_bytes.fetch_add(bytes, Relaxed) < FRAME_QUEUE_BYTES;
        if !(fits && self.frames.try_send(frame).is_ok()) {
            self.frame_bytes.fetch_sub(bytes, Relaxed);
            self.counters.frames_overrun.increment();
        }
    }

    /// A frame was taken from the queue.
    pub(super) fn took_frame(&self, frame: &Bytes) {
        self.frame_bytes.fetch_sub(frame.len(), Relaxed);
    }

    /// Notes whether messages flow, and logs it when that changes.
    pub(super) fn is_now(&self, connected: bool) {
        let mut health = self.health();
        if health.connected == connected {
            return;
        }
        health.connected = connected;
        if connected {
            health.last_error = None;
            tracing::info!(peer = %self.target.id, "connected to peer through the carrier");
        } else {
            let reason = "it does not answer through the carrier".to_owned();
            tracing::warn!(peer = %self.target.id, %reason, "no session with peer; calling it again");
            health.last_error = Some(reason);
        }
    }

    /// `carrier`: what the peer is reached through, and why nobody is, if so.
    pub(super) fn status(&self, (address, away): (&str, Option<&str>)) -> PeerStatus {
        let health = self.health();
        let connected = health.connected && away.is_none();
        let silent = || Some("it has not answered through the carrier yet".to_owned());
        let reason = || away.map(str::to_owned).or_else(|| health.last_error.clone()).or_else(silent);
        PeerStatus {
            peer: self.target.id,
            address: address.to_owned(),
            state: if connected { PeerState::Connected } else { PeerState::Connecting },
            last_error: if connected { None } else { reason() },
            queued: self.outbox.len(),
            latency: self.outbox.latency(),
        }
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All peers.
#[derive(Debug, Default)]
pub(super) struct Peers {
    present: RwLock<Arc<Present>>,
    /// Frames that were for another node, in the name of nobody who is a peer, or of another than the carrier says.
    pub(super) strange: Counter,
}

/// The peers as they are between two changes.
#[derive(Debug, Default)]
pub(super) struct Present {
    /// Ascending by peer. A peer has more than one entry while several machines may speak for it.
    pub(super) peers: Vec<Arc<Peer>>,
    by_tag: HashMap<Tag, Arc<Peer>>,
}

impl Present {
    pub(super) fn by_tag(&self, tag: &Tag) -> Option<&Arc<Peer>> {
        self.by_tag.get(tag)
    }

    /// The machines of a node: one, or none, or several.
    pub(super) fn machines_of(&self, node: NodeId) -> &[Arc<Peer>] {
        let from = self.peers.partition_point(|peer| peer.target.id < node);
        let to = self.peers.partition_point(|peer| peer.target.id <= node);
        self.peers.get(from..to).unwrap_or_default()
    }
}

/// A peer that is new, with the frames in its name.
pub(super) type New = (Arc<Peer>, mpsc::Receiver<Bytes>);

impl Peers {
    pub(super) fn present(&self) -> Arc<Present> {
        Arc::clone(&self.present.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts these in the place of the present ones. Who has the same key goes on; what waits for one whose key has changed goes on waiting, for whoever
    /// has the new key. Returns the new ones.
    pub(super) fn replace(&self, targets: Vec<MeshPeer>, limits: &CarrierLimits) -> Vec<New> {
        let mut present = self.present.write().unwrap_or_else(PoisonError::into_inner);
        let same = |target: &MeshPeer, peer: &Peer| {
            (target.id, target.certificate) == (peer.target.id, peer.target.certificate)
        };
        let mut leaving: Vec<Arc<Peer>> =
            present.peers.iter().filter(|peer| !targets.iter().any(|target| same(target, peer))).cloned().collect();
        let (mut peers, mut new) = (Vec::new(), Vec::new());
        for target in targets {
            if let Some(peer) = present.peers.iter().find(|peer| same(&target, peer)) {
                peers.push(Arc::clone(peer));
                continue;
            }
            let before = leaving.iter().position(|peer| peer.target.id == target.id).map(|at| leaving.swap_remove(at));
            if let Some(before) = &before {
                before.ended.send_replace(true);
            }
            let made = Peer::new(target, limits, before.as_deref());
            peers.push(Arc::clone(&made.0));
            new.push(made);
        }
        for peer in leaving {
            peer.ended.send_replace(true);
        }
        peers.sort_by_key(|peer| peer.target.id);
        let by_tag = peers.iter().map(|peer| (frame::tag(&peer.target.certificate), Arc::clone(peer))).collect();
        *present = Arc::new(Present { peers, by_tag });
        new
    }
}

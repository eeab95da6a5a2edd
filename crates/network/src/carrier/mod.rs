//! Nodes that speak through a carrier of frames which they do not trust: a host's network, gossip, a chain. It may lose frames, double them, change
//! their order, keep them for later, and invent others.
//!
//! # What it gives
//! The same as the mesh: what a peer is told arrives once, in order, unread by others, and whoever sent it is known, as long as the carrier
//! delivers at all. Each pair of nodes agrees on sessions under the keys that the group has pinned for their certificates, with ephemeral keys
//! (`handshake`), and renews them. Within a session frames are sealed and numbered (`session`), and messages cut into pieces that are sent until
//! they are acknowledged (`stream`). `spec/carriers.md` has the formats, and why this holds.
//!
//! # Bounds
//! Each peer has queues of its own, for frames that come in its name and for messages that wait for it. What handshakes may compute is bounded
//! for each name and for all (`budget`). A frame that cannot be opened changes nothing: no session ends by it, no attempt, and nothing is
//! kept of it.

mod budget;
mod config;
mod demux;
mod dial;
mod frame;
mod handshake;
mod link;
mod peers;
mod session;
mod stream;
mod task;
mod vouched;

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use rustls::crypto::{GetRandomFailed, SecureRandom, aws_lc_rs};
use theta_names::NodeId;
use tokio::sync::{mpsc, watch};

pub use self::{
    budget::Budget,
    config::{BadLimit, CarrierLimits, MOST_FRAME_BYTES},
    link::{Link, Local},
    stream::{Full, Outbox},
    vouched::Vouched,
};
use self::{peers::Peers, task::Ways};
use crate::{
    GroupTransport, HostStatus, Identity, Inbound, PeerState, PeerStatus, Refused, SendError, Stopping, Transport,
    mesh::{self, MeshError, MeshPeer, PeerCounters, Silence},
};

/// A frame on its way through a carrier.
#[derive(Clone, Debug)]
pub struct Carried {
    /// To whom it goes, or from whom the carrier says that it comes. That proves nothing; what is in another's name is dropped.
    pub node: NodeId,
    /// The frame. What it is a view into stays as long as it waits, so it should be small.
    pub frame: Bytes,
}

/// The node's end of a carrier.
#[derive(Debug)]
pub struct Carrier {
    /// Takes frames. While it is full, messages wait.
    pub frames: mpsc::Sender<Carried>,
    /// Frames that come.
    pub arrivals: mpsc::Receiver<Carried>,
    /// How the carrier is.
    pub status: watch::Receiver<HostStatus>,
}

/// A transport whose messages a carrier takes. It stops when dropped.
#[derive(Debug)]
pub struct Relayed {
    local: NodeId,
    shared: Arc<Local>,
    silence: Arc<Silence>,
    peers: Arc<Peers>,
    carrier: mpsc::Sender<Carried>,
    status: watch::Receiver<HostStatus>,
    inbox: mpsc::Sender<Inbound>,
    /// Each task holds a receiver until it ends.
    stop: watch::Sender<bool>,
}

/// Why a transport through a carrier did not start.
#[derive(Debug, thiserror::Error)]
pub enum RelayedError {
    /// A limit is out of its range.
    #[error(transparent)]
    Limit(#[from] BadLimit),
    /// The peers cannot be these.
    #[error(transparent)]
    Peers(#[from] MeshError),
}

impl Relayed {
    /// Starts to call all peers, and returns at once. Must be called inside a tokio runtime. The receiver yields the messages of all peers.
    ///
    /// # Errors
    /// [`RelayedError`]: nothing was started.
    pub fn start(
        (local, identity): (NodeId, Identity),
        peers: Vec<MeshPeer>,
        carrier: Carrier,
        limits: CarrierLimits,
    ) -> Result<(Arc<Self>, mpsc::Receiver<Inbound>), RelayedError> {
        tokio::runtime::Handle::try_current().map_err(|_| MeshError::NoRuntime)?;
        limits.check()?;
        let (inbox, inbound) = mpsc::channel(limits.inbound_messages);
        let silence = Arc::new(Silence::new(limits.keepalive, limits.dead_after));
        let cost = handshake::cost(&identity).max(1);
        let budget = Budget::new(limits.handshakes_per_second.checked_div(cost).unwrap_or(1));
        let own = identity.fingerprint();
        let random = Box::new(SystemRandom(aws_lc_rs::default_provider().secure_random));
        let shared = Arc::new(Local { identity, limits, budget, random });
        let (stop, stopping) = watch::channel(false);
        let Carrier { frames, arrivals, status } = carrier;
        let relayed = Self { local, shared, silence, peers: Arc::default(), carrier: frames, status, inbox, stop };
        relayed.set_peers(peers)?;
        tokio::spawn(demux::run(arrivals, (own, Arc::clone(&relayed.peers)), stopping));
        Ok((Arc::new(relayed), inbound))
    }

    /// Frames that came for others, in the name of nobody who is a peer, or of another than the carrier says.
    #[must_use]
    pub fn strange_frames(&self) -> u64 {
        self.peers.strange.get()
    }
}

/// The system's randomness.
#[derive(Debug)]
struct SystemRandom(&'static dyn SecureRandom);

impl SecureRandom for SystemRandom {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
        self.0.fill(buffer)
    }
}

impl Transport for Relayed {
    fn local(&self) -> NodeId {
        self.local
    }

    fn peers(&self) -> Vec<NodeId> {
        let mut peers: Vec<NodeId> = self.peers.present().peers.iter().map(|peer| peer.target.id).collect();
        peers.dedup();
        peers
    }

    fn send(&self, to: NodeId, message: Bytes) -> Result<(), SendError> {
        if message.len() > self.shared.limits.message_bytes {
            return Err(SendError::TooLarge(message.len()));
        }
        if *self.stop.borrow() {
            return Err(SendError::Closed);
        }
        let (present, now) = (self.peers.present(), Instant::now());
        let machines = present.machines_of(to);
        // While several machines may speak for a peer, all of them hear what it is told.
        let mut sent = Err(if machines.is_empty() { SendError::UnknownPeer(to) } else { SendError::QueueFull(to) });
        for machine in machines {
            let counters = &machine.counters;
            if machine.outbox.push(message.clone(), now).is_ok() {
                counters.frames_sent.increment();
                counters.bytes_sent.add(message.len());
                sent = Ok(());
            } else {
                counters.frames_dropped.increment();
            }
        }
        sent
    }

    fn status(&self) -> Vec<PeerStatus> {
        let host = self.status.borrow().clone();
        let through = format!("through {}", host.address);
        let mut merged: Vec<PeerStatus> = Vec::new();
        for status in self.peers.present().peers.iter().map(|peer| peer.status((&through, host.away.as_deref()))) {
            match merged.last_mut().filter(|last| last.peer == status.peer) {
                // One machine that is reached is enough.
                Some(last) if last.state == PeerState::Connected => {}
                Some(last) => *last = status,
                None => merged.push(status),
            }
        }
        merged
    }
}

impl GroupTransport for Relayed {
    fn set_peers(&self, peers: Vec<MeshPeer>) -> Result<(), MeshError> {
        tokio::runtime::Handle::try_current().map_err(|_| MeshError::NoRuntime)?;
        mesh::check_members(self.local, &self.shared.identity, &peers)?;
        let count = peers.len();
        self.silence.among(count);
        self.shared.budget.among(count);
        for (peer, frames) in self.peers.replace(peers, &self.shared.limits) {
            let boot = mesh::random_boot_id()?;
            let (outbox, counters) = (Arc::clone(&peer.outbox), Arc::clone(&peer.counters));
            let certificate = peer.target.certificate;
            let link = Link::new(Arc::clone(&self.shared), certificate, boot, outbox, counters, Instant::now());
            let link = link.ok_or(rustls::Error::FailedToGetRandomBytes)?;
            let (carrier, inbox) = (self.carrier.clone(), self.inbox.clone());
            let ways = Ways { frames, carrier, inbox, silence: Arc::clone(&self.silence) };
            tokio::spawn(task::run(peer, link, ways, self.stop.subscribe()));
        }
        Ok(())
    }

    fn unreached(&self) -> Vec<MeshPeer> {
        let present = self.peers.present();
        let reached = self.status();
        let connected =
            |node: NodeId| reached.iter().any(|status| status.peer == node && status.state == PeerState::Connected);
        present.peers.iter().map(|peer| peer.target.clone()).filter(|target| !connected(target.id)).collect()
    }

    fn peer_counters(&self) -> Vec<Arc<PeerCounters>> {
        let present = self.peers.present();
        let mut counters: Vec<_> = present.peers.iter().map(|peer| Arc::clone(&peer.counters)).collect();
        counters.dedup_by_key(|counters| counters.peer);
        counters
    }

    fn refused(&self) -> Refused {
        Refused { strangers: self.strange_frames(), shed: 0 }
    }

    fn host(&self) -> Option<HostStatus> {
        Some(self.status.borrow().clone())
    }

    fn shutdown(&self) {
        self.stop.send_replace(true);
    }

    fn stopped(&self) -> Stopping<'_> {
        Box::pin(self.stop.closed())
    }
}

impl Drop for Relayed {
    fn drop(&mut self) {
        self.shutdown();
    }
}

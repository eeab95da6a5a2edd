//! The state of one peer, shared by the connection that this node dials and the one that it accepts.

use core::{pin::pin, time::Duration};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustls::{ClientConfig, crypto::SecureRandom};
use theta_names::NodeId;
use tokio::{
    sync::{Notify, Semaphore, watch},
    time::{Instant, sleep},
};
use tracing::{debug, info, warn};

use super::{MeshLimits, MeshPeer, config::Silence, counters::PeerCounters, frame::BootId, queue::SendQueue};
use crate::{PeerState, PeerStatus, doorway::Occasionally, places};

#[derive(Debug)]
pub(super) struct Link {
    /// Which peer.
    pub(super) id: NodeId,
    /// Where and who it is; `None` when it is a peer no more.
    pub(super) target: watch::Sender<Option<Target>>,
    /// What stands for this node in the life of this link.
    pub(super) boot: BootId,
    pub(super) limits: MeshLimits,
    pub(super) silence: Arc<Silence>,
    pub(super) counters: Arc<PeerCounters>,
    pub(super) queue: SendQueue,
    /// What has been delivered from the peer. The connection that holds the lock is the one that delivers.
    pub(super) received: tokio::sync::Mutex<Received>,
    /// The number of the newest incoming connection; all others end.
    pub(super) newest: watch::Sender<u64>,
    /// The peer has connected to this node, so that it can be reached again.
    pub(super) came: Notify,
    /// Lines about connections that the peer has dialled, which it can do as often as it likes.
    pub(super) arrivals: Occasionally,
    /// Room for large messages that the application has not dropped yet, in bytes.
    pub(super) large_bytes: Arc<Semaphore>,
    health: Mutex<Health>,
    /// The addresses of the peer at the last lookup: those to which its name resolved, or the address itself.
    places: Mutex<Vec<IpAddr>>,
}

/// A peer, and how connections to it are made.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) peer: MeshPeer,
    pub(super) tls: Arc<ClientConfig>,
}

/// How far the peer's messages have been delivered.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) boot: BootId,
    pub(super) delivered: u64,
}

#[derive(Debug, Default)]
struct Health {
    connected: bool,
    ever_connected: bool,
    last_error: Option<String>,
}

/// The text of an I/O error, without the system's number, and without details of TLS if the other side just closed the
/// connection.
pub(super) fn in_words(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return "the other side closed it".to_owned();
    }
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}

/// The address itself, of a peer that has no name.
fn place_of(address: &str) -> Vec<IpAddr> {
    address.parse().map(|address: SocketAddr| address.ip().to_canonical()).into_iter().collect()
}

impl Link {
    pub(super) fn new(target: Target, boot: BootId, limits: &MeshLimits, silence: Arc<Silence>) -> Self {
        let peer = &target.peer;
        Self {
            id: peer.id,
            boot,
            limits: limits.clone(),
            silence,
            counters: Arc::new(PeerCounters::new(peer.id)),
            queue: SendQueue::new(limits.queue_messages, limits.queue_bytes),
            received: tokio::sync::Mutex::default(),
            newest: watch::Sender::new(0),
            came: Notify::new(),
            arrivals: Occasionally::default(),
            large_bytes: Arc::new(Semaphore::new(limits.inbound_large_bytes)),
            health: Mutex::default(),
            places: Mutex::new(place_of(&peer.address)),
            target: watch::Sender::new(Some(target)),
        }
    }

    /// From now on the peer is there, and has that certificate. Connections from and to where it was end; messages that wait for it go on
    /// waiting.
    pub(super) fn aim(&self, target: Target) {
        let before = self.target.borrow().as_ref().map(|before| before.peer.clone());
        if before.as_ref() == Some(&target.peer) {
            return;
        }
        let recertified = before.is_none_or(|before| before.certificate != target.peer.certificate);
        *self.places() = place_of(&target.peer.address);
        self.target.send_replace(Some(target));
        if recertified {
            self.end_incoming();
        }
    }

    /// The peer is one no more.
    pub(super) fn end(&self) {
        self.target.send_replace(None);
        self.end_incoming();
    }

    fn end_incoming(&self) {
        self.newest.send_modify(|newest| *newest = newest.saturating_add(1));
    }

    /// Where the peer is reached; empty when it is one no more.
    fn address(&self) -> String {
        self.target.borrow().as_ref().map(|target| target.peer.address.clone()).unwrap_or_default()
    }

    /// Whether the last lookup of the peer found this address.
    pub(super) fn is_at(&self, address: IpAddr) -> bool {
        self.places().contains(&address)
    }

    /// Looks up the peer's addresses; they replace those of the lookup before.
    pub(super) async fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let address = self.address();
        let found = places::lookup(&address).await?;
        *self.places() = found.iter().map(|found| found.ip().to_canonical()).collect();
        Ok(found)
    }

    fn places(&self) -> MutexGuard<'_, Vec<IpAddr>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The dialled connection is up.
    pub(super) fn connected(&self) {
        let mut health = self.health();
        if health.ever_connected {
            self.counters.reconnects.increment();
        }
        *health = Health { connected: true, ever_connected: true, last_error: None };
        drop(health);
        info!(peer = %self.id, address = %self.address(), "connected to peer");
    }

    /// The dialled connection is down, or did not come up. The same reason again is not logged as a warning.
    pub(super) fn disconnected(&self, reason: String) {
        let mut health = self.health();
        let is_news = health.last_error.as_ref() != Some(&reason);
        health.connected = false;
        if is_news {
            warn!(peer = %self.id, address = %self.address(), %reason, "no connection to peer; trying again");
        } else {
            debug!(peer = %self.id, address = %self.address(), %reason, "still no connection to peer");
        }
        health.last_error = Some(reason);
    }

    pub(super) fn status(&self) -> PeerStatus {
        let queued = self.queue.len();
        let health = self.health();
        PeerStatus {
            peer: self.id,
            address: self.address(),
            state: if health.connected { PeerState::Connected } else { PeerState::Connecting },
            last_error: health.last_error.clone(),
            queued,
            latency: self.queue.latency(),
        }
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pauses between attempts. They double, and each is shortened at random by up to half, so that nodes do not get in
/// step.
pub(super) struct Backoff {
    next: Duration,
    min: Duration,
    max: Duration,
    /// A connection that has stood for so long was one.
    stands_after: Duration,
    /// When a pause was last cut short because the peer had come.
    hastened: Option<Instant>,
    random: &'static dyn SecureRandom,
}

impl Backoff {
    pub(super) fn new(limits: &MeshLimits) -> Self {
        let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
        let MeshLimits { backoff_min: min, backoff_max: max, keepalive, .. } = *limits;
        Self { next: min, min, max, stands_after: keepalive, hastened: None, random }
    }

    /// A connection has ended that had stood for so long. A peer that greets and goes at once is dialled no more often than one that does
    /// not answer: otherwise a peer could have this node shake hands, and write lines, as fast as both can. That the peer came while it stood is no news.
    pub(super) fn stood(&mut self, time: Duration, came: &Notify) {
        // It takes the news, if there is any.
        pin!(came.notified()).enable();
        if time >= self.stands_after {
            self.next = self.min;
        }
    }

    /// Waits for the next attempt. A peer that has just connected to this node is up: whoever waited for it longest need not wait longest
    /// now. Peers can come as often as they like, so that counts once in the longest pause.
    pub(super) async fn wait(&mut self, came: &Notify) {
        let pause = self.pause();
        let hastens = self.hastened.is_none_or(|hastened| hastened.elapsed() >= self.max);
        tokio::select! {
            () = sleep(pause) => {}
            () = came.notified(), if hastens => self.hastened = Some(Instant::now()),
        }
    }

    fn pause(&mut self) -> Duration {
        let full = self.next;
        self.next = full.saturating_mul(2).min(self.max);
        let mut byte = [0];
        // Without randomness the pause is not shortened.
        let _ = self.random.fill(&mut byte);
        full.saturating_sub(full.saturating_mul(byte.into_iter().map(u32::from).sum::<u32>()) / 512)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_within_bounds() {
        let limits = MeshLimits::default();
        let mut backoff = Backoff::new(&limits);
        for round in 0..20_u32 {
            let full = (limits.backoff_min * 2_u32.pow(round.min(10))).min(limits.backoff_max);
            let pause = backoff.pause();
            assert!(full / 2 <= pause && pause <= full, "{pause:?} of {full:?}");
        }
        let came = Notify::new();
        backoff.stood(limits.keepalive / 2, &came);
        assert!(backoff.pause() >= limits.backoff_max / 2, "it was no connection");
        backoff.stood(limits.keepalive, &came);
        assert!(backoff.pause() <= limits.backoff_min);
    }

    #[tokio::test]
    async fn a_peer_that_comes_while_a_connection_stands_hastens_nothing_after_it() {
        let mut backoff = Backoff::new(&MeshLimits { backoff_min: Duration::from_millis(50), ..MeshLimits::default() });
        let came = Notify::new();
        came.notify_one();
        backoff.stood(Duration::from_secs(60), &came);
        backoff.wait(&came).await;
        assert!(backoff.hastened.is_none(), "it would not hasten when the peer comes back");
        came.notify_one();
        backoff.wait(&came).await;
        assert!(backoff.hastened.is_some());
    }
}

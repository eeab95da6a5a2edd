//! Drives the link of one peer: frames and messages between the carrier, the link and the application.

use core::future::pending;
use std::sync::Arc;

use bytes::Bytes;
use theta_names::Channel;
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, watch},
    time::{Instant, sleep_until},
};

use super::{Carried, link::Link, peers::Peer};
use crate::{
    Inbound,
    mesh::{Silence, stopped},
};

/// Messages above this size, in bytes, take room of the peer's for large messages.
const LARGE_BYTES: usize = 64 * 1024;
/// Frames that are opened before others have a turn.
const BATCH: usize = 32;

/// What the task of a peer works with.
pub(super) struct Ways {
    /// Frames in the peer's name.
    pub(super) frames: mpsc::Receiver<Bytes>,
    /// To the carrier.
    pub(super) carrier: mpsc::Sender<Carried>,
    /// To the application.
    pub(super) inbox: mpsc::Sender<Inbound>,
    pub(super) silence: Arc<Silence>,
}

/// Runs until the transport stops, or the peer is one no more.
pub(super) async fn run(peer: Arc<Peer>, link: Link, ways: Ways, mut stop: watch::Receiver<bool>) {
    let mut ended = peer.ended.subscribe();
    tokio::select! {
        () = stopped(&mut stop) => {}
        () = stopped(&mut ended) => {}
        () = work(&peer, link, ways) => {}
    }
}

/// Returns when the application or the carrier is gone.
async fn work(peer: &Peer, mut link: Link, mut ways: Ways) {
    let mut held = None;
    loop {
        let now = Instant::now();
        link.set_silence(ways.silence.keepalive(), ways.silence.dead_after());
        link.drive(now.into_std());
        if !hand_over(peer, &mut link, &ways.carrier) || !deliver(peer, &mut link, &ways.inbox, &mut held) {
            return;
        }
        peer.is_now(link.is_connected(now.into_std()));
        let due = Instant::from_std(link.due(now.into_std()));
        tokio::select! {
            frame = ways.frames.recv() => {
                let Some(frame) = frame else { return };
                receive(peer, &mut link, frame, &mut ways.frames);
            }
            () = peer.outbox.pushed(), if !link.has_frames() => {
                // Other tasks that are ready push their messages first, which then leave in the same frame.
                tokio::task::yield_now().await;
            }
            () = room(&ways.carrier, link.has_frames()) => {}
            () = place(&ways.inbox, peer, held.as_ref()) => {}
            () = sleep_until(due) => {}
        }
    }
}

/// Takes this frame, and others that wait.
fn receive(peer: &Peer, link: &mut Link, frame: Bytes, frames: &mut mpsc::Receiver<Bytes>) {
    let now = std::time::Instant::now();
    let mut next = Some(frame);
    for _ in 0..BATCH {
        let Some(frame) = next else { return };
        peer.took_frame(&frame);
        link.receive(frame, now);
        next = frames.try_recv().ok();
    }
    if let Some(frame) = next {
        peer.took_frame(&frame);
        link.receive(frame, now);
    }
}

/// Gives the carrier what it takes. Says whether there is a carrier.
fn hand_over(peer: &Peer, link: &mut Link, carrier: &mpsc::Sender<Carried>) -> bool {
    while let Some(frame) = link.next_frame() {
        match carrier.try_send(Carried { node: peer.target.id, frame }) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(back)) => {
                link.put_back(back.frame);
                return true;
            }
            Err(mpsc::error::TrySendError::Closed(_)) => return false,
        }
    }
    true
}

/// Gives the application the messages for which there is room. Says whether there is an application.
fn deliver(peer: &Peer, link: &mut Link, inbox: &mpsc::Sender<Inbound>, held: &mut Option<Bytes>) -> bool {
    let now = std::time::Instant::now();
    while let Some(message) = held.take().or_else(|| link.next_message(now)) {
        let place = match inbox.try_reserve() {
            Ok(place) => place,
            Err(mpsc::error::TrySendError::Full(())) => {
                *held = Some(message);
                return true;
            }
            Err(mpsc::error::TrySendError::Closed(())) => return false,
        };
        let length = message.len();
        let bytes = if length > LARGE_BYTES {
            let Ok(permit) = Arc::clone(&peer.large_bytes).try_acquire_many_owned(size(peer, &message)) else {
                *held = Some(message);
                return true;
            };
            Bytes::from_owner(Charged { message, _permit: permit })
        } else {
            message
        };
        peer.counters.frames_received.increment();
        peer.counters.bytes_received.add(length);
        place.send(Inbound { from: peer.target.id, channel: Channel::Private, bytes });
    }
    true
}

/// The room that a large message takes: all there is, if it is larger.
fn size(peer: &Peer, message: &Bytes) -> u32 {
    u32::try_from(message.len().min(peer.most_large_bytes)).unwrap_or(u32::MAX)
}

/// Waits until the carrier takes a frame, if one is there.
async fn room(carrier: &mpsc::Sender<Carried>, wanted: bool) {
    if wanted {
        // If the carrier is gone, whoever sends next finds out.
        drop(carrier.reserve().await);
    } else {
        pending().await
    }
}

/// Waits until there is room for the message that is held, if one is.
async fn place(inbox: &mpsc::Sender<Inbound>, peer: &Peer, held: Option<&Bytes>) {
    let Some(message) = held else { return pending().await };
    // If the application is gone, whoever delivers next finds out.
    drop(inbox.reserve().await);
    if message.len() > LARGE_BYTES {
        drop(peer.large_bytes.acquire_many(size(peer, message)).await);
    }
}

/// A large message and the room that it takes.
struct Charged {
    message: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

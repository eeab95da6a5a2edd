//! Gives the frames that come to the peers in whose name they come.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::{Carried, frame, peers::Peers};
use crate::{Fingerprint, mesh::stopped};

/// Frames that are taken from the carrier at once.
const BATCH: usize = 64;

/// Gives frames away until the transport stops or the carrier is gone. What a peer's queue has no room for is lost: whoever floods in the name of
/// one peer fills the queue of that one. Whom the carrier says a frame comes from proves nothing; but a carrier that means well says it
/// rightly, so that a member who sends in another's name through it fills nobody's queue.
pub(super) async fn run(
    mut arrivals: mpsc::Receiver<Carried>,
    (own, peers): (Fingerprint, Arc<Peers>),
    mut stop: watch::Receiver<bool>,
) {
    let own = frame::tag(&own);
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        let came = tokio::select! {
            () = stopped(&mut stop) => return,
            came = arrivals.recv_many(&mut batch, BATCH) => came,
        };
        if came == 0 {
            return;
        }
        let present = peers.present();
        for Carried { node, frame } in batch.drain(..) {
            let route = frame::route(&frame).filter(|route| route.to == own);
            let peer = route.and_then(|route| present.by_tag(&route.from));
            match peer.filter(|peer| peer.target.id == node) {
                Some(peer) => peer.put_frame(frame),
                None => peers.strange.increment(),
            }
        }
        // An endless stream of frames leaves the other tasks of this thread a turn.
        tokio::task::yield_now().await;
    }
}

//! What waits for its decision.

use std::collections::BTreeMap;

use theta_agreement::Digest;
use theta_names::NodeId;

use crate::{Action, Refusal};

/// Ticks after which an action that too few agree to is given up.
const PATIENCE: u64 = 240;
/// Actions of this node that wait at once.
const MOST_OWN: usize = 256;
/// Actions that others are told of at once.
const MOST_TOLD: usize = 8;
/// Actions that wait on the word of one peer.
const MOST_OF_PEER: usize = 16;

struct Waiting {
    action: Action,
    reason: Vec<u8>,
    since: u64,
    source: Source,
}

/// On whose word an action waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A client of this node's asked for it: others are told.
    Client,
    /// It follows from what this node has, as it does for others.
    Expected,
    /// A peer told of it, and this node agrees.
    Peer(NodeId),
}

impl Source {
    const fn is_own(self) -> bool {
        !matches!(self, Self::Peer(_))
    }
}

/// Actions that this node wants decided: those it was asked for, and those of others that it agrees to.
#[derive(Default)]
pub(super) struct Pending {
    waiting: BTreeMap<Digest, Waiting>,
}

impl Pending {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn contains(&self, digest: &Digest) -> bool {
        self.waiting.contains_key(digest)
    }

    /// Whether one more action of a peer would be taken.
    pub(super) fn has_room_for(&self, peer: NodeId) -> bool {
        self.waiting.values().filter(|waiting| waiting.source == Source::Peer(peer)).count() < MOST_OF_PEER
    }

    /// Whether it is new, and there was room.
    pub(super) fn insert(&mut self, source: Source, action: Action, reason: Vec<u8>, now: u64) -> bool {
        let digest = action.digest();
        if let Some(known) = self.waiting.get_mut(&digest) {
            // From now on it is this node's own.
            let taken = source.is_own() && !known.source.is_own();
            if taken {
                (known.source, known.since) = (source, now);
            }
            return taken;
        }
        let room = match source {
            Source::Peer(peer) => self.has_room_for(peer),
            Source::Client | Source::Expected => {
                self.waiting.values().filter(|waiting| waiting.source.is_own()).count() < MOST_OWN
            }
        };
        if room {
            self.waiting.insert(digest, Waiting { action, reason, since: now, source });
        }
        room
    }

    pub(super) fn remove(&mut self, digest: &Digest) {
        self.waiting.remove(digest);
    }

    /// What has waited longest.
    pub(super) fn oldest(&self) -> Option<(&Action, &Vec<u8>)> {
        let oldest = self.waiting.iter().min_by_key(|(digest, waiting)| (waiting.since, **digest));
        oldest.map(|(_, waiting)| (&waiting.action, &waiting.reason))
    }

    /// What clients have asked this node for: a few, others in each turn.
    pub(super) fn of_clients(&self, turn: u64) -> impl Iterator<Item = (&Action, &Vec<u8>)> {
        let asked = || self.waiting.values().filter(|waiting| waiting.source == Source::Client);
        let parts = asked().count().div_ceil(MOST_TOLD).max(1);
        let part = usize::try_from(turn).unwrap_or(0).checked_rem(parts).unwrap_or(0);
        let told = asked().skip(part.saturating_mul(MOST_TOLD)).take(MOST_TOLD);
        told.map(|waiting| (&waiting.action, &waiting.reason))
    }

    /// Takes out what has waited too long; says of each whether it was this node's own.
    pub(super) fn expire(&mut self, now: u64) -> Vec<(Action, bool)> {
        let late = |_: &Digest, waiting: &mut Waiting| now >= waiting.since.saturating_add(PATIENCE);
        self.waiting.extract_if(.., late).map(|(_, waiting)| (waiting.action, waiting.source.is_own())).collect()
    }

    /// Takes out what cannot follow any more; says of each whether it was this node's own.
    pub(super) fn retain(&mut self, follows: impl Fn(&Action) -> Result<(), Refusal>) -> Vec<(Action, Refusal, bool)> {
        let mut gone = Vec::new();
        self.waiting.retain(|_, waiting| match follows(&waiting.action) {
            Ok(()) => true,
            Err(refusal) => {
                gone.push((waiting.action.clone(), refusal, waiting.source.is_own()));
                false
            }
        });
        gone
    }
}

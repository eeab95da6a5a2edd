//! How far the others are, and what each of them may cost.

use std::collections::BTreeMap;

use theta_names::NodeId;

/// Messages with entries that one peer is sent in a tick, and that are asked of one peer.
const ANSWERS_PER_TICK: u32 = 4;
/// Votes, candidates and entries of one peer that are looked at in a tick. An honest one sends a few.
const MESSAGES_PER_TICK: u32 = 64;

#[derive(Default)]
struct Peer {
    /// What it has drawn at its start.
    session: Option<u64>,
    /// The highest height that it has told since this node's start.
    height: Option<u64>,
    answered: u32,
    asked: u32,
    received: u32,
}

/// All other members.
#[derive(Default)]
pub(super) struct Peers(BTreeMap<NodeId, Peer>);

impl Peers {
    /// A new tick.
    pub(super) fn tick(&mut self) {
        for peer in self.0.values_mut() {
            (peer.answered, peer.asked, peer.received) = (0, 0, 0);
        }
    }

    /// Notes what a peer has drawn at its start, and how far it says that it is, if it says so since this node's start.
    pub(super) fn greet(&mut self, peer: NodeId, session: u64, height: Option<u64>) {
        let peer = self.0.entry(peer).or_default();
        peer.session = Some(session);
        peer.height = height.map(|height| peer.height.map_or(height, |before| before.max(height))).or(peer.height);
    }

    /// What a peer has drawn at its start, as it said last.
    pub(super) fn session(&self, peer: NodeId) -> Option<u64> {
        self.0.get(&peer)?.session
    }

    /// The heights of all who have said theirs.
    pub(super) fn heights(&self) -> impl Iterator<Item = u64> {
        self.0.values().filter_map(|peer| peer.height)
    }

    /// Whether one more message of a peer is looked at.
    pub(super) fn may_speak(&mut self, peer: NodeId) -> bool {
        let received = &mut self.0.entry(peer).or_default().received;
        *received = received.saturating_add(1);
        *received <= MESSAGES_PER_TICK
    }

    /// Whether a peer is sent entries once more.
    pub(super) fn may_answer(&mut self, peer: NodeId) -> bool {
        let answered = &mut self.0.entry(peer).or_default().answered;
        *answered = answered.saturating_add(1);
        *answered <= ANSWERS_PER_TICK
    }

    /// Whether a peer is asked for entries once more.
    pub(super) fn may_ask(&mut self, peer: NodeId) -> bool {
        let asked = &mut self.0.entry(peer).or_default().asked;
        *asked = asked.saturating_add(1);
        *asked <= ANSWERS_PER_TICK
    }
}

//! How far the others are, and what each of them may cost.

use std::collections::BTreeMap;

use theta_names::NodeId;

use super::MOST_MESSAGE;
use crate::sitting::MachineKey;

/// Messages with entries that one peer is sent in a tick, and that are asked of one peer.
const ANSWERS_PER_TICK: u32 = 4;
/// Votes, candidates and entries of one peer that are looked at in a tick. An honest one sends a few.
const MESSAGES_PER_TICK: u32 = 64;
/// Their bytes: to read them costs something, too.
const BYTES_PER_TICK: usize = 4 * MOST_MESSAGE;

/// Ends of ceremonies that one peer may tell of in a tick.
const ENDS_PER_TICK: u32 = 2;

#[derive(Default)]
struct Peer {
    /// How far it is, as it said last.
    height: Option<u64>,
    /// What it has drawn at its start.
    session: Option<u64>,
    /// The highest height at which it has told to have precommitted an entry, since this node's start.
    spoken: Option<u64>,
    /// Which machine it is, as it says.
    machine: MachineKey,
    answered: u32,
    asked: u32,
    received: u32,
    bytes: usize,
    brought: u32,
    judged: u32,
}

/// All other members.
#[derive(Default)]
pub(super) struct Peers(BTreeMap<NodeId, Peer>);

impl Peers {
    /// A new tick.
    pub(super) fn tick(&mut self) {
        for peer in self.0.values_mut() {
            (peer.answered, peer.asked, peer.received, peer.brought, peer.judged) = (0, 0, 0, 0, 0);
            peer.bytes = 0;
        }
    }

    /// Another machine has a peer's number from now on.
    pub(super) fn forget(&mut self, peer: NodeId) {
        self.0.remove(&peer);
    }

    /// Notes what a peer has drawn at its start, and at which height it may have precommitted, if it says so since this node's start.
    pub(super) fn greet(&mut self, peer: NodeId, machine: MachineKey, session: u64, spoken: Option<u64>) {
        let peer = self.0.entry(peer).or_default();
        if peer.machine != machine {
            // What another machine told is not what this one did.
            (peer.machine, peer.spoken) = (machine, None);
        }
        peer.session = Some(session);
        peer.spoken = spoken.map(|spoken| peer.spoken.map_or(spoken, |before| before.max(spoken))).or(peer.spoken);
    }

    /// Notes how far a peer says that it is.
    pub(super) fn stands(&mut self, peer: NodeId, height: u64) {
        self.0.entry(peer).or_default().height = Some(height);
    }

    /// How far a peer is, as it said last.
    pub(super) fn height(&self, peer: NodeId) -> Option<u64> {
        self.0.get(&peer)?.height
    }

    /// What a peer has drawn at its start, as it said last.
    pub(super) fn session(&self, peer: NodeId) -> Option<u64> {
        self.0.get(&peer)?.session
    }

    /// The highest height at which a peer may have precommitted an entry, as it has told since this node's start, and which of its machines has.
    pub(super) fn spoken(&self, peer: NodeId) -> Option<(u64, &MachineKey)> {
        let peer = self.0.get(&peer)?;
        Some((peer.spoken?, &peer.machine))
    }

    /// Whether one more warrant of a peer is looked at, which takes a signature of each operator.
    pub(super) fn may_bring(&mut self, peer: NodeId) -> bool {
        let brought = &mut self.0.entry(peer).or_default().brought;
        *brought = brought.saturating_add(1);
        *brought <= 1
    }

    /// Whether one more end of a ceremony that a peer tells of is looked at, which takes the signatures of its members.
    pub(super) fn may_judge(&mut self, peer: NodeId) -> bool {
        let judged = &mut self.0.entry(peer).or_default().judged;
        *judged = judged.saturating_add(1);
        *judged <= ENDS_PER_TICK
    }

    /// What peers have told counts no more: it is about the memory that was lost.
    pub(super) fn forget_told(&mut self) {
        self.0.values_mut().for_each(|peer| peer.spoken = None);
    }

    /// Whether one more message of a peer is looked at.
    pub(super) fn may_speak(&mut self, peer: NodeId, bytes: usize) -> bool {
        let peer = self.0.entry(peer).or_default();
        peer.received = peer.received.saturating_add(1);
        peer.bytes = peer.bytes.saturating_add(bytes);
        peer.received <= MESSAGES_PER_TICK && peer.bytes <= BYTES_PER_TICK
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

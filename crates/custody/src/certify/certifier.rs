//! The certifier of a node: all slots for which it collects promises.

mod promises;
mod requests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use theta_ceremonies::CeremonyKeys;
use theta_names::NodeId;
use theta_policy::{SlotQuorum, SlotState};

use super::early::Early;
use super::entry::Entry;
use super::interface::{CertifierLimits, Effects};
use super::promise::Subject;
use crate::Roster;
use crate::seating::Seating;

/// The most slots that are asked for at one tick: a node that is behind must not add to its peers' load.
const ASKS_PER_TICK: usize = 256;

/// Collects the promises of all nodes, for the requests of this one.
///
/// It is pure except that it looks slots up in the node's memory: inputs go in one after another with the time in
/// milliseconds, which never falls; effects come out. It promises only what [`SlotClaim`](theta_policy::SlotClaim)s or the memory say that the
/// node has decided durably.
pub struct Certifier {
    seating: Arc<Seating>,
    local: NodeId,
    keys: Option<Arc<CeremonyKeys>>,
    memory: Box<dyn SlotState + Send>,
    limits: CertifierLimits,
    entries: BTreeMap<Subject, Entry>,
    /// The slots for which each request still waits, and its deadline.
    waiting: BTreeMap<u64, (BTreeSet<Subject>, u64)>,
    next: u64,
    deadlines: BTreeSet<(u64, u64)>,
    asks: BTreeSet<(u64, Subject)>,
    early: Early,
    kept: VecDeque<Subject>,
    kept_bytes: usize,
    /// Until when a peer is ignored, and for how long that was.
    silenced: BTreeMap<NodeId, (u64, u64)>,
}

impl core::fmt::Debug for Certifier {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Certifier(node {}, {} slots, {} wait)", self.local, self.entries.len(), self.waiting.len())
    }
}

impl Certifier {
    /// The certifier of node `local`. `keys` is its identity, as the group knows it; without one it promises nothing
    /// and certifies nothing. `memory` is where its policy keeps slots.
    #[must_use]
    pub fn new(
        group: Roster,
        local: NodeId,
        keys: Option<Arc<CeremonyKeys>>,
        memory: Box<dyn SlotState + Send>,
    ) -> Self {
        Self::following(Seating::of(group), local, keys, memory)
    }

    /// The same, of a group whose members change.
    pub(crate) fn following(
        seating: Arc<Seating>,
        local: NodeId,
        keys: Option<Arc<CeremonyKeys>>,
        memory: Box<dyn SlotState + Send>,
    ) -> Self {
        let limits = CertifierLimits::default();
        let early = Early::new(limits.early, limits.early_age);
        Self {
            seating,
            local,
            keys,
            memory,
            limits,
            entries: BTreeMap::new(),
            waiting: BTreeMap::new(),
            next: 0,
            deadlines: BTreeSet::new(),
            asks: BTreeSet::new(),
            early,
            kept: VecDeque::new(),
            kept_bytes: 0,
            silenced: BTreeMap::new(),
        }
    }

    /// Sets other limits, before it has received anything.
    #[must_use]
    pub fn with_limits(mut self, limits: CertifierLimits) -> Self {
        self.early = Early::new(limits.early, limits.early_age);
        Self { limits, ..self }
    }

    /// The number of promises that certify a slot of a key with threshold k: of the nodes that promise its slots, fewer than k may
    /// lie, and fewer than the group's own k. These are the group's members of when the key was born (`spec/policy.md`, Slots).
    #[must_use]
    pub fn quorum(&self, k: u16, key: &str) -> SlotQuorum {
        let present = self.seating.present();
        let n = u16::try_from(present.voters(key)).unwrap_or(u16::MAX);
        SlotQuorum { n, t: k.max(present.roster.k).saturating_sub(1) }
    }

    /// Whether it has the identity that the group knows; without it, it promises nothing.
    #[must_use]
    pub fn is_able(&self) -> bool {
        self.identity().is_some()
    }

    /// The number of requests that wait, and the number of slots in memory.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        (self.waiting.len(), self.entries.len())
    }

    /// Whether nothing here waits for time to pass.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.asks.is_empty() && self.deadlines.is_empty() && self.early.is_empty()
    }

    /// Time passes: asks for what is missing, gives up requests after their deadlines, and forgets what is old.
    pub fn tick(&mut self, now: u64, effects: &mut Effects) {
        for _ in 0..ASKS_PER_TICK {
            let due = self.asks.first().filter(|(at, _)| *at <= now).cloned();
            let Some(due) = due else { break };
            self.asks.remove(&due);
            self.ask(now, &due.1, effects);
        }
        while let Some((_, ticket)) = self.deadlines.first().copied().filter(|(deadline, _)| *deadline <= now) {
            let refusal = self.expired(ticket);
            self.close(ticket, Err(refusal), effects);
        }
        self.early.expire(now);
    }

    fn identity(&self) -> Option<&Arc<CeremonyKeys>> {
        let present = self.seating.present();
        self.keys.as_ref().filter(|keys| present.roster.member(self.local) == Some(keys.member()))
    }

    /// Keeps a slot for which no request waits, for peers that ask again.
    fn rest(&mut self, subject: &Subject) {
        let Some(entry) = self.entries.get_mut(subject).filter(|entry| entry.wants.is_empty()) else { return };
        if let Some(at) = entry.ask_at.take() {
            self.asks.remove(&(at, subject.clone()));
        }
        self.keep(subject);
    }

    fn keep(&mut self, subject: &Subject) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        let weight = entry.weight();
        match entry.kept.replace(weight) {
            Some(before) => self.kept_bytes = self.kept_bytes.saturating_sub(before),
            None => self.kept.push_back(subject.clone()),
        }
        self.kept_bytes = self.kept_bytes.saturating_add(weight);
        // At most one round: slots for which requests wait are passed over.
        for _ in 0..self.kept.len() {
            if self.kept.len() <= self.limits.kept && self.kept_bytes <= self.limits.kept_bytes {
                return;
            }
            let Some(oldest) = self.kept.pop_front() else { return };
            let Some(entry) = self.entries.get_mut(&oldest) else { continue };
            self.kept_bytes = self.kept_bytes.saturating_sub(entry.kept.take().unwrap_or(0));
            if entry.wants.is_empty() {
                self.entries.remove(&oldest);
            }
        }
    }
}

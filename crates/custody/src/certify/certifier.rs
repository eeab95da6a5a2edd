//! The certifier of a node: all slots for which it collects promises.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use theta_ceremonies::CeremonyKeys;
use theta_names::NodeId;
use theta_policy::{SlotClaim, SlotQuorum, SlotScope, SlotStanding, SlotState};
use theta_rounds::Malformed;
use theta_statements::Digest;

use super::early::Early;
use super::entry::{Entry, Want};
use super::message::Known;
use super::promise::{Equivocation, Promise, Subject};
use super::refusal::SlotRefusal;
use crate::Roster;
use crate::request::To;
use crate::seating::Seating;

/// The most slots that are asked for at one tick: a node that is behind must not add to its peers' load.
const ASKS_PER_TICK: usize = 256;
/// The most promises of one node in one message.
const MOST_PROMISES_OF_ONE: usize = 4;
/// For how long a node that sent something false is ignored, in milliseconds; each further time twice as long.
const FIRST_SILENCE: u64 = 1_000;
const LONGEST_SILENCE: u64 = 64_000;

/// The bounds of a certifier's memory, and its delays in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct CertifierLimits {
    /// The most requests that wait.
    pub waiting: usize,
    /// The most slots that one peer may promise before they are asked for here.
    pub early: usize,
    /// For how long such promises are kept.
    pub early_age: u64,
    /// The most slots that are kept for peers that ask again.
    pub kept: usize,
    /// The most bytes of those slots.
    pub kept_bytes: usize,
    /// How long a slot stays undecided before all are asked for what they know; each further time twice as long.
    pub ask_after: u64,
}

impl Default for CertifierLimits {
    fn default() -> Self {
        Self { waiting: 10_000, early: 1_024, early_age: 10_000, kept: 16_384, kept_bytes: 32 << 20, ask_after: 250 }
    }
}

/// The number of a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(u64);

/// What a certifier wants done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertifierEffect {
    /// Send a message. If it is lost, that costs only time.
    Send {
        /// The recipients.
        to: To,
        /// The payload.
        bytes: Bytes,
    },
    /// A request has all its certificates, or will never have them.
    Decided {
        /// The request.
        ticket: Ticket,
        /// `Err` with the reason if it will not have its certificates.
        verdict: Result<(), SlotRefusal>,
    },
    /// A peer sent what no honest node sends.
    Culprit {
        /// The peer.
        node: NodeId,
        /// The offence.
        offence: PromiseOffence,
    },
    /// A node promised one slot to two messages.
    Equivocation(Box<Equivocation>),
}

/// An offence in a peer's message about promises. It proves nothing to others: the message itself is not signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PromiseOffence {
    /// The bytes are no promises.
    #[error("malformed promises: {}", .0.0)]
    Malformed(Malformed),
    /// A promise in the name of that node which it has not signed.
    #[error("a false promise of node {0}")]
    FalseSignature(NodeId),
}

type Effects = Vec<CertifierEffect>;

/// Collects the promises of all nodes, for the requests of this one.
///
/// It is pure except that it looks slots up in the node's memory: inputs go in one after another with the time in
/// milliseconds, which never falls; effects come out. It promises only what [`SlotClaim`]s or the memory say that the
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

    /// Asks for the certificates of a request with a key of threshold k, until `deadline`. The answer is a
    /// [`CertifierEffect::Decided`], which may come at once.
    pub fn claim(&mut self, now: u64, k: u16, claims: &[SlotClaim], deadline: u64, effects: &mut Effects) -> Ticket {
        let ticket = self.next;
        self.next = self.next.wrapping_add(1);
        let refused = if self.identity().is_none() {
            Some(SlotRefusal::NoIdentity)
        } else if self.waiting.len() >= self.limits.waiting {
            Some(SlotRefusal::Overloaded)
        } else {
            None
        };
        if let Some(refusal) = refused {
            effects.push(CertifierEffect::Decided { ticket: Ticket(ticket), verdict: Err(refusal) });
            return Ticket(ticket);
        }
        let is_over = claims.iter().any(|claim| matches!(claim.standing, SlotStanding::Over { .. }));
        // For a slot that is over here, a certificate shows soon or never: nodes that know one answer at once.
        let grace = now.saturating_add(self.limits.ask_after.saturating_mul(4));
        let deadline = if is_over { deadline.min(grace) } else { deadline };
        let open: BTreeSet<Subject> = claims.iter().map(Subject::of).collect();
        self.waiting.insert(ticket, (open, deadline));
        self.deadlines.insert((deadline, ticket));
        for claim in claims {
            let quorum = self.quorum(k, &claim.key);
            let want = Want { ticket, digest: claim.digest, quorum, standing: claim.standing };
            self.open(now, claim, Some(want), effects);
        }
        if claims.is_empty() {
            self.close(ticket, Ok(()), effects);
        }
        Ticket(ticket)
    }

    /// Tells the others what this node has promised, for a request that it cannot carry on itself.
    pub fn announce(&mut self, now: u64, claims: &[SlotClaim], effects: &mut Effects) {
        if self.identity().is_some() {
            claims.iter().for_each(|claim| self.open(now, claim, None, effects));
        }
    }

    /// Drops a request for which nobody waits any more. Its promises remain.
    pub fn withdraw(&mut self, ticket: Ticket) {
        self.forget(ticket.0);
    }

    /// Why the slots of a request are not certified for it, in words; `None` if they are.
    #[must_use]
    pub fn standing(&self, k: u16, claims: &[SlotClaim]) -> Option<SlotRefusal> {
        claims.iter().find_map(|claim| {
            let quorum = self.quorum(k, &claim.key);
            let subject = Subject::of(claim);
            let want = Want { ticket: 0, digest: claim.digest, quorum, standing: claim.standing };
            let entry = self.entries.get(&subject)?;
            let certified = entry.tally.supporters(&want.digest).len() >= usize::from(quorum.need());
            let others = || self.early.under_other_rules(&subject);
            (!certified).then(|| entry.refusal(&subject, &want, &self.seating.present().roster.nodes, &others()))
        })
    }

    /// Takes a message of a peer's certifier.
    pub fn receive(&mut self, now: u64, from: NodeId, bytes: &[u8], effects: &mut Effects) {
        if self.silenced.get(&from).is_some_and(|(until, _)| now < *until) {
            return;
        }
        let most = self.seating.present().roster.nodes.len().saturating_mul(MOST_PROMISES_OF_ONE);
        let known = match Known::decode(bytes, most) {
            Ok(known) => known,
            Err(malformed) => return self.silence(now, from, PromiseOffence::Malformed(malformed), effects),
        };
        let Known { asks, subject, promises } = known;
        let is_known = self.entries.contains_key(&subject) || (asks && self.recall(&subject));
        if !is_known {
            self.early.push(from, &subject, promises, now);
            if asks {
                self.send(To::One(from), &subject, false, Vec::new(), effects);
            }
            return;
        }
        if let Some(entry) = self.entries.get_mut(&subject) {
            entry.heard.insert(from);
        }
        let shown: BTreeSet<(NodeId, Digest)> = promises.iter().map(|promise| (promise.node, promise.digest)).collect();
        self.merge(now, from, &subject, promises, effects);
        self.settle(&subject, effects);
        self.answer(now, from, &subject, (asks, &shown), effects);
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

    /// Opens the slot's entry, with what this node has promised for it and what others have sent before.
    fn open(&mut self, now: u64, claim: &SlotClaim, want: Option<Want>, effects: &mut Effects) {
        let subject = Subject::of(claim);
        let is_new = !self.entries.contains_key(&subject);
        let has_own = self.entries.get(&subject).is_some_and(|entry| entry.has_own);
        match claim.standing {
            _ if has_own => {}
            SlotStanding::Taken => self.promise(&subject, claim.digest),
            SlotStanding::Contested { previous } => self.promise(&subject, previous),
            // This node may have promised the slot and forgotten it.
            SlotStanding::Over { .. } => {}
        }
        // The others may have decided the slot without this node, so it asks.
        let asks = claim.standing != SlotStanding::Taken;
        let ask_after = self.limits.ask_after;
        let entry = self.entries.entry(subject.clone()).or_default();
        if let Some(want) = want {
            entry.wants.push(want);
            entry.patience = ask_after;
        }
        if is_new {
            for (from, promises) in self.early.take(&subject) {
                if let Some(entry) = self.entries.get_mut(&subject) {
                    entry.heard.insert(from);
                }
                self.merge(now, from, &subject, promises, effects);
            }
        }
        self.settle(&subject, effects);
        let Some(entry) = self.entries.get_mut(&subject) else { return };
        let waits = !entry.wants.is_empty();
        if !has_own || waits {
            entry.said = Some(now);
            let promises = entry.tally.promises(None);
            let at = now.saturating_add(entry.patience);
            if waits && entry.ask_at.is_none() {
                entry.ask_at = Some(at);
                self.asks.insert((at, subject.clone()));
            }
            if waits || !promises.is_empty() {
                self.send(To::All, &subject, asks && waits, promises, effects);
            }
        }
    }

    /// Signs this node's promise for a slot once, as its durable memory has it.
    fn promise(&mut self, subject: &Subject, digest: Digest) {
        let Some(keys) = self.identity().cloned() else { return };
        let present = self.seating.present();
        // This machine may not know what was promised before it came.
        if !present.counts(self.local, &subject.key) {
            return;
        }
        let promise = Promise::sign(&present.roster.name, &keys, subject, digest);
        let entry = self.entries.entry(subject.clone()).or_default();
        entry.has_own = true;
        if !entry.tally.has(&promise) {
            // This node has no other promise for the slot: its memory has one digest.
            let _ = entry.tally.add(subject, promise);
        }
    }

    /// Looks up a slot for which nobody has asked this process; returns whether it was promised before.
    fn recall(&mut self, subject: &Subject) -> bool {
        let scope = SlotScope { key: &subject.key, rule: &subject.rule };
        // A memory that fails answers as if nothing were decided; requests at this node are refused with its error.
        let Ok(Some(digest)) = self.memory.decided(scope, subject.slot) else { return false };
        self.promise(subject, digest);
        self.keep(subject);
        self.entries.contains_key(subject)
    }

    /// Adds promises whose signatures are valid.
    fn merge(&mut self, now: u64, from: NodeId, subject: &Subject, promises: Vec<Promise>, effects: &mut Effects) {
        let present = self.seating.present();
        for promise in promises {
            let Some(entry) = self.entries.get_mut(subject) else { return };
            if entry.tally.has(&promise) || !entry.tally.has_room(&promise, entry.is_wanted(&promise.digest)) {
                continue;
            }
            // The identities of members who were replaced, or left, are not known any more: nobody is blamed for passing on their promises.
            if !present.counts(promise.node, &subject.key) {
                continue;
            }
            let member = present.roster.member(promise.node);
            if !member.is_some_and(|member| promise.vartime_verify(&present.roster.name, subject, member)) {
                return self.silence(now, from, PromiseOffence::FalseSignature(promise.node), effects);
            }
            let node = promise.node;
            if let Some(lie) = entry.tally.add(subject, promise)
                && entry.named.insert(node)
            {
                effects.push(CertifierEffect::Equivocation(Box::new(lie)));
            }
        }
    }

    /// Reports the requests that are decided.
    fn settle(&mut self, subject: &Subject, effects: &mut Effects) {
        let others = self.seating.present().roster.nodes.len().saturating_sub(1);
        let Some(entry) = self.entries.get_mut(subject) else { return };
        for (ticket, verdict) in entry.decide(subject, others) {
            match verdict {
                Err(_) => self.close(ticket, verdict, effects),
                Ok(()) => {
                    let open = self.waiting.get_mut(&ticket).map(|(open, _)| open);
                    let is_last = open.is_none_or(|open| {
                        open.remove(subject);
                        open.is_empty()
                    });
                    if is_last {
                        self.close(ticket, Ok(()), effects);
                    }
                }
            }
        }
        self.rest(subject);
    }

    /// Answers a peer that asks, or that lacks what this node sent to all long ago.
    fn answer(
        &mut self,
        now: u64,
        to: NodeId,
        subject: &Subject,
        (asks, shown): (bool, &BTreeSet<(NodeId, Digest)>),
        effects: &mut Effects,
    ) {
        let ask_after = self.limits.ask_after;
        let need = self.quorum(0, &subject.key).need();
        let Some(entry) = self.entries.get_mut(subject) else { return };
        let passed = |since: Option<u64>, least: u64| since.is_none_or(|since| now.saturating_sub(since) >= least);
        let known = entry.tally.promises(entry.tally.certified(need));
        let lacks = known.iter().any(|promise| !shown.contains(&(promise.node, promise.digest)));
        let is_due = asks || (lacks && passed(entry.said, ask_after));
        if is_due && passed(entry.answered.get(&to).copied(), ask_after / 2) {
            entry.answered.insert(to, now);
            self.send(To::One(to), subject, false, known, effects);
        }
    }

    /// Asks all for what they know of a slot for which requests wait.
    fn ask(&mut self, now: u64, subject: &Subject, effects: &mut Effects) {
        let longest = self.limits.ask_after.saturating_mul(16);
        let Some(entry) = self.entries.get_mut(subject) else { return };
        entry.ask_at = None;
        if entry.wants.is_empty() {
            return;
        }
        entry.patience = entry.patience.saturating_mul(2).clamp(1, longest.max(1));
        let at = now.saturating_add(entry.patience);
        (entry.ask_at, entry.said) = (Some(at), Some(now));
        let promises = entry.tally.promises(None);
        self.asks.insert((at, subject.clone()));
        self.send(To::All, subject, true, promises, effects);
    }

    fn send(&self, to: To, subject: &Subject, asks: bool, mut promises: Vec<Promise>, effects: &mut Effects) {
        // Peers accept no more in one message.
        promises.truncate(self.seating.present().roster.nodes.len().saturating_mul(MOST_PROMISES_OF_ONE));
        let bytes = Known { asks, subject: subject.clone(), promises }.encode().into();
        effects.push(CertifierEffect::Send { to, bytes });
    }

    fn silence(&mut self, now: u64, from: NodeId, offence: PromiseOffence, effects: &mut Effects) {
        let (until, last) = self.silenced.entry(from).or_insert((0, 0));
        *last = last.saturating_mul(2).clamp(FIRST_SILENCE, LONGEST_SILENCE);
        *until = now.saturating_add(*last);
        effects.push(CertifierEffect::Culprit { node: from, offence });
    }

    fn expired(&self, ticket: u64) -> SlotRefusal {
        let open = self.waiting.get(&ticket).map(|(open, _)| open).into_iter().flatten();
        let refusal = |subject: &Subject| {
            let entry = self.entries.get(subject)?;
            let want = entry.wants.iter().find(|want| want.ticket == ticket)?;
            let other_rules = self.early.under_other_rules(subject);
            Some(entry.refusal(subject, want, &self.seating.present().roster.nodes, &other_rules))
        };
        let mut open = open.filter_map(refusal);
        open.next().unwrap_or_else(|| SlotRefusal::Undecided("the slot was not decided in time".to_owned()))
    }

    fn close(&mut self, ticket: u64, verdict: Result<(), SlotRefusal>, effects: &mut Effects) {
        if self.forget(ticket) {
            effects.push(CertifierEffect::Decided { ticket: Ticket(ticket), verdict });
        }
    }

    /// Removes a request; returns whether it was there.
    fn forget(&mut self, ticket: u64) -> bool {
        let Some((open, deadline)) = self.waiting.remove(&ticket) else { return false };
        self.deadlines.remove(&(deadline, ticket));
        for subject in open {
            if let Some(entry) = self.entries.get_mut(&subject) {
                entry.wants.retain(|want| want.ticket != ticket);
            }
            self.rest(&subject);
        }
        true
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

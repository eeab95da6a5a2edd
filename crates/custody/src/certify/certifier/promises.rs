//! Promises: this node's own, what peers send of theirs, and what they are told and asked.

use std::collections::BTreeSet;

use theta_names::NodeId;
use theta_policy::{SlotClaim, SlotScope, SlotStanding};
use theta_statements::Digest;

use super::Certifier;
use crate::certify::entry::Want;
use crate::certify::interface::{CertifierEffect, Effects, PromiseOffence};
use crate::certify::message::Known;
use crate::certify::promise::{Promise, Subject};
use crate::request::To;

/// The most promises of one node in one message.
const MOST_PROMISES_OF_ONE: usize = 4;
/// For how long a node that sent something false is ignored, in milliseconds; each further time twice as long.
const FIRST_SILENCE: u64 = 1_000;
const LONGEST_SILENCE: u64 = 64_000;

impl Certifier {
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

    /// Opens the slot's entry, with what this node has promised for it and what others have sent before.
    pub(super) fn open(&mut self, now: u64, claim: &SlotClaim, want: Option<Want>, effects: &mut Effects) {
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
    pub(super) fn ask(&mut self, now: u64, subject: &Subject, effects: &mut Effects) {
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
}

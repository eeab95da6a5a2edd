//! The memory of slots: a node gives a slot to one message at most.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use theta_names::{SlotDecision, SlotOrder};
use theta_statements::{Digest, Name};

/// The scope of slots: one signing rule for one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotScope<'a> {
    /// The key's name; empty for a request without one.
    pub key: &'a str,
    /// The signing rule's name.
    pub rule: &'a str,
}

/// A slot that an allowed request needs. The slot must be certified for the digest before anything that depends on a secret leaves
/// the node for the request: see `spec/policy.md`, "Slots".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlotClaim {
    /// The key's name, without a version; empty for a request without one.
    pub key: String,
    /// The signing rule's name.
    pub rule: Name,
    /// The slot.
    pub slot: u64,
    /// The digest of the operation and the message.
    pub digest: Digest,
    /// How the slot stands at this node.
    pub standing: SlotStanding,
}

/// A slot that an allowed request would take, where the total order of the nodes' hosts says which message a node promises.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlotRace {
    /// The key's name, without a version.
    pub key: String,
    /// The signing rule's name.
    pub rule: Name,
    /// The slot.
    pub slot: u64,
    /// The digest of the operation and the message.
    pub digest: Digest,
}

/// How a slot stands at a node, for the message of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotStanding {
    /// This message has the slot, durably: the node promises it.
    Taken,
    /// Another message has the slot. The node promises nothing, but follows a certificate.
    Contested {
        /// The other message's digest.
        previous: Digest,
    },
    /// The slot is closed. The node promises nothing, but follows a certificate.
    Over {
        /// The highest closed slot.
        mark: u64,
    },
}

/// How many nodes of n it takes to certify a slot when t of them may be malicious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotQuorum {
    /// How many nodes there are.
    pub n: u16,
    /// How many of them may be malicious, and promise one slot twice.
    pub t: u16,
}

impl SlotQuorum {
    /// floor((n + t) / 2) + 1. Two sets of so many nodes have 2 * need - n > t nodes in common. One of these is honest and
    /// promises a slot once.
    #[must_use]
    pub const fn need(self) -> u16 {
        // The mean of two 16-bit numbers has 16 bits; adding 1 overflows for n = t = 65,535 alone, which is no group.
        self.n.midpoint(self.t).saturating_add(1)
    }

    /// How many nodes may be away, or promise nothing, without stopping slots.
    #[must_use]
    pub const fn spare(self) -> u16 {
        self.n.saturating_sub(self.need())
    }

    /// A warning, in one line, that slots stop before t nodes are away; `None` if t nodes may be away.
    #[must_use]
    pub fn warning(self) -> Option<String> {
        let (Self { n, t }, need, spare) = (self, self.need(), self.spare());
        (spare < t).then(|| {
            let away = if spare == 0 { "one node is".to_owned() } else { format!("more than {spare} are") };
            let liars = if t == 1 { "a liar".to_owned() } else { format!("{t} liars") };
            format!(
                "a key that a signing rule covers takes {need} of {n} nodes for each slot, so that {liars} cannot get two messages \
                 signed for one: it signs nothing while {away} away"
            )
        })
    }
}

/// The memory of slots could not be read or written, so nothing may be signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SlotStateError(pub String);

/// A node's memory of slots.
///
/// An implementation must guarantee: [`SlotDecision::Allowed`] is given once for each scope and slot, over all threads and
/// restarts, and is durable before it is given; later answers for the slot are [`SlotDecision::Same`] for that digest alone and
/// [`SlotDecision::Conflict`] for others, or [`SlotDecision::Below`] for all; a closed slot stays closed.
pub trait SlotState {
    /// Gives the slot to the digest if it is free. May block until the decision is durable.
    ///
    /// # Errors
    /// [`SlotStateError`]: nothing was decided that can be relied on.
    fn decide(
        &self,
        scope: SlotScope<'_>,
        slot: u64,
        digest: Digest,
        order: SlotOrder,
    ) -> Result<SlotDecision, SlotStateError>;

    /// The digest that has the slot; `None` if no digest has it or it is forgotten.
    ///
    /// # Errors
    /// [`SlotStateError`]: it cannot be read.
    fn decided(&self, scope: SlotScope<'_>, slot: u64) -> Result<Option<Digest>, SlotStateError>;
}

impl<S: SlotState + ?Sized> SlotState for Arc<S> {
    fn decide(
        &self,
        scope: SlotScope<'_>,
        slot: u64,
        digest: Digest,
        order: SlotOrder,
    ) -> Result<SlotDecision, SlotStateError> {
        (**self).decide(scope, slot, digest, order)
    }

    fn decided(&self, scope: SlotScope<'_>, slot: u64) -> Result<Option<Digest>, SlotStateError> {
        (**self).decided(scope, slot)
    }
}

/// Slots in memory, for tests and simulations: a node that forgets its slots breaks its promise.
#[derive(Debug, Default)]
pub struct MemorySlots(Mutex<HashMap<(String, String), Decided>>);

#[derive(Clone, Debug, Default)]
struct Decided {
    mark: Option<u64>,
    slots: BTreeMap<u64, Digest>,
}

impl SlotState for MemorySlots {
    fn decide(
        &self,
        scope: SlotScope<'_>,
        slot: u64,
        digest: Digest,
        order: SlotOrder,
    ) -> Result<SlotDecision, SlotStateError> {
        let mut scopes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let decided = scopes.entry((scope.key.to_owned(), scope.rule.to_owned())).or_default();
        if let Some(mark) = decided.mark.filter(|mark| slot <= *mark) {
            return Ok(SlotDecision::Below { mark });
        }
        if let Some(previous) = decided.slots.get(&slot) {
            return Ok(if *previous == digest {
                SlotDecision::Same
            } else {
                SlotDecision::Conflict { previous: previous.0 }
            });
        }
        decided.slots.insert(slot, digest);
        if order == SlotOrder::Increasing
            && let Some(over) = slot.checked_sub(1)
        {
            decided.mark = Some(over);
            decided.slots = decided.slots.split_off(&slot);
        }
        Ok(SlotDecision::Allowed)
    }

    fn decided(&self, scope: SlotScope<'_>, slot: u64) -> Result<Option<Digest>, SlotStateError> {
        let scopes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let decided = scopes.get(&(scope.key.to_owned(), scope.rule.to_owned()));
        Ok(decided.and_then(|decided| decided.slots.get(&slot)).copied())
    }
}

impl Clone for MemorySlots {
    /// A copy of the memory, as a node finds it after a restart.
    fn clone(&self) -> Self {
        Self(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any two quorums have more than t nodes in common, and one less would not do.
    #[test]
    fn quorums_meet_in_an_honest_node() {
        for n in 1..=64_u16 {
            for t in 0..n {
                let quorum = SlotQuorum { n, t };
                assert!(2 * quorum.need() > n + t, "{n} {t}");
                assert!(2 * (quorum.need() - 1) <= n + t, "{n} {t}");
                assert!(quorum.need() <= n);
                assert_eq!(quorum.warning().is_some(), quorum.need() > n - t);
            }
        }
        assert_eq!(SlotQuorum { n: 4, t: 1 }.need(), 3);
        assert_eq!(SlotQuorum { n: 4, t: 1 }.warning(), None);
        let warning = SlotQuorum { n: 3, t: 1 }.warning().unwrap();
        assert!(warning.contains("3 of 3 nodes") && warning.contains("while one node is away"), "{warning}");
        let warning = SlotQuorum { n: 6, t: 3 }.warning().unwrap();
        assert!(warning.contains("5 of 6 nodes") && warning.contains("more than 1 are"), "{warning}");
        assert_eq!(SlotQuorum { n: u16::MAX, t: u16::MAX - 1 }.need(), u16::MAX);
    }
}

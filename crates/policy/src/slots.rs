//! Signing rules as state that only grows: at most one message for a slot.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use theta_names::SlotOrder;
use theta_statements::{Digest, Name};

/// Whose slots: those of one signing rule for one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotScope<'a> {
    /// The key's name; empty for a request without one.
    pub key: &'a str,
    /// The signing rule's name.
    pub rule: &'a str,
}

/// What the state says to a message for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SlotDecision {
    /// It is the first, and from now on the only one.
    Allowed,
    /// It is the one that was allowed before.
    Same,
    /// Another was allowed before.
    Conflict {
        /// That one's digest.
        previous: Digest,
    },
    /// The slot is over, without saying what was decided for it.
    Below {
        /// The highest slot that is over.
        mark: u64,
    },
}

/// What an allowed request holds of a slot. Before anything that hangs on a secret leaves for the request, the slot must be
/// certified for its digest: see `spec/policy.md`, "Slots".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlotClaim {
    /// The key's name, without a version; empty for a request without one.
    pub key: String,
    /// The signing rule's name.
    pub rule: Name,
    /// The slot.
    pub slot: u64,
    /// Of the operation and the message.
    pub digest: Digest,
    /// What this node remembers of the slot.
    pub standing: SlotStanding,
}

/// How a request's message stands with what a node remembers of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotStanding {
    /// The slot is this message's here, durably: the node promises it.
    Taken,
    /// It is another message's here. The node follows a certificate, and promises nothing.
    Contested {
        /// The digest of that one.
        previous: Digest,
    },
    /// The slot is over here, whatever was decided for it. The node follows a certificate, and promises nothing.
    Over {
        /// The highest slot that is over.
        mark: u64,
    },
}

/// How many nodes of n it takes to certify a slot when t of them may do what they like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotQuorum {
    /// How many nodes promise.
    pub n: u16,
    /// How many of them may promise twice.
    pub t: u16,
}

impl SlotQuorum {
    /// floor((n + t) / 2) + 1. Two sets of so many have 2 * need - n > t nodes in common: one of them is honest, and promises
    /// once.
    #[must_use]
    pub const fn need(self) -> u16 {
        // The mean of two numbers of 16 bits is one, too; only n = t = 65,535 has no successor, and no group.
        self.n.midpoint(self.t).saturating_add(1)
    }

    /// How many nodes may be away, or promise nothing, without stopping slots.
    #[must_use]
    pub const fn spare(self) -> u16 {
        self.n.saturating_sub(self.need())
    }

    /// What people should know before they rely on it, in one line; `None` if t nodes may be away.
    #[must_use]
    pub fn warning(self) -> Option<String> {
        let (Self { n, t }, need, spare) = (self, self.need(), self.spare());
        (spare < t).then(|| {
            let away = if spare == 0 { "one node is".to_owned() } else { format!("more than {spare} are") };
            format!(
                "slots take the promises of {need} of {n} nodes, so that {t} of them cannot get two messages signed for one: \
                 requests that a signing rule covers stop while {away} away"
            )
        })
    }
}

/// The state could not be read or written: nothing is known, so nothing may be signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SlotStateError(pub String);

/// What a share holder remembers about slots.
///
/// Whoever implements it promises: [`SlotDecision::Allowed`] is given once for each scope and slot, over all threads and
/// restarts; it is durable before it is given; later answers for the slot are [`SlotDecision::Same`] for that digest alone,
/// or [`SlotDecision::Below`] for all; what is over stays over.
pub trait SlotState {
    /// Decides for a slot. May block until the decision is durable.
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

    /// The digest that a slot was decided for; `None` if there is none or it is forgotten.
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
                SlotDecision::Conflict { previous: *previous }
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
    /// What a node finds after a restart.
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

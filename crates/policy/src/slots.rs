//! Signing rules as state that only grows: at most one message for a slot.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use crate::Digest;

/// Whose slots: those of one signing rule for one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotScope<'a> {
    /// The key's name; empty for a request without one.
    pub key: &'a str,
    /// The signing rule's name.
    pub rule: &'a str,
}

/// In what order slots may be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotOrder {
    /// In any.
    Any,
    /// Upwards only: a decision ends all lower slots.
    Increasing,
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
    Conflict,
    /// The slot is over, without saying what was decided for it.
    Below {
        /// The highest slot that is over.
        mark: u64,
    },
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
            return Ok(if *previous == digest { SlotDecision::Same } else { SlotDecision::Conflict });
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
}

impl Clone for MemorySlots {
    /// What a node finds after a restart.
    fn clone(&self) -> Self {
        Self(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

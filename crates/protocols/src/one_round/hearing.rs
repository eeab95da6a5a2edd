//! Whose combined values are looked at, and when.
//!
//! An honest party that is no combiner tells a combined value only where it was asked, which happens at ticks. Whoever tells one before is a liar, or has been
//! asked by a party that begins anew; so such values wait, or each of t liars would cost every party a check in each request.

use std::collections::VecDeque;

use bytes::Bytes;
use theta_rounds::PartyId;

/// How many values of parties that are no combiners are looked at after a tick, before the next one.
const AFTER_A_TICK: usize = 2;

/// The combined values that have come and are not looked at yet.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    combiners: Vec<PartyId>,
    /// How many others are heard until the next tick.
    left: usize,
    waiting: VecDeque<(PartyId, Bytes)>,
}

impl Hearing {
    /// These combine.
    pub(super) const fn of(combiners: Vec<PartyId>) -> Self {
        Self { combiners, left: 0, waiting: VecDeque::new() }
    }

    /// A party tells a value: whether that is looked at now. If not, it is kept; each party fills the slot once.
    pub(super) fn hears(&mut self, from: PartyId, combined: &Bytes) -> bool {
        if self.combiners.contains(&from) {
            return true;
        }
        let hears = self.left > 0;
        if hears {
            self.left -= 1;
        } else {
            self.waiting.push_back((from, combined.clone()));
        }
        hears
    }

    /// A tick: some of those that wait are heard now.
    pub(super) const fn tick(&mut self) {
        self.left = AFTER_A_TICK;
    }

    /// The next one that has waited, if it is heard now.
    pub(super) fn next(&mut self) -> Option<(PartyId, Bytes)> {
        if self.left == 0 {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.left -= 1;
        Some(next)
    }

    /// Forgets what a party told.
    pub(super) fn exclude(&mut self, party: PartyId) {
        self.waiting.retain(|(from, _)| *from != party);
    }
}

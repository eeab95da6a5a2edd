//! Signing rules as monotone state: at most one message for each slot.
//!
//! A *rule* of a key numbers its slots: heights of a chain, rounds of a beacon, serial numbers. The first digest
//! decided for a slot is the only one. Each rule has a *mark*: slots up to it are refused, so that the digests decided
//! for them can be forgotten. Marks never fall.

use theta_groups::Secret;
use theta_names::{KeyName, RuleName, SlotDecision, SlotOrder};

use crate::codec::{Decoder, encoder};
use crate::database::{Rows, Settings, Table};
use crate::name::terminated;
use crate::{Store, StoreError, Transaction};

/// A rule of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotRule {
    /// Which key.
    pub key: KeyName,
    /// Which of its rules.
    pub rule: RuleName,
}

impl SlotRule {
    /// Parses the rule from a key of `marks`, or from one of `slots`, where a slot follows: the inverse of `prefix` and
    /// `slot_key`.
    pub(crate) fn parse(prefix: &[u8]) -> Option<Self> {
        let mut parts = prefix.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let mut name = || core::str::from_utf8(parts.next()?).ok();
        let rule = Self { key: name()?.parse().ok()?, rule: name()?.parse().ok()? };
        parts.next().is_none().then_some(rule)
    }

    /// key || 0 || rule || 0.
    pub(crate) fn prefix(&self) -> Vec<u8> {
        let mut prefix = terminated(self.key.as_str());
        prefix.extend_from_slice(&terminated(self.rule.as_str()));
        prefix
    }

    fn slot_key(&self, slot: u64) -> Vec<u8> {
        let mut key = self.prefix();
        key.extend_from_slice(&slot.to_be_bytes());
        key
    }
}

impl Store {
    /// Decides about a message for a slot, durably before this returns; calls of many threads share one commit.
    ///
    /// # Errors
    /// [`StoreError`]: whether it was decided is unknown, so nothing may be signed.
    pub fn decide(
        &self,
        rule: SlotRule,
        slot: u64,
        digest: [u8; 32],
        order: SlotOrder,
    ) -> Result<SlotDecision, StoreError> {
        self.write_grouped(move |transaction| transaction.decide(&rule, slot, digest, order))?
    }

    /// The digest that was decided for a slot; `None` if there is none, or if it was forgotten when the mark rose.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn slot_digest(&self, rule: &SlotRule, slot: u64) -> Result<Option<[u8; 32]>, StoreError> {
        let record = self.snapshot()?.row(Table::Slots, &rule.slot_key(slot))?;
        record.map(|record| decode_digest(record.expose())).transpose()
    }
}

impl Transaction<'_> {
    /// Decides about a message for a slot. The answer is valid only once this transaction is committed.
    ///
    /// # Errors
    /// [`StoreError`]: whether it was decided is unknown, so nothing may be signed.
    pub fn decide(
        &mut self,
        rule: &SlotRule,
        slot: u64,
        digest: [u8; 32],
        order: SlotOrder,
    ) -> Result<SlotDecision, StoreError> {
        if let Some(mark) = mark(&self.rows, rule)?.filter(|mark| slot <= *mark) {
            return Ok(SlotDecision::Below { mark });
        }
        let key = rule.slot_key(slot);
        if let Some(record) = self.rows.row(Table::Slots, &key)? {
            let previous = decode_digest(record.expose())?;
            return Ok(if previous == digest { SlotDecision::Same } else { SlotDecision::Conflict { previous } });
        }
        self.rows.put(Table::Slots, &key, encoder(32).raw(&digest).finish())?;
        if order == SlotOrder::Increasing
            && let Some(over) = slot.checked_sub(1)
        {
            self.raise_slot_mark(rule, over)?;
        }
        Ok(SlotDecision::Allowed)
    }

    /// Refuses all slots of the rule up to this one from now on, and forgets what was decided for them. A mark below
    /// the present one changes nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn raise_slot_mark(&mut self, rule: &SlotRule, slot: u64) -> Result<(), StoreError> {
        if mark(&self.rows, rule)?.is_some_and(|mark| mark >= slot) {
            return Ok(());
        }
        let prefix = rule.prefix();
        self.rows.put(Table::Marks, &prefix, mark_record(slot))?;
        let mut over = Vec::new();
        self.rows.visit(Table::Slots, &prefix, &prefix, &mut |key, _| {
            let below = key <= rule.slot_key(slot).as_slice();
            if below {
                over.push(key.to_vec());
            }
            Ok(below)
        })?;
        over.iter().try_for_each(|key| self.rows.remove(Table::Slots, key))
    }
}

/// The rule's own mark, or the bound that a restored store has for rules without one.
fn mark(rows: &impl Rows, rule: &SlotRule) -> Result<Option<u64>, StoreError> {
    match rows.row(Table::Marks, &rule.prefix())? {
        Some(record) => decode_mark(record.expose()).map(Some),
        None => Settings::slot_floor(rows),
    }
}

/// The digest that was decided for a slot.
pub(crate) fn decode_digest(record: &[u8]) -> Result<[u8; 32], StoreError> {
    let mut decoder = Decoder::new(Table::Slots.name(), record)?;
    let digest = decoder.array()?;
    decoder.finish(digest)
}

/// The record of a mark.
pub(crate) fn mark_record(slot: u64) -> Secret<Vec<u8>> {
    encoder(8).u64(slot).finish()
}

/// The slot of a mark.
pub(crate) fn decode_mark(record: &[u8]) -> Result<u64, StoreError> {
    let mut decoder = Decoder::new(Table::Marks.name(), record)?;
    let slot = decoder.u64()?;
    decoder.finish(slot)
}

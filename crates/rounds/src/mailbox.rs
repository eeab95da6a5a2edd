//! The messages of each party: one payload for each slot.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use bytes::Bytes;

use crate::{PartyId, Slot};

/// The most messages of one party that wait for their round. Honest parties are ahead by a round or two.
pub const EARLY_MESSAGES: usize = 64;

/// The most bytes of one party's messages that wait for their round.
pub const EARLY_BYTES: usize = 1 << 20;

/// The most bytes of one party's messages that an instance keeps, to tell duplicates from contradictions, with
/// [`SLOT_BYTES`] for each. Honest parties send far less.
pub const KEPT_BYTES: usize = 2 * EARLY_BYTES + SMALL_BYTES;

/// What a party has sent stays, to tell duplicates from contradictions, while it is no more than this: see [`Protocol::is_over`](crate::Protocol::is_over).
pub const SMALL_BYTES: usize = 64 << 10;

/// So many bytes of a party's room does a slot take, whatever is kept of it: what it costs in memory beside its payload.
pub const SLOT_BYTES: usize = 64;

/// So many slots of a party stay filled when they have been emptied. Honest parties fill some hundreds between two rests.
const MOST_EMPTIED: usize = 1 << 10;

/// What became of a message.
pub(crate) enum Stored {
    /// Its round has come: process it now.
    Due(Bytes),
    /// Kept until its round comes.
    Early,
    /// The same bytes as before in the same slot, or any in a slot that has been emptied.
    Duplicate,
    /// Other bytes in a slot that is filled.
    Conflict {
        /// The payload that came first.
        first: Bytes,
        /// The payload that contradicts it.
        second: Bytes,
    },
    /// Its sender has no more room, or it is early and its sender's room for early messages is full. It is dropped
    /// without blame and without trace, so that it can be sent again.
    NoRoom,
}

#[derive(Default)]
struct Mailbox {
    /// The payload of each slot; nothing if it was emptied.
    slots: BTreeMap<Slot, Option<Bytes>>,
    bytes: usize,
    early_messages: usize,
    early_bytes: usize,
}

/// The mailboxes of all parties that sent something.
#[derive(Default)]
pub(crate) struct Mailboxes {
    parties: BTreeMap<PartyId, Mailbox>,
    /// The payloads that wait, by slot and sender.
    early: BTreeSet<(Slot, PartyId)>,
}

impl Mailboxes {
    /// Takes a payload for a slot. Payloads are compared and not hashed: this is the hot path.
    pub(crate) fn store(&mut self, from: PartyId, slot: Slot, payload: Bytes, early: bool) -> Stored {
        let mailbox = self.parties.entry(from).or_default();
        let vacant = match mailbox.slots.entry(slot) {
            Entry::Occupied(filled) => {
                return match filled.get() {
                    Some(first) if *first != payload => Stored::Conflict { first: first.clone(), second: payload },
                    _ => Stored::Duplicate,
                };
            }
            Entry::Vacant(vacant) => vacant,
        };
        let sum = mailbox.bytes.saturating_add(payload.len()).saturating_add(SLOT_BYTES);
        if sum > KEPT_BYTES {
            return Stored::NoRoom;
        }
        // A payload is often a slice of a whole network frame. A copy of it does not keep the frame alive.
        let payload = Bytes::copy_from_slice(&payload);
        if !early {
            vacant.insert(Some(payload.clone()));
            mailbox.bytes = sum;
            return Stored::Due(payload);
        }
        let bytes = mailbox.early_bytes.saturating_add(payload.len());
        if mailbox.early_messages >= EARLY_MESSAGES || bytes > EARLY_BYTES {
            return Stored::NoRoom;
        }
        vacant.insert(Some(payload));
        mailbox.bytes = sum;
        mailbox.early_messages += 1;
        mailbox.early_bytes = bytes;
        self.early.insert((slot, from));
        Stored::Early
    }

    /// Whether it is known that a party has filled a slot.
    pub(crate) fn has(&self, party: PartyId, slot: Slot) -> bool {
        self.parties.get(&party).is_some_and(|mailbox| mailbox.slots.contains_key(&slot))
    }

    /// The next kept message that is due, lowest slot and party first: one whose number is `due` at most, or a question
    /// of any number.
    pub(crate) fn next_due(&mut self, due: u16, is_question: impl Fn(Slot) -> bool) -> Option<(PartyId, Slot, Bytes)> {
        let found = self.early.iter().find(|(slot, _)| slot.number <= due || is_question(*slot));
        let &(slot, from) = found?;
        self.early.remove(&(slot, from));
        let mailbox = self.parties.get_mut(&from)?;
        let payload = mailbox.slots.get(&slot)?.clone()?;
        mailbox.early_messages -= 1;
        mailbox.early_bytes -= payload.len();
        Some((from, slot, payload))
    }

    /// The senders and slots of the messages that still wait.
    pub(crate) fn into_early(self) -> impl Iterator<Item = (PartyId, Slot)> {
        self.early.into_iter().map(|(slot, from)| (from, slot))
    }

    /// Keeps of the slots that are `over`, and do not wait, only that they were filled, and nothing of those of which that was all that was kept, or of
    /// more than honest parties fill.
    pub(crate) fn empty(&mut self, over: impl Fn(Slot) -> bool) {
        self.empty_from(0, over);
    }

    /// The same, of parties that have sent more than [`SMALL_BYTES`].
    pub(crate) fn empty_large(&mut self, over: impl Fn(Slot) -> bool) {
        self.empty_from(SMALL_BYTES, over);
    }

    /// Of parties with more bytes than this: each slot counts for some, so that who has none has no slots.
    fn empty_from(&mut self, most: usize, over: impl Fn(Slot) -> bool) {
        for (party, mailbox) in self.parties.iter_mut().filter(|(_, mailbox)| mailbox.bytes > most) {
            let Mailbox { slots, bytes, .. } = mailbox;
            let mut stay = 0;
            slots.retain(|slot, payload| {
                if !over(*slot) || self.early.contains(&(*slot, *party)) {
                    return true;
                }
                let emptied = payload.take();
                let stays = emptied.is_some() && stay < MOST_EMPTIED;
                stay += usize::from(stays);
                let slot = if stays { 0 } else { SLOT_BYTES };
                *bytes = bytes.saturating_sub(emptied.map_or(0, |payload| payload.len()) + slot);
                stays
            });
        }
    }

    /// How many bytes of memory they take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.parties.values().map(|mailbox| mailbox.bytes).sum()
    }

    /// Forgets a party.
    pub(crate) fn remove(&mut self, party: PartyId) {
        if self.parties.remove(&party).is_some_and(|mailbox| mailbox.early_messages > 0) {
            self.early.retain(|(_, from)| *from != party);
        }
    }
}

//! Helps nodes that have not finished a ceremony that ended here.
//!
//! A node that has finished goes on sending its epilogue. It keeps nothing that opens what was sealed in the ceremony,
//! so it cannot do more: a holder with a false dealing that comes when no node runs the ceremony any more ends without
//! a share.

use bytes::Bytes;
use theta_ceremonies::Remains;
use theta_names::NodeId;

use super::Helped;
use crate::Custodian;
use crate::CustodyError;
use crate::custodian::message::{Id, Message, Part};
use crate::custodian::work::Work;
use crate::request::To;

/// The longest summary that is read: more than that of the largest group.
const LONGEST: usize = 1 << 20;

/// Ticks for which an epilogue that was read is kept in memory.
const KEPT: u64 = 40;

impl Custodian {
    /// Removes the epilogue from memory after some time, or when the store has it no more.
    pub(in crate::custodian) fn forget_helped(&mut self) {
        let (now, ended) = (self.ticks, &self.ended);
        self.helped.take_if(|helped| {
            now >= helped.read_at.saturating_add(KEPT) || !ended.get(&helped.id).is_some_and(|ended| ended.epilogue)
        });
    }

    /// Answers a peer that asks in a ceremony that ended here.
    pub(in crate::custodian) fn help(
        &mut self,
        peer: NodeId,
        (id, plan): (&Id, Id),
        (part, asked): (Part, &Bytes),
        work: &mut Work,
    ) -> Result<(), CustodyError> {
        let now = self.ticks;
        let may = |ended: &mut super::Ended| ended.epilogue && ended.may_answer(peer, now);
        let asks = part == Part::Summary && asked.len() <= LONGEST;
        if !asks || !self.ended.get_mut(id).is_some_and(may) {
            return Ok(());
        }
        // Many peers ask when a ceremony ends, and most of them lack little.
        if self.helped.as_ref().is_none_or(|helped| helped.id != *id) {
            let parts = self.store.ceremony_inputs(id)?;
            let parts: Vec<Bytes> = parts.iter().map(|part| Bytes::copy_from_slice(part.expose())).collect();
            self.helped = Some(Helped { id: *id, remains: Remains::read(&parts), read_at: now });
        }
        let messages = self.helped.iter().flat_map(|helped| helped.remains.for_author_of(asked));
        for payload in messages {
            work.send(To::One(peer), &Message::Ceremony { id: plan, part: Part::Items, payload });
        }
        Ok(())
    }
}

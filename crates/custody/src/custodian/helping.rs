//! Helps nodes that have not finished a ceremony that ended here.
//!
//! A node that has finished goes on sending its epilogue. It keeps nothing that opens what was sealed in the ceremony,
//! so it cannot do more: a holder with a false dealing that comes when no node runs the ceremony any more ends without
//! a share.

use bytes::Bytes;
use theta_ceremonies::remains_for;
use theta_names::NodeId;

use super::Custodian;
use super::message::{Id, Message, Part};
use super::work::Work;
use crate::CustodyError;
use crate::request::To;

/// The longest summary that is read: more than that of the largest group.
const LONGEST: usize = 1 << 20;

impl Custodian {
    /// Answers a peer that asks in a ceremony that ended here.
    pub(super) fn help(
        &mut self,
        peer: NodeId,
        id: &Id,
        (part, asked): (Part, &Bytes),
        work: &mut Work,
    ) -> Result<(), CustodyError> {
        let now = self.ticks;
        let may = |ended: &mut super::Ended| ended.epilogue && ended.may_answer(peer, now);
        let asks = part == Part::Summary && asked.len() <= LONGEST;
        if !asks || !self.ended.get_mut(id).is_some_and(may) {
            return Ok(());
        }
        let remains = self.store.ceremony_inputs(id)?;
        let remains: Vec<Bytes> = remains.iter().map(|part| Bytes::copy_from_slice(part.expose())).collect();
        // Who is almost done as well lacks little.
        for payload in remains_for(&remains, asked) {
            work.send(To::One(peer), &Message::Ceremony { id: *id, part: Part::Items, payload });
        }
        Ok(())
    }
}

//! Helps nodes that have not finished a ceremony that ended here.
//!
//! A node that has finished goes on sending its epilogue. It keeps nothing that opens what was sealed in the ceremony,
//! so it cannot do more: a holder with a false dealing that comes when no node runs the ceremony any more ends without
//! a share.

use bytes::Bytes;
use theta_names::NodeId;

use crate::Custodian;
use crate::CustodyError;
use crate::custodian::message::{Id, Message, Part};
use crate::custodian::work::Work;
use crate::request::To;

impl Custodian {
    /// Answers a peer that sends messages of a ceremony that ended here.
    pub(in crate::custodian) fn help(
        &mut self,
        peer: NodeId,
        (id, plan): (&Id, Id),
        part: Part,
        work: &mut Work,
    ) -> Result<(), CustodyError> {
        let now = self.ticks;
        let may = |ended: &mut super::Ended| ended.epilogue && ended.may_answer(peer, now);
        if part == Part::Items || !self.ended.get_mut(id).is_some_and(may) {
            return Ok(());
        }
        let remains = self.store.ceremony_inputs(id)?;
        let remains: Vec<Bytes> = remains.iter().map(|part| Bytes::copy_from_slice(part.expose())).collect();
        for payload in remains {
            work.send(To::One(peer), &Message::Ceremony { id: plan, part: Part::Items, payload });
        }
        Ok(())
    }
}

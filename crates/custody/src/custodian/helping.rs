//! Helping those who are not done with a ceremony that ended here.
//!
//! Who has finished goes on helping: it tells what it knows, and it releases what a false dealer dealt to it when one who comes
//! late complains. Old shares are destroyed, so no machine waits for that; one is made again of what is left of the ceremony.

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_protocols::ceremony::{ITEMS, Kind, Memory, SUMMARY, statements_of, summary_of};
use theta_rounds::{Channel, Effect, Input, PartyId};

use super::Custodian;
use super::message::{Id, Message, Part};
use super::open::decode_subject;
use super::running::seed_of;
use super::work::Work;
use crate::CustodyError;
use crate::ceremony::begin;
use crate::request::To;

impl Custodian {
    /// A peer speaks in a ceremony that ended here.
    pub(super) fn help(
        &mut self,
        peer: PartyId,
        id: &Id,
        part: Part,
        payload: Bytes,
        work: &mut Work,
    ) -> Result<(), CustodyError> {
        let now = self.ticks;
        let may = |ended: &mut super::Ended| ended.epilogue && ended.may_answer(peer, part, now);
        if (part == Part::Items && !complains(&payload, peer)) || !self.ended.get_mut(id).is_some_and(may) {
            return Ok(());
        }
        let remains = self.store.ceremony_inputs(id)?;
        let remains: Vec<Bytes> = remains.iter().map(|part| Bytes::copy_from_slice(part.expose())).collect();
        let (answers, asks) = match part {
            // How it ended; and what has the peer said that was not heard here?
            Part::Summary => (remains.clone(), Some(summary_of(&remains))),
            Part::Items => (self.reply(peer, id, &remains, payload)?, None),
        };
        let answers = answers.into_iter().map(|payload| (Part::Items, payload));
        let asks = asks.map(|summary| (Part::Summary, Bytes::from(summary)));
        for (part, payload) in answers.chain(asks) {
            work.send(To::One(peer), &Message::Ceremony { id: *id, part, payload });
        }
        Ok(())
    }

    /// What a machine says to a message that knows what is left of the ceremony.
    fn reply(&self, peer: PartyId, id: &Id, remains: &[Bytes], payload: Bytes) -> Result<Vec<Bytes>, CustodyError> {
        let (Some(ceremony), Some(keys)) = (self.store.ceremony(id)?, &self.keys) else { return Ok(Vec::new()) };
        let (_, subject) = decode_subject(&ceremony.subject).map_err(CustodyError::Malformed)?;
        let Ok((_, mut run)) = begin(&subject, &self.group, keys, None, Memory::Lost) else { return Ok(Vec::new()) };
        let mut rng = ChaCha20Rng::from_seed(*seed_of(keys, id).expose());
        let heard = |payload| Input::Message { from: peer, slot: ITEMS, channel: Channel::Broadcast, payload };
        run.handle(Input::Start, &mut rng);
        for part in remains {
            run.handle(heard(part.clone()), &mut rng);
        }
        let said = run.handle(heard(payload), &mut rng).into_iter().filter_map(|effect| match effect {
            Effect::Send { slot, payload, .. } if slot != SUMMARY => Some(payload),
            _ => None,
        });
        Ok(said.collect())
    }
}

/// Whether there is a complaint of a peer's in a message.
fn complains(payload: &[u8], peer: PartyId) -> bool {
    statements_of(payload).any(|statement| {
        statement.author() == peer && matches!(statement.slot().kind, Kind::Complaint | Kind::LateComplaint)
    })
}

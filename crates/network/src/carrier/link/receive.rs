//! What comes from the peer: sealed frames, and the items in them.

use core::time::Duration;
use std::time::Instant;

use bytes::Bytes;

use super::{ACK_FRAMES, Called, GAP_DELAY, Link};
use crate::carrier::{
    dial::shortened,
    frame::SEALED_HEADER_BYTES,
    session::Session,
    stream::{self, ACK_DELAY, Ack, Fate, Item, Lie},
};

/// How soon a frame asks for an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asks {
    Nothing,
    Soon,
    Now,
}

impl Link {
    pub(super) fn receive_sealed(
        &mut self,
        id: [u8; 8],
        number: u64,
        sealed: (&[u8; SEALED_HEADER_BYTES], &[u8]),
        now: Instant,
    ) {
        let right = if self.called.as_ref().is_some_and(|called| called.session.id == id) {
            self.receive_called(number, sealed, now)
        } else if self.answered.as_ref().is_some_and(|answered| answered.session.id == id) {
            self.receive_answered(number, sealed, now)
        } else if self.dial.unconfirmed(&id).is_some() {
            self.confirm(id, number, sealed, now)
        } else {
            // What was on its way when a session was renewed is lost, and no invention; its keys are gone, so that nobody can say more.
            self.past.contains(&id)
        };
        if !right {
            self.counters.false_frames.increment();
        }
    }

    /// The first frame of a session that this node has called for: the peer has it, too.
    fn confirm(&mut self, id: [u8; 8], number: u64, sealed: (&[u8; SEALED_HEADER_BYTES], &[u8]), now: Instant) -> bool {
        let opens = |session: &Session| session.open(number, sealed.0, sealed.1).is_some();
        if !self.dial.unconfirmed(&id).is_some_and(opens) {
            return false;
        }
        let Some(session) = self.dial.confirmed(&id) else { return false };
        let renewal = now + shortened(self.local.limits.renew_after, &*self.local.random);
        let before = self.called.replace(Called { session, since: now, renewal, heard: now });
        self.remember(before.map(|before| before.session.id));
        self.suspected = None;
        self.outgoing.restart();
        if core::mem::replace(&mut self.stood, true) {
            self.counters.reconnects.increment();
        }
        self.receive_called(number, sealed, now)
    }

    fn receive_called(&mut self, number: u64, sealed: (&[u8; SEALED_HEADER_BYTES], &[u8]), now: Instant) -> bool {
        let Some(called) = &mut self.called else { return false };
        let Some(items) = called.session.open(number, sealed.0, sealed.1) else { return false };
        called.session.keep(number);
        called.heard = now;
        if self.suspected.is_some_and(|since| since < now) {
            self.suspected = None;
        }
        self.take_items(items, now);
        true
    }

    fn receive_answered(&mut self, number: u64, sealed: (&[u8; SEALED_HEADER_BYTES], &[u8]), now: Instant) -> bool {
        if !self.incoming.has_room() {
            // It comes again when the application has taken what is here.
            return true;
        }
        let Some(answered) = &self.answered else { return false };
        let Some(items) = answered.session.open(number, sealed.0, sealed.1) else { return false };
        let Some(asks) = self.take_items(items, now) else { return true };
        let Some(answered) = &mut self.answered else { return true };
        if answered.session.came().greatest().is_none_or(|greatest| number > greatest) {
            answered.greatest_came = now;
        }
        answered.session.keep(number);
        answered.frames = answered.frames.saturating_add(1);
        let patience = match asks {
            Asks::Nothing => return true,
            Asks::Now => Duration::ZERO,
            Asks::Soon if answered.frames >= ACK_FRAMES => Duration::ZERO,
            Asks::Soon if answered.session.came().has_gaps() => GAP_DELAY,
            Asks::Soon => ACK_DELAY,
        };
        let due = now + patience;
        answered.due = Some(answered.due.map_or(due, |before| before.min(due)));
        true
    }

    /// Takes what a frame has in it. `None`: there was no room for some of it.
    fn take_items(&mut self, mut items: Bytes, now: Instant) -> Option<Asks> {
        let (mut asks, mut all, whole) = (Asks::Nothing, true, items.len());
        loop {
            let lie = match stream::take(&mut items) {
                Ok(None) => break,
                Err(_) => Some(Lie::Malformed),
                Ok(Some(Item::Ping)) => {
                    asks = Asks::Now;
                    None
                }
                Ok(Some(Item::Piece { number, last, bytes })) => {
                    asks = asks.max(Asks::Soon);
                    match self.incoming.put(number, last, (bytes, whole)) {
                        Ok(fate) => {
                            all &= fate == Fate::Taken;
                            None
                        }
                        Err(lie) => Some(lie),
                    }
                }
                Ok(Some(Item::Ack(ack))) => self.take_ack(&ack, now).err(),
            };
            if let Some(lie) = lie {
                self.counters.protocol_errors.increment();
                tracing::debug!(%lie, "a peer breaks the protocol inside its session");
                break;
            }
        }
        all.then_some(asks)
    }

    fn take_ack(&mut self, ack: &Ack, now: Instant) -> Result<(), Lie> {
        match &mut self.called {
            Some(called) if called.session.id == ack.session => {
                called.heard = now;
                self.outgoing.acknowledged(ack, called.session.next(), now)
            }
            // Of a session of before.
            _ => Ok(()),
        }
    }
}

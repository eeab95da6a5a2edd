//! How a node calls its peer: until the session stands, and again when it is old or silent. The session of before stays until another one stands.

use core::time::Duration;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use rustls::crypto::SecureRandom;

use super::{
    config::CarrierLimits,
    frame::Signed,
    handshake::{Attempt, Beginning, Pair},
    session::Session,
    stream,
};
use crate::Identity;

/// An attempt is given up for another one after so many frames.
const MOST_HELLOS: u32 = 16;
/// An end that is not confirmed after so many frames is given up: the peer has forgotten what it answered.
const MOST_FINISHES: u32 = 4;

#[derive(Debug)]
enum State {
    /// There is nothing to call for.
    Rest,
    Calling(Attempt),
    Finishing(Box<Session>, Bytes),
}

#[derive(Debug)]
pub(super) struct Dial {
    pair: Pair,
    state: State,
    /// The session of the attempt before, whose end was not confirmed in time. It may be yet: the carrier may be slow.
    late: Option<Box<Session>>,
    /// When the next frame is due, and the pause after it.
    next: Instant,
    pause: Duration,
    sent: u32,
}

impl Dial {
    pub(super) const fn new(pair: Pair, now: Instant) -> Self {
        Self { pair, state: State::Rest, late: None, next: now, pause: Duration::ZERO, sent: 0 }
    }

    pub(super) const fn is_resting(&self) -> bool {
        matches!(self.state, State::Rest)
    }

    /// Begins to call at once.
    pub(super) fn call(&mut self, limits: &CarrierLimits, random: &dyn SecureRandom, now: Instant) {
        if let Some(attempt) = Attempt::new(self.pair, random) {
            (self.state, self.next, self.pause, self.sent) = (State::Calling(attempt), now, limits.call_min, 0);
        }
    }

    /// The next frames, when they are due.
    pub(super) fn frames(&mut self, limits: &CarrierLimits, random: &dyn SecureRandom, now: Instant) -> Vec<Bytes> {
        if self.is_resting() || now < self.next {
            return Vec::new();
        }
        let given_up = match &self.state {
            State::Rest => false,
            State::Calling(_) => self.sent >= MOST_HELLOS,
            State::Finishing(..) => self.sent >= MOST_FINISHES,
        };
        if given_up {
            let pause = self.pause;
            if let State::Finishing(session, _) = core::mem::replace(&mut self.state, State::Rest) {
                self.late = Some(session);
            }
            self.call(limits, random, now);
            self.pause = pause;
        }
        self.sent = self.sent.saturating_add(1);
        self.next = now + shortened(self.pause, random);
        self.pause = self.pause.saturating_mul(2).min(limits.call_max);
        match &mut self.state {
            State::Rest => Vec::new(),
            State::Calling(attempt) => vec![attempt.hello()],
            State::Finishing(session, finish) => {
                let mut items = BytesMut::new();
                stream::put_ping(&mut items);
                let ping = session.seal(&items).map(|(_, frame)| frame);
                core::iter::once(finish.clone()).chain(ping).collect()
            }
        }
    }

    /// The peer is there: a call to it need not wait for its turn.
    pub(super) fn hasten(&mut self, now: Instant) {
        if matches!(self.state, State::Calling(_)) {
            self.next = self.next.min(now);
        }
    }

    /// When there will be frames.
    pub(super) const fn due(&self) -> Option<Instant> {
        if self.is_resting() { None } else { Some(self.next) }
    }

    /// Whether an answer claims to be to the present attempt.
    pub(super) fn awaits(&self, attempt: &[u8; 16]) -> bool {
        matches!(&self.state, State::Calling(own) if own.is_answered_by(attempt))
    }

    /// Takes an answer; says whether it was right.
    pub(super) fn answered(
        &mut self,
        (share, signed): (&[u8; 32], &Signed),
        identity: &Identity,
        beginning: Beginning,
        (limits, now): (&CarrierLimits, Instant),
    ) -> bool {
        let State::Calling(attempt) = &self.state else { return false };
        let Some((finish, session)) = attempt.finish((share, signed), identity, beginning) else { return false };
        (self.state, self.next, self.pause, self.sent) =
            (State::Finishing(Box::new(session), finish), now, limits.call_min, 0);
        true
    }

    /// The session of this name, if its end is not confirmed yet.
    pub(super) fn unconfirmed(&self, id: &[u8; 8]) -> Option<&Session> {
        let present = match &self.state {
            State::Finishing(session, _) => Some(session),
            _ => None,
        };
        present.into_iter().chain(&self.late).map(|session| &**session).find(|session| session.id == *id)
    }

    /// The peer has confirmed it. There is nothing to call for then, unless that is the session of the attempt before and the present one is at
    /// its end as well.
    pub(super) fn confirmed(&mut self, id: &[u8; 8]) -> Option<Session> {
        if let Some(session) = self.late.take_if(|session| session.id == *id) {
            if matches!(self.state, State::Calling(_)) {
                self.state = State::Rest;
            }
            return Some(*session);
        }
        match core::mem::replace(&mut self.state, State::Rest) {
            State::Finishing(session, _) => {
                self.late = None;
                Some(*session)
            }
            other => {
                self.state = other;
                None
            }
        }
    }
}

/// A pause, shortened at random by up to half, so that nodes do not get in step.
pub(super) fn shortened(pause: Duration, random: &dyn SecureRandom) -> Duration {
    let mut byte = [0];
    // Without randomness the pause is not shortened.
    let _ = random.fill(&mut byte);
    let [byte] = byte;
    pause.saturating_sub(pause.saturating_mul(u32::from(byte)) / 512)
}

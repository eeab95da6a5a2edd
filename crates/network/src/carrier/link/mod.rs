//! One peer behind a carrier, as a machine without clock, task or socket: frames and times in, frames and messages out.
//!
//! Each node calls each peer, and sends messages in the session that it has called for; in the one that the peer has called for it only
//! receives, as in the mesh. So two that call each other at the same time do not get in each other's way, and whoever restarts calls.

mod receive;

use core::time::Duration;
use std::{collections::VecDeque, sync::Arc, time::Instant};

use bytes::{Bytes, BytesMut};
use rustls::crypto::SecureRandom;

use super::{
    budget::{Budget, Share, Slot},
    config::{CarrierLimits, MOST_FRAME_BYTES},
    dial::Dial,
    frame::{Frame, Opening, Route, SEALED_COSTS, Signed, tag},
    handshake::{Accepted, Beginning, Pair, Responder},
    session::Session,
    stream::{self, ACK_BYTES, Ack, Filled, Incoming, Outbox, Outgoing, PIECE_HEADER_BYTES},
};
use crate::{Fingerprint, Identity, mesh::PeerCounters};

/// A session is used no more after so many times that it should have been renewed, even if there is no other.
const MOST_RENEWALS: u32 = 144;
/// Frames that wait for the carrier; no more are made meanwhile.
const MOST_WAITING: usize = 8;
/// Frames after which an acknowledgement is due at once.
const ACK_FRAMES: u32 = 16;
/// How soon an acknowledgement is due if frames are missing.
const GAP_DELAY: Duration = Duration::from_millis(1);
/// The sessions of before that are remembered by name.
const MOST_PAST: usize = 4;
/// How long a peer that has restarted may take to show that it still knows the session.
const SUSPICION: Duration = Duration::from_millis(300);

/// What all links of a node share.
#[derive(Debug)]
pub struct Local {
    /// The key that the peers have pinned for this node.
    pub identity: Identity,
    /// Bounds and times.
    pub limits: CarrierLimits,
    /// What handshakes may cost.
    pub budget: Budget,
    /// Where secrets come from.
    pub random: Box<dyn SecureRandom>,
}

/// The session that this node has called for.
#[derive(Debug)]
struct Called {
    session: Session,
    since: Instant,
    /// The session is renewed then.
    renewal: Instant,
    /// When the peer last sealed something in it.
    heard: Instant,
}

/// The session that the peer has called for, and what is to be acknowledged in it.
#[derive(Debug)]
struct Answered {
    session: Session,
    since: Instant,
    due: Option<Instant>,
    frames: u32,
    /// When the frame with the greatest number came.
    greatest_came: Instant,
}

/// One peer.
#[derive(Debug)]
pub struct Link {
    local: Arc<Local>,
    counters: Arc<PeerCounters>,
    share: Share,
    boot: [u8; 16],
    route: Route,
    /// The pair in which the peer calls.
    answers: Pair,
    dial: Dial,
    called: Option<Called>,
    responder: Responder,
    answered: Option<Answered>,
    /// The names of the last sessions that others have taken the place of, whose frames may still be on their way.
    past: VecDeque<[u8; 8]>,
    outgoing: Outgoing,
    incoming: Incoming,
    hello: Slot,
    answer: Slot,
    finish: Slot,
    /// Which of the three is looked at first.
    turn: usize,
    /// When a step of a handshake may be computed again.
    handshake_due: Option<Instant>,
    /// The peer has restarted then, and may not know the session any more.
    suspected: Option<Instant>,
    /// A sign of life is asked for with the next frame.
    ping: bool,
    /// A session that this node has called for has stood before.
    stood: bool,
    frames: VecDeque<Bytes>,
    keepalive: Duration,
    dead_after: Duration,
}

impl Link {
    /// A link to the owner of a pinned key. `boot` is random, and stands for this life of this node. `None` only if there is no randomness.
    #[must_use]
    pub fn new(
        local: Arc<Local>,
        peer: Fingerprint,
        boot: [u8; 16],
        outbox: Arc<Outbox>,
        counters: Arc<PeerCounters>,
        now: Instant,
    ) -> Option<Self> {
        let own = local.identity.fingerprint();
        let frame_bytes = local.limits.frame_bytes;
        let piece_bytes = frame_bytes.saturating_sub(SEALED_COSTS + ACK_BYTES + PIECE_HEADER_BYTES);
        Some(Self {
            share: local.budget.share(),
            boot,
            route: Route { to: tag(&own), from: tag(&peer) },
            answers: Pair { initiator: peer, responder: own },
            dial: Dial::new(Pair { initiator: own, responder: peer }, now),
            called: None,
            responder: Responder::new(&*local.random)?,
            answered: None,
            past: VecDeque::with_capacity(MOST_PAST),
            outgoing: Outgoing::new(outbox, piece_bytes, frame_bytes),
            incoming: Incoming::new(local.limits.message_bytes),
            hello: Slot::default(),
            answer: Slot::default(),
            finish: Slot::default(),
            turn: 0,
            handshake_due: None,
            suspected: None,
            ping: false,
            stood: false,
            frames: VecDeque::new(),
            keepalive: local.limits.keepalive,
            dead_after: local.limits.dead_after,
            counters,
            local,
        })
    }

    /// Among many peers signs of life are asked for less often.
    pub fn set_silence(&mut self, keepalive: Duration, dead_after: Duration) {
        (self.keepalive, self.dead_after) = (keepalive, dead_after);
    }

    /// Takes a frame from the carrier, whoever has made it.
    pub fn receive(&mut self, bytes: Bytes, now: Instant) {
        let parsed = Frame::parse(bytes.clone()).filter(|(route, _)| *route == self.route);
        let Some((_, frame)) = parsed.filter(|_| bytes.len() <= MOST_FRAME_BYTES) else {
            self.counters.false_frames.increment();
            return;
        };
        let random = &*self.local.random;
        match frame {
            Frame::Sealed { session, number, header, sealed } => {
                self.receive_sealed(session, number, (&header, &sealed), now)
            }
            Frame::Hello(_) => self.hello.put(bytes, random),
            Frame::Finish { .. } => self.finish.put(bytes, random),
            Frame::Answer { attempt, .. } if self.dial.awaits(&attempt) => self.answer.put(bytes, random),
            // A second answer to an attempt that was answered.
            Frame::Answer { .. } => {}
        }
    }

    /// Does everything that has become possible. Frames for the carrier are then in [`next_frame`](Self::next_frame).
    pub fn drive(&mut self, now: Instant) {
        self.end_old_sessions(now);
        self.shake_hands(now);
        self.outgoing.find_lost(now);
        if self.dial.is_resting() && self.needs_call(now) {
            self.dial.call(&self.local.limits, &*self.local.random, now);
        }
        if self.has_room() {
            let frames = self.dial.frames(&self.local.limits, &*self.local.random, now);
            self.frames.extend(frames);
        }
        self.ping |= self.is_ping_due(now);
        while self.has_room() && (self.ping || self.outgoing.has_work()) && self.send_pieces(now) {}
        if self.has_room() {
            self.acknowledge_if_due(now);
        }
    }

    /// The next frame for the carrier.
    pub fn next_frame(&mut self) -> Option<Bytes> {
        self.frames.pop_front()
    }

    /// Puts a frame back that the carrier did not take.
    pub fn put_back(&mut self, frame: Bytes) {
        self.frames.push_front(frame);
    }

    /// Whether frames wait for the carrier.
    #[must_use]
    pub fn has_frames(&self) -> bool {
        !self.frames.is_empty()
    }

    /// The next message from the peer.
    pub fn next_message(&mut self, now: Instant) -> Option<Bytes> {
        let (message, goes_on) = self.incoming.take()?;
        if let Some(answered) = self.answered.as_mut().filter(|_| goes_on) {
            answered.due = Some(now);
        }
        Some(message)
    }

    /// Whether messages to the peer flow.
    #[must_use]
    pub fn is_connected(&self, now: Instant) -> bool {
        self.called.is_some() && !self.is_silent(now)
    }

    /// When [`drive`](Self::drive) has something to do next, if nothing comes before.
    #[must_use]
    pub fn due(&self, now: Instant) -> Instant {
        if !self.has_room() {
            // Whoever takes the frames drives it again.
            return now + self.dead_after;
        }
        let asked = self.outgoing.asked();
        let keepalive =
            self.called.as_ref().map(|called| asked.unwrap_or(called.since).max(called.since) + self.keepalive);
        let held = asked.filter(|_| self.outgoing.is_held()).map(|asked| asked + self.outgoing.long_patience());
        let silence = self.called.as_ref().map(|called| called.heard + self.dead_after);
        let suspicion = self.suspected.map(|since| since + SUSPICION);
        // What has passed already was looked at in this drive.
        let silence = silence.filter(|_| self.dial.is_resting());
        let behind = self.called.as_ref().and_then(|called| self.called_anew_at(called));
        let passed = [keepalive, held, silence, suspicion, behind].into_iter().flatten();
        let times = [
            self.handshake_due,
            self.dial.due(),
            self.outgoing.due(),
            self.answered.as_ref().and_then(|answered| answered.due),
        ];
        let times = times.into_iter().flatten().chain(passed.filter(|at| *at > now));
        times.min().unwrap_or(now + self.keepalive)
    }

    fn has_room(&self) -> bool {
        self.frames.len() < MOST_WAITING
    }

    /// Forgets keys that have been in use for too long, because the carrier lets no handshake pass.
    fn end_old_sessions(&mut self, now: Instant) {
        let longest = self.local.limits.renew_after.saturating_mul(MOST_RENEWALS);
        let is_over = |since: Instant| now.saturating_duration_since(since) >= longest;
        self.called.take_if(|called| is_over(called.since));
        self.answered.take_if(|answered| is_over(answered.since));
    }

    fn beginning(&self) -> Beginning {
        Beginning { boot: self.boot, oldest: self.outgoing.oldest() }
    }

    /// Computes the steps of handshakes that wait, as far as the budget goes. The three kinds have their turns: a flood of one does not take the
    /// checks of the others.
    fn shake_hands(&mut self, now: Instant) {
        self.handshake_due = None;
        loop {
            let waits = [&self.finish, &self.answer, &self.hello].map(|slot| !slot.is_empty());
            let mut turns = (self.turn..).map(|turn| turn % waits.len()).take(waits.len());
            let Some(slot) = turns.find(|slot| waits.get(*slot) == Some(&true)) else { return };
            if let Err(pause) = self.local.budget.take(&mut self.share, now) {
                self.handshake_due = Some(now + pause.max(Duration::from_millis(1)));
                return;
            }
            self.turn = (slot + 1) % waits.len();
            let frame = match slot {
                0 => self.finish.take(),
                1 => self.answer.take(),
                _ => self.hello.take(),
            };
            let right = match frame.and_then(Frame::parse) {
                Some((_, Frame::Finish { opening, sealed })) => self.accept(&opening, &sealed, now),
                Some((_, Frame::Answer { share, signed, .. })) => self.take_answer(&share, &signed, now),
                Some((_, Frame::Hello(opening))) => self.answer_call(&opening),
                _ => true,
            };
            if !right {
                self.counters.false_handshakes.increment();
            }
        }
    }

    fn answer_call(&mut self, opening: &Opening) -> bool {
        // An answer that finds no room is made again when the peer calls again.
        if self.has_room()
            && let Some(answer) = self.responder.answer(opening, &self.answers, &self.local.identity)
        {
            self.frames.push_back(answer);
        }
        true
    }

    fn take_answer(&mut self, share: &[u8; 32], signed: &Signed, now: Instant) -> bool {
        let (beginning, limits) = (self.beginning(), &self.local.limits);
        self.dial.answered((share, signed), &self.local.identity, beginning, (limits, now))
    }

    fn accept(&mut self, opening: &Opening, sealed: &[u8], now: Instant) -> bool {
        let accepted = self.responder.accept(opening, sealed, &self.answers, &*self.local.random);
        let Some(Accepted { session, beginning }) = accepted else { return false };
        if self.incoming.begin(beginning) {
            // Another life of the peer, which may know nothing of the session that this node has called for.
            self.suspected = Some(now);
            self.ping = self.called.is_some();
        }
        let answered = Answered { session, since: now, due: Some(now), frames: 0, greatest_came: now };
        let before = self.answered.replace(answered).map(|before| before.session.id);
        self.remember(before);
        // Whoever has called is there to be called.
        self.dial.hasten(now);
        true
    }

    /// Another session has taken the place of this one.
    fn remember(&mut self, before: Option<[u8; 8]>) {
        let Some(before) = before else { return };
        if self.past.len() >= MOST_PAST {
            self.past.pop_front();
        }
        self.past.push_back(before);
    }

    /// When a peer that waits for what cannot be sent any more is called anew: one that only says so does not set the pace.
    fn called_anew_at(&self, called: &Called) -> Option<Instant> {
        self.outgoing.is_behind().then(|| called.since + self.local.limits.call_min)
    }

    fn needs_call(&self, now: Instant) -> bool {
        match &self.called {
            None => true,
            Some(called) => {
                let anew = self.called_anew_at(called).is_some_and(|at| now >= at);
                anew || self.is_silent(now) || now >= called.renewal || called.session.is_long()
            }
        }
    }

    /// Whether the peer should have been heard in the session that this node has called for, and was not.
    fn is_silent(&self, now: Instant) -> bool {
        let Some(called) = &self.called else { return false };
        let awaited = self.outgoing.asked().is_some_and(|asked| asked > called.heard);
        let forgotten = self.suspected.is_some_and(|since| called.heard <= since && now >= since + SUSPICION);
        awaited && (forgotten || now >= called.heard + self.dead_after)
    }

    fn is_ping_due(&self, now: Instant) -> bool {
        let Some(called) = &self.called else { return false };
        let asked = self.outgoing.asked().unwrap_or(called.since);
        let quiet = now.saturating_duration_since(asked.max(called.since));
        quiet >= self.keepalive || (self.outgoing.is_held() && quiet >= self.outgoing.long_patience())
    }

    /// Makes one frame of pieces in the session that this node has called for. Says whether there was anything for it.
    fn send_pieces(&mut self, now: Instant) -> bool {
        if self.called.is_none() {
            return false;
        }
        let mut items = BytesMut::with_capacity(2048);
        if self.answered.as_ref().is_some_and(|answered| answered.due.is_some())
            && let Some(ack) = self.acknowledgement(now)
        {
            ack.put(&mut items);
        }
        if core::mem::take(&mut self.ping) {
            stream::put_ping(&mut items);
        }
        let room = self.local.limits.frame_bytes.saturating_sub(SEALED_COSTS).saturating_sub(items.len());
        let Filled { pieces, again } = self.outgoing.fill(&mut items, room);
        let Some(called) = &mut self.called else { return false };
        if items.is_empty() {
            return false;
        }
        let Some((number, frame)) = called.session.seal(&items) else {
            // It has come to its end, which renewing it prevents; all that is under way goes on in the next.
            self.called = None;
            return false;
        };
        self.counters.frames_resent.add(again);
        self.outgoing.sent(number, frame.len(), pieces, now);
        self.frames.push_back(frame);
        true
    }

    fn acknowledge_if_due(&mut self, now: Instant) {
        let due = self.answered.as_ref().and_then(|answered| answered.due);
        if due.is_none_or(|due| due > now) {
            return;
        }
        let Some(ack) = self.acknowledgement(now) else { return };
        let mut items = BytesMut::with_capacity(ACK_BYTES);
        ack.put(&mut items);
        match self.answered.as_mut().and_then(|answered| answered.session.seal(&items)) {
            Some((_, frame)) => self.frames.push_back(frame),
            None => self.answered = None,
        }
    }

    /// What is to be said of the peer's session now; then nothing is due.
    fn acknowledgement(&mut self, now: Instant) -> Option<Ack> {
        let (next, limit) = (self.incoming.next(), self.incoming.limit());
        let answered = self.answered.as_mut()?;
        (answered.due, answered.frames) = (None, 0);
        let waited = now.saturating_duration_since(answered.greatest_came).as_micros();
        let came = answered.session.came();
        Some(Ack {
            session: answered.session.id,
            greatest: came.greatest(),
            recent: came.recent(),
            waited: u32::try_from(waited).unwrap_or(u32::MAX),
            next,
            limit,
        })
    }
}

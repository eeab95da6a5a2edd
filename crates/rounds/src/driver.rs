//! The generic driver: everything that protocols would otherwise repeat, done once.

use core::mem;
use std::collections::BTreeSet;

use bytes::Bytes;
use rand_core::CryptoRng;
use theta_names::Channel;

use crate::{
    Abort, Action, Blame, Blames, Bug, Effect, Input, Machine, Offence, Outgoing, PartyId, Progress, Protocol,
    ProtocolMessage, Recipient, Replies, Slot, machine,
    mailbox::{Mailboxes, Stored},
};

/// Answers questions in a protocol of type `P`.
type AnyReplies<P> = Box<dyn Replies<<P as Protocol>::Message>>;

/// The state of an instance.
enum Phase<P: Protocol> {
    AwaitingStart(P),
    Running(P),
    Finished { contributions: (usize, usize) },
}

/// Runs one instance of a [`Protocol`] at one party.
///
/// It refuses messages that come from no other member or are longer than any honest one, bans parties that offend (and
/// tells the protocol to forget them), keeps one payload for each party and slot to tell duplicates from equivocation,
/// holds messages back until they are [due](Protocol::due), answers questions, and after every event goes on until the
/// protocol waits.
///
/// Memory is bounded: of one party's payloads at most [`KEPT_BYTES`](crate::KEPT_BYTES) stay, early ones within [bounds
/// of their own](crate::EARLY_MESSAGES), and the end frees them all.
pub struct Driver<P: Protocol> {
    local: PartyId,
    members: BTreeSet<PartyId>,
    banned: BTreeSet<PartyId>,
    mailboxes: Mailboxes,
    phase: Phase<P>,
    replies: Option<AnyReplies<P>>,
}

impl<P: Protocol> Driver<P> {
    /// Sets up `protocol` at party `local` of the group `members`. Nothing runs before [`Input::Start`].
    pub fn new(local: PartyId, members: impl IntoIterator<Item = PartyId>, protocol: P) -> Self {
        Self {
            local,
            members: members.into_iter().collect(),
            banned: BTreeSet::new(),
            mailboxes: Mailboxes::default(),
            phase: Phase::AwaitingStart(protocol),
            replies: None,
        }
    }

    /// The parties that were seen to misbehave so far, in order.
    pub fn banned(&self) -> impl Iterator<Item = PartyId> {
        self.banned.iter().copied()
    }

    const fn running(&self) -> Option<&P> {
        if let Phase::Running(protocol) = &self.phase { Some(protocol) } else { None }
    }

    const fn running_mut(&mut self) -> Option<&mut P> {
        if let Phase::Running(protocol) = &mut self.phase { Some(protocol) } else { None }
    }

    fn start(&mut self) {
        self.phase = match mem::replace(&mut self.phase, Phase::Finished { contributions: (0, 0) }) {
            Phase::AwaitingStart(protocol) => Phase::Running(protocol),
            other => other,
        };
    }

    /// Whether a party's messages count: it is another member and has not been banned.
    fn hears(&self, party: PartyId) -> bool {
        party != self.local && self.members.contains(&party) && !self.banned.contains(&party)
    }

    /// The longest payload of a slot; `None` after the end.
    fn longest(&self, slot: Slot) -> Option<usize> {
        match &self.phase {
            Phase::AwaitingStart(protocol) | Phase::Running(protocol) => Some(protocol.longest(slot)),
            Phase::Finished { .. } => None,
        }
    }

    /// Whether a second payload of a slot contradicts the first.
    fn is_unique(&self, slot: Slot) -> bool {
        match &self.phase {
            Phase::AwaitingStart(protocol) | Phase::Running(protocol) => protocol.is_unique(slot),
            Phase::Finished { .. } => false,
        }
    }

    /// Whether a message of that slot has to wait. Questions do not wait once the protocol runs.
    fn is_early(&self, slot: Slot) -> bool {
        self.running().is_none_or(|protocol| slot.number > protocol.due() && !P::Message::is_question(slot))
    }

    /// Decides about one message: it is ignored, blamed, held back or delivered.
    fn receive(&mut self, from: PartyId, slot: Slot, channel: Channel, payload: Bytes, out: &mut Effects<P>) {
        if !self.hears(from) {
            return;
        }
        let Some(most) = self.longest(slot) else { return };
        // A late copy of what was forgotten takes no room from what is awaited.
        if self.running().is_some_and(|protocol| protocol.is_over(slot)) && !self.mailboxes.has(from, slot) {
            return;
        }
        let offence = match P::Message::channel(slot) {
            None => Offence::UnknownSlot,
            Some(expected) if !channel.carries(expected) => Offence::WrongChannel { expected, got: channel },
            Some(_) if payload.len() > most => Offence::TooLong { len: payload.len(), most },
            Some(_) => match self.mailboxes.store(from, slot, payload, self.is_early(slot)) {
                Stored::Early | Stored::Duplicate | Stored::NoRoom => return,
                Stored::Due(payload) => return self.deliver(from, slot, &payload, out),
                Stored::Conflict { .. } if !self.is_unique(slot) => return,
                Stored::Conflict { first, second } => Offence::Equivocation { first, second },
            },
        };
        self.ban(Blame { party: from, slot: Some(slot), offence }, out);
    }

    /// Decodes a message whose time has come and gives it to the protocol.
    fn deliver(&mut self, from: PartyId, slot: Slot, payload: &[u8], out: &mut Effects<P>) {
        let Some(protocol) = self.running_mut() else { return };
        let message = match protocol.decode(from, slot, payload) {
            Ok(message) => message,
            Err(malformed) => {
                let blame = Blame { party: from, slot: Some(slot), offence: Offence::Malformed(malformed) };
                return self.ban(blame, out);
            }
        };
        if P::Message::is_question(slot) {
            return out.extend(self.reply(from, slot));
        }
        if let Err(blames) = protocol.update(from, message) {
            self.ban_all(blames, Some((from, slot)), out);
        }
    }

    /// Bans the parties that the protocol blames; `found` is the message in which the fault was found, if it was one
    /// message.
    fn ban_all(&mut self, blames: Blames<P::Misbehaviour>, found: Option<(PartyId, Slot)>, out: &mut Effects<P>) {
        for (party, misbehaviour) in blames {
            let slot = found.filter(|(from, _)| party == *from).map(|(_, slot)| slot);
            self.ban(Blame { party, slot, offence: Offence::Protocol(misbehaviour) }, out);
        }
    }

    /// Bans a party from this instance, once.
    fn ban(&mut self, blame: Blame<P::Misbehaviour>, out: &mut Effects<P>) {
        let party = blame.party;
        if !self.members.contains(&party) || !self.banned.insert(party) {
            return;
        }
        self.mailboxes.remove(party);
        if let Phase::AwaitingStart(protocol) | Phase::Running(protocol) = &mut self.phase {
            protocol.exclude(party);
        }
        out.push(Effect::Blame(blame));
    }

    /// Goes on until the protocol waits for something that is missing. It runs after every event, so that no message
    /// that comes too early or too late can stall an instance.
    fn settle(&mut self, rng: &mut dyn CryptoRng, out: &mut Effects<P>) {
        while let Some(protocol) = self.running_mut() {
            let due = protocol.due();
            match protocol.progress() {
                Progress::Act => {
                    if let Err(bug) = act(protocol, rng, out) {
                        return self.finish(out, |_| Err(Abort::Bug(bug)));
                    }
                    // Nothing is over as long as the same is due.
                    if let Phase::Running(protocol) = &self.phase
                        && protocol.due() != due
                    {
                        self.mailboxes.empty_large(|slot| protocol.is_over(slot));
                    }
                }
                Progress::Finalize | Progress::Failed => return self.finish(out, P::finalize),
                Progress::Waiting => {
                    let Some((from, slot, payload)) = self.mailboxes.next_due(due, P::Message::is_question) else {
                        return;
                    };
                    self.deliver(from, slot, &payload, out);
                }
            }
        }
    }

    fn finish(&mut self, out: &mut Effects<P>, result: impl FnOnce(P) -> Result<P::Output, Abort>) {
        let contributions = self.contributions();
        self.prepare_replies();
        if let Phase::Running(protocol) = mem::replace(&mut self.phase, Phase::Finished { contributions }) {
            out.push(Effect::Finished(result(protocol)));
            // Messages that still wait may be questions.
            for (from, slot) in mem::take(&mut self.mailboxes).into_early() {
                out.extend(self.reply(from, slot));
            }
        }
    }

    fn prepare_replies(&mut self) {
        if self.replies.is_none() {
            self.replies = self.running().and_then(Protocol::replies);
        }
    }

    /// Answers a question, if the slot is one and there is an answer.
    fn reply(&mut self, from: PartyId, slot: Slot) -> Option<Effect<P::Output, P::Misbehaviour, P::Ask>> {
        if !P::Message::is_question(slot) || !self.hears(from) {
            return None;
        }
        self.prepare_replies();
        let message = self.replies.as_mut()?.reply(from, slot)?;
        let slot = message.slot();
        let channel = P::Message::channel(slot)?;
        Some(Effect::Send { to: Recipient::Party(from), slot, channel, payload: message.encode() })
    }
}

type Effects<P> = machine::Effects<Driver<P>>;

/// Does the work that is due, and queues what the protocol sends and asks for.
fn act<P: Protocol>(protocol: &mut P, rng: &mut dyn CryptoRng, out: &mut Effects<P>) -> Result<(), Bug> {
    let actions = protocol.act(rng)?;
    // Without this check a protocol that never does its work would loop here for ever.
    if actions.is_empty() && protocol.progress() == Progress::Act {
        return Err(Bug("work that is never done"));
    }
    for action in actions {
        let Outgoing { to, message } = match action {
            Action::Send(outgoing) => outgoing,
            Action::Ask(ask) => {
                out.push(Effect::Ask(ask));
                continue;
            }
        };
        let slot = message.slot();
        let channel = P::Message::channel(slot).ok_or(Bug("a message for a slot that the protocol does not have"))?;
        if channel == Channel::Private && !matches!(to, Recipient::Party(_)) {
            return Err(Bug("a private message to all"));
        }
        let payload = message.encode();
        // The others would refuse it unread.
        if payload.len() > protocol.longest(slot) {
            return Err(Bug("a message that is longer than its slot allows"));
        }
        out.push(Effect::Send { to, slot, channel, payload });
    }
    Ok(())
}

impl<P: Protocol> Machine for Driver<P> {
    type Output = P::Output;
    type Misbehaviour = P::Misbehaviour;
    type Ask = P::Ask;
    type Supply = P::Supply;

    fn handle(&mut self, input: Input<P::Supply>, rng: &mut dyn CryptoRng) -> Effects<P> {
        let mut out = Vec::new();
        if self.is_finished() {
            if let Input::Message { from, slot, channel, .. } = input
                && P::Message::channel(slot).is_some_and(|expected| channel.carries(expected))
            {
                out.extend(self.reply(from, slot));
            }
            return out;
        }
        match input {
            Input::Start => self.start(),
            Input::Message { from, slot, channel, payload } => self.receive(from, slot, channel, payload, &mut out),
            Input::Supply(supply) => {
                if let Some(Err(blames)) = self.running_mut().map(|protocol| protocol.supply(supply)) {
                    self.ban_all(blames, None, &mut out);
                }
            }
            Input::Tick => {
                if let Some(protocol) = self.running_mut() {
                    protocol.expire();
                }
            }
        }
        self.settle(rng, &mut out);
        out
    }

    fn contributions(&self) -> (usize, usize) {
        match &self.phase {
            Phase::AwaitingStart(protocol) | Phase::Running(protocol) => protocol.contributions(),
            Phase::Finished { contributions } => *contributions,
        }
    }

    fn awaits(&self, party: PartyId) -> bool {
        let expected = match &self.phase {
            Phase::AwaitingStart(protocol) | Phase::Running(protocol) => protocol.awaits(party),
            Phase::Finished { .. } => false,
        };
        expected && self.hears(party)
    }

    fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Finished { .. })
    }

    fn rest(&mut self) {
        if let Phase::Running(protocol) = &mut self.phase {
            protocol.rest();
            self.mailboxes.empty(|slot| !protocol.outlives_rest(slot));
        }
    }

    fn kept_bytes(&self) -> usize {
        self.mailboxes.bytes()
    }

    fn outlives_rest(&self, slot: Slot) -> bool {
        self.running().is_none_or(|protocol| protocol.outlives_rest(slot))
    }

    fn lingers(&self) -> bool {
        self.is_finished() && self.replies.is_some()
    }
}

//! The generic driver: everything that protocols would otherwise repeat, done once.

use core::mem;
use std::collections::BTreeSet;

use bytes::Bytes;
use rand_core::CryptoRng;

use crate::{
    Abort, Blame, Bug, Channel, Epilogue, Offence, Outgoing, PartyId, Progress, Recipient, RoundMessage, RoundProtocol,
    Slot,
    mailbox::{Mailboxes, Stored},
};

/// What happens to a machine.
#[derive(Clone, Debug)]
pub enum Input {
    /// The application asked for this instance. Messages that came before wait for it.
    Start,
    /// A message from an authenticated peer.
    Message {
        /// Its sender, as the transport authenticated it.
        from: PartyId,
        /// Where it claims to belong.
        slot: Slot,
        /// How it travelled.
        channel: Channel,
        /// Its bytes, of any content.
        payload: Bytes,
    },
    /// Logical time passes.
    Tick,
}

/// What a machine wants done.
#[derive(Debug)]
pub enum Effect<O> {
    /// Send a message.
    Send {
        /// To whom.
        to: Recipient,
        /// Where it belongs.
        slot: Slot,
        /// How it must travel.
        channel: Channel,
        /// Its bytes.
        payload: Bytes,
    },
    /// A party misbehaved. The instance goes on.
    Blame(Blame),
    /// The end; exactly once. After it, there are but replies to those that have not finished.
    Finished(Result<O, Abort>),
}

/// A running protocol of any kind: eats inputs, emits effects. Never blocks, never panics on what comes from outside.
pub trait Machine: Send {
    /// The protocol's result.
    type Output;

    /// Takes one input and does all that it makes possible.
    fn handle(&mut self, input: Input, rng: &mut dyn CryptoRng) -> Vec<Effect<Self::Output>>;

    /// How many parties' contributions there are, and how many it takes.
    fn contributions(&self) -> (usize, usize);

    /// Whether a party may have something to say that this one lacks: see [`RoundProtocol::awaits`].
    fn awaits(&self, party: PartyId) -> bool;

    /// Whether [`Effect::Finished`] was emitted; from then on inputs are ignored, but for what [`Machine::lingers`] says.
    fn is_finished(&self) -> bool;

    /// Whether it has finished and still replies to those that have not: see [`Epilogue`].
    fn lingers(&self) -> bool {
        false
    }
}

/// Where an instance is in its life.
enum Phase<P: RoundProtocol> {
    AwaitingStart(P),
    Running(P),
    Finished { contributions: (usize, usize), epilogue: Option<Box<dyn Epilogue<<P as RoundProtocol>::Message>>> },
}

/// Runs one instance of a [`RoundProtocol`] at one party.
///
/// It refuses what does not come from another member or is longer than anything honest, bans whoever offends (and tells the
/// protocol to forget them), keeps one payload a party and slot so as to tell duplicates from equivocation, holds messages of future rounds back until
/// their round, and after every event goes on until the protocol waits.
///
/// Memory is bounded by what the protocol itself accepts: payloads stay only if they decode, or are early and within
/// [the mailbox's bounds](crate::EARLY_MESSAGES); the end frees them all.
pub struct Driver<P: RoundProtocol> {
    local: PartyId,
    members: BTreeSet<PartyId>,
    banned: BTreeSet<PartyId>,
    mailboxes: Mailboxes,
    phase: Phase<P>,
}

impl<P: RoundProtocol> Driver<P> {
    /// Sets up `protocol` at party `local` of the group `members`. Nothing runs before [`Input::Start`].
    pub fn new(local: PartyId, members: impl IntoIterator<Item = PartyId>, protocol: P) -> Self {
        Self {
            local,
            members: members.into_iter().collect(),
            banned: BTreeSet::new(),
            mailboxes: Mailboxes::default(),
            phase: Phase::AwaitingStart(protocol),
        }
    }

    /// The parties whose misbehaviour was seen so far, in order.
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
        let nothing = Phase::Finished { contributions: (0, 0), epilogue: None };
        self.phase = match mem::replace(&mut self.phase, nothing) {
            Phase::AwaitingStart(protocol) => Phase::Running(protocol),
            other => other,
        };
    }

    /// The longest payload of a slot, if there is one any more.
    fn longest(&self, slot: Slot) -> Option<usize> {
        match &self.phase {
            Phase::AwaitingStart(protocol) | Phase::Running(protocol) => Some(protocol.longest(slot)),
            Phase::Finished { .. } => None,
        }
    }

    /// Sorts one message in: ignored, blamed, held back or delivered.
    fn receive(&mut self, from: PartyId, slot: Slot, channel: Channel, payload: Bytes, out: &mut Effects<P>) {
        if from == self.local || !self.members.contains(&from) || self.banned.contains(&from) {
            return;
        }
        let Some(most) = self.longest(slot) else { return };
        let offence = match P::Message::channel(slot) {
            None => Offence::UnknownSlot,
            Some(expected) if expected != channel => Offence::WrongChannel { expected, got: channel },
            Some(_) if payload.len() > most => Offence::TooLong { len: payload.len(), most },
            Some(_) => {
                let early = self.running().is_none_or(|protocol| slot.round > protocol.round());
                match self.mailboxes.store(from, slot, payload, early) {
                    Stored::Early | Stored::Duplicate | Stored::NoRoom => return,
                    Stored::Due(payload) => return self.deliver(from, slot, &payload, out),
                    Stored::Conflict { first, second } => Offence::Equivocation { first, second },
                }
            }
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
        let Err(blames) = protocol.update(from, message) else { return };
        for (party, evidence) in blames {
            let slot = (party == from).then_some(slot);
            self.ban(Blame { party, slot, offence: Offence::protocol(&evidence) }, out);
        }
    }

    /// Shuts a party out of this instance, once.
    fn ban(&mut self, blame: Blame, out: &mut Effects<P>) {
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

    /// Goes on until the protocol waits for something that is not here. Runs after every event, so that nothing that
    /// came too early or too late can stall an instance.
    fn settle(&mut self, rng: &mut dyn CryptoRng, out: &mut Effects<P>) {
        while let Some(protocol) = self.running_mut() {
            match protocol.progress() {
                Progress::NextRound => {
                    if let Err(bug) = next_round(protocol, rng, out) {
                        return self.finish(out, |_| Err(Abort::Bug(bug)));
                    }
                }
                Progress::Finalize | Progress::Failed => return self.finish(out, P::finalize),
                Progress::Waiting => {
                    let round = protocol.round();
                    let Some((from, slot, payload)) = self.mailboxes.next_due(round) else { return };
                    self.deliver(from, slot, &payload, out);
                }
            }
        }
    }

    fn finish(&mut self, out: &mut Effects<P>, result: impl FnOnce(P) -> Result<P::Output, Abort>) {
        let contributions = self.contributions();
        let epilogue = self.running().and_then(RoundProtocol::epilogue);
        if let Phase::Running(protocol) = mem::replace(&mut self.phase, Phase::Finished { contributions, epilogue }) {
            out.push(Effect::Finished(result(protocol)));
            // What still waited for its round may be a question.
            for (from, slot) in mem::take(&mut self.mailboxes).into_early() {
                out.extend(self.reply(from, slot));
            }
        }
    }
}

impl<P: RoundProtocol> Driver<P> {
    /// Answers one that has not finished, if there is anything to say.
    fn reply(&mut self, from: PartyId, slot: Slot) -> Option<Effect<P::Output>> {
        let Phase::Finished { epilogue: Some(epilogue), .. } = &mut self.phase else { return None };
        if from == self.local || !self.members.contains(&from) || self.banned.contains(&from) {
            return None;
        }
        let message = epilogue.reply(from, slot)?;
        let slot = message.slot();
        let channel = P::Message::channel(slot)?;
        Some(Effect::Send { to: Recipient::Party(from), slot, channel, payload: message.encode() })
    }
}

type Effects<P> = Vec<Effect<<P as RoundProtocol>::Output>>;

/// Does one round and queues what it sends.
fn next_round<P: RoundProtocol>(protocol: &mut P, rng: &mut dyn CryptoRng, out: &mut Effects<P>) -> Result<(), Bug> {
    let before = protocol.round();
    for Outgoing { to, message } in protocol.do_round(rng)? {
        let slot = message.slot();
        let channel = P::Message::channel(slot).ok_or(Bug("a message for a slot that the protocol does not have"))?;
        if channel == Channel::Private && !matches!(to, Recipient::Party(_)) {
            return Err(Bug("a private message to all"));
        }
        let payload = message.encode();
        // The others would not read it.
        if payload.len() > protocol.longest(slot) {
            return Err(Bug("a message that is longer than its slot allows"));
        }
        out.push(Effect::Send { to, slot, channel, payload });
    }
    // Otherwise a protocol that forgets to advance would spin here for ever.
    if protocol.round() > before || protocol.progress() != Progress::NextRound {
        Ok(())
    } else {
        Err(Bug("a round that does not advance"))
    }
}

impl<P: RoundProtocol> Machine for Driver<P> {
    type Output = P::Output;

    fn handle(&mut self, input: Input, rng: &mut dyn CryptoRng) -> Vec<Effect<P::Output>> {
        let mut out = Vec::new();
        if self.is_finished() {
            if let Input::Message { from, slot, channel, .. } = input
                && P::Message::channel(slot) == Some(channel)
            {
                out.extend(self.reply(from, slot));
            }
            return out;
        }
        match input {
            Input::Start => self.start(),
            Input::Message { from, slot, channel, payload } => self.receive(from, slot, channel, payload, &mut out),
            Input::Tick => {
                if let Some(protocol) = self.running_mut() {
                    protocol.expire_round();
                }
            }
        }
        self.settle(rng, &mut out);
        out
    }

    fn contributions(&self) -> (usize, usize) {
        match &self.phase {
            Phase::AwaitingStart(protocol) | Phase::Running(protocol) => protocol.contributions(),
            Phase::Finished { contributions, .. } => *contributions,
        }
    }

    fn awaits(&self, party: PartyId) -> bool {
        let expected = match &self.phase {
            Phase::AwaitingStart(protocol) | Phase::Running(protocol) => protocol.awaits(party),
            Phase::Finished { .. } => false,
        };
        expected && party != self.local && self.members.contains(&party) && !self.banned.contains(&party)
    }

    fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Finished { .. })
    }

    fn lingers(&self) -> bool {
        matches!(self.phase, Phase::Finished { epilogue: Some(_), .. })
    }
}

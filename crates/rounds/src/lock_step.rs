//! Protocols of real rounds.

use rand_core::CryptoRng;

use crate::{
    Abort, Action, Actions, Blames, Bug, Evidence, Malformed, Outgoing, PartyId, Progress, Protocol, ProtocolMessage,
    Replies, Slot,
};

/// A round's number, from 1; 0 before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Round(pub u16);

/// A protocol in lock-step: every party does a round, sends, waits until it has enough messages of that round, and does
/// the next. Messages of later rounds wait; messages of earlier rounds are still taken.
///
/// The [number](Slot::number) of a message's slot is the round that sends it; the number of a question's slot is the
/// round that it asks about. [`LockStep`] turns a lock-step protocol into a [`Protocol`], whose documentation says what
/// the methods must guarantee.
pub trait RoundProtocol: Send + 'static {
    /// Its messages.
    type Message: ProtocolMessage;
    /// Its typed result.
    type Output: Send;
    /// Exact, named reasons to blame a sender.
    type Misbehaviour: Evidence;
    /// What it asks its caller: see [`Protocol::Ask`]. [`Infallible`](core::convert::Infallible) if it asks for nothing.
    type Ask: Send + 'static;
    /// What the caller answers.
    type Supply: Send + 'static;

    /// The current round: the last that was done, 0 before the first.
    fn round(&self) -> Round;

    /// The longest payload of a slot: see [`Protocol::longest`].
    fn longest(&self, slot: Slot) -> usize;

    /// Whether an honest party that fills this slot again says the same: see [`Protocol::is_unique`].
    fn is_unique(&self, _slot: Slot) -> bool {
        true
    }

    /// Parses the payload of a slot: see [`Protocol::decode`].
    ///
    /// # Errors
    /// [`Malformed`] on anything that an honest party does not send.
    fn decode(&self, from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self::Message, Malformed> {
        Self::Message::decode(from, slot, payload)
    }

    /// Does the local work of the next round, which becomes the current one, and returns what to send. Only this method
    /// draws randomness.
    ///
    /// # Errors
    /// [`Bug`]: only our own.
    fn do_round(&mut self, rng: &mut dyn CryptoRng) -> Result<Vec<Outgoing<Self::Message>>, Bug>;

    /// Takes one message of this round or a former one: see [`Protocol::update`].
    ///
    /// # Errors
    /// Blame for one or more senders. It never ends the instance.
    fn update(&mut self, from: PartyId, message: Self::Message) -> Result<(), Blames<Self::Misbehaviour>>;

    /// Whether it has something to ask, which comes before the next round.
    fn has_question(&self) -> bool {
        false
    }

    /// What it asks, once.
    fn question(&mut self) -> Option<Self::Ask> {
        None
    }

    /// Takes an answer: see [`Protocol::supply`].
    ///
    /// # Errors
    /// Blame for one or more senders. It never ends the instance.
    fn supply(&mut self, _supply: Self::Supply) -> Result<(), Blames<Self::Misbehaviour>> {
        Ok(())
    }

    /// Logical time passes: a tick or a block height.
    fn expire_round(&mut self) {}

    /// Whether nothing is looked at any more that comes in this slot: see [`Protocol::is_over`].
    fn is_over(&self, _slot: Slot) -> bool {
        false
    }

    /// A party was banned: see [`Protocol::exclude`].
    fn exclude(&mut self, party: PartyId);

    /// Whether that party may still send something that is missing here: see [`Protocol::awaits`].
    fn awaits(&self, party: PartyId) -> bool;

    /// Whether the next round can be done.
    fn is_ready_for_next_round(&self) -> bool;

    /// Whether [`finalize`](Self::finalize) can run: there is a result, or none is possible any more.
    fn is_ready_to_finalize(&self) -> bool;

    /// The number of parties that have contributed, and the number that is needed: see [`Protocol::contributions`].
    fn contributions(&self) -> (usize, usize);

    /// What answers other parties' questions: see [`Protocol::replies`].
    fn replies(&self) -> Option<Box<dyn Replies<Self::Message>>> {
        None
    }

    /// The result.
    ///
    /// # Errors
    /// [`Abort`] with the reason.
    fn finalize(self) -> Result<Self::Output, Abort>;
}

/// A [`RoundProtocol`] as a [`Protocol`].
pub struct LockStep<P>(P);

impl<P: RoundProtocol> LockStep<P> {
    /// The protocol in lock-step, before its first round.
    pub const fn new(protocol: P) -> Self {
        Self(protocol)
    }
}

impl<P: RoundProtocol> Protocol for LockStep<P> {
    type Message = P::Message;
    type Output = P::Output;
    type Misbehaviour = P::Misbehaviour;
    type Ask = P::Ask;
    type Supply = P::Supply;

    fn longest(&self, slot: Slot) -> usize {
        self.0.longest(slot)
    }

    fn is_unique(&self, slot: Slot) -> bool {
        self.0.is_unique(slot)
    }

    fn due(&self) -> u16 {
        self.0.round().0
    }

    fn decode(&self, from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self::Message, Malformed> {
        self.0.decode(from, slot, payload)
    }

    fn act(&mut self, rng: &mut dyn CryptoRng) -> Result<Actions<Self::Message, P::Ask>, Bug> {
        if self.0.has_question() {
            return Ok(self.0.question().map(Action::Ask).into_iter().collect());
        }
        let before = self.0.round();
        let messages = self.0.do_round(rng)?;
        // Without this check a protocol that never advances would do the same round for ever.
        if self.0.round() <= before {
            return Err(Bug("a round that does not advance"));
        }
        Ok(messages.into_iter().map(Action::Send).collect())
    }

    fn update(&mut self, from: PartyId, message: Self::Message) -> Result<(), Blames<Self::Misbehaviour>> {
        self.0.update(from, message)
    }

    fn supply(&mut self, supply: P::Supply) -> Result<(), Blames<Self::Misbehaviour>> {
        self.0.supply(supply)
    }

    fn expire(&mut self) {
        self.0.expire_round();
    }

    fn is_over(&self, slot: Slot) -> bool {
        self.0.is_over(slot)
    }

    fn exclude(&mut self, party: PartyId) {
        self.0.exclude(party);
    }

    fn awaits(&self, party: PartyId) -> bool {
        self.0.awaits(party)
    }

    fn progress(&self) -> Progress {
        if self.0.is_ready_to_finalize() {
            Progress::Finalize
        } else if self.0.has_question() || self.0.is_ready_for_next_round() {
            Progress::Act
        } else {
            Progress::Waiting
        }
    }

    fn contributions(&self) -> (usize, usize) {
        self.0.contributions()
    }

    fn replies(&self) -> Option<Box<dyn Replies<Self::Message>>> {
        self.0.replies()
    }

    fn finalize(self) -> Result<Self::Output, Abort> {
        self.0.finalize()
    }
}

//! Protocols of real rounds.

use core::{convert::Infallible, marker::PhantomData};

use rand_core::CryptoRng;

use crate::{
    Abort, Action, Actions, Blames, Bug, Evidence, Malformed, Outgoing, PartyId, Progress, Protocol, ProtocolMessage,
    Replies, Slot,
};

/// A round's number, from 1; 0 before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Round(pub u16);

/// A protocol in lock-step: every party does a round, sends, waits until it has enough of that round, and does the next. What
/// others send of later rounds waits; what they still send of former ones is taken.
///
/// The [number](Slot::number) of a message's slot is the round that sends it; that of a question is the round that it asks
/// about. [`LockStep`] makes a [`Protocol`] of it. What it means for a method to be pure, total and bounded stands there.
pub trait RoundProtocol: Send + 'static {
    /// Its messages.
    type Message: ProtocolMessage;
    /// Its typed result.
    type Output: Send;
    /// Exact, named reasons to blame a sender.
    type Misbehaviour: Evidence;

    /// The current round: the last that was done.
    fn round(&self) -> Round;

    /// The longest payload of a slot: see [`Protocol::longest`].
    fn longest(&self, slot: Slot) -> usize;

    /// Parses the payload of a slot: see [`Protocol::decode`].
    ///
    /// # Errors
    /// [`Malformed`] on anything that an honest party does not send.
    fn decode(&self, from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self::Message, Malformed> {
        Self::Message::decode(from, slot, payload)
    }

    /// Does the local work of the next round, which is the current one then, and says what to send. Randomness enters here only.
    ///
    /// # Errors
    /// [`Bug`]: only our own.
    fn do_round(&mut self, rng: &mut dyn CryptoRng) -> Result<Vec<Outgoing<Self::Message>>, Bug>;

    /// Takes one message of this round or a former one: see [`Protocol::update`].
    ///
    /// # Errors
    /// Blame for one or more senders. It never ends the instance.
    fn update(&mut self, from: PartyId, message: Self::Message) -> Result<(), Blames<Self::Misbehaviour>>;

    /// Logical time passes: a tick or a block height.
    fn expire_round(&mut self) {}

    /// A party was banned: see [`Protocol::exclude`].
    fn exclude(&mut self, party: PartyId);

    /// Whether that party may have something to say that is not here: see [`Protocol::awaits`].
    fn awaits(&self, party: PartyId) -> bool;

    /// Whether the next round can be done.
    fn is_ready_for_next_round(&self) -> bool;

    /// Whether [`finalize`](Self::finalize) can run: there is a result, or there can be none any more.
    fn is_ready_to_finalize(&self) -> bool;

    /// How many parties' contributions it has, and how many it takes: see [`Protocol::contributions`].
    fn contributions(&self) -> (usize, usize);

    /// What answers the others' questions: see [`Protocol::replies`].
    fn replies(&self) -> Option<Box<dyn Replies<Self::Message>>> {
        None
    }

    /// The result.
    ///
    /// # Errors
    /// [`Abort`] with the reason.
    fn finalize(self) -> Result<Self::Output, Abort>;
}

/// A [`RoundProtocol`] as a [`Protocol`]. It asks no stock for anything; `A` and `S` are what those around it ask for and receive.
pub struct LockStep<P, A = Infallible, S = Infallible>(P, PhantomData<fn() -> (A, S)>);

impl<P: RoundProtocol, A, S> LockStep<P, A, S> {
    /// The protocol in lock-step, before its first round.
    pub const fn new(protocol: P) -> Self {
        Self(protocol, PhantomData)
    }
}

impl<P: RoundProtocol, A: Send + 'static, S: Send + 'static> Protocol for LockStep<P, A, S> {
    type Message = P::Message;
    type Output = P::Output;
    type Misbehaviour = P::Misbehaviour;
    type Ask = A;
    type Supply = S;

    fn longest(&self, slot: Slot) -> usize {
        self.0.longest(slot)
    }

    fn due(&self) -> u16 {
        self.0.round().0
    }

    fn decode(&self, from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self::Message, Malformed> {
        self.0.decode(from, slot, payload)
    }

    fn act(&mut self, rng: &mut dyn CryptoRng) -> Result<Actions<Self::Message, A>, Bug> {
        let before = self.0.round();
        let messages = self.0.do_round(rng)?;
        // Otherwise a protocol that forgets to go on would do the same round for ever.
        if self.0.round() <= before {
            return Err(Bug("a round that does not advance"));
        }
        Ok(messages.into_iter().map(Action::Send).collect())
    }

    fn update(&mut self, from: PartyId, message: Self::Message) -> Result<(), Blames<Self::Misbehaviour>> {
        self.0.update(from, message)
    }

    fn supply(&mut self, _nothing_asked_for: S) -> Result<(), Blames<Self::Misbehaviour>> {
        Ok(())
    }

    fn expire(&mut self) {
        self.0.expire_round();
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
        } else if self.0.is_ready_for_next_round() {
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

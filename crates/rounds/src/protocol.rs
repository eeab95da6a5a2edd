//! The interface between a protocol and its driver: a protocol takes messages, supplies and ticks.

use std::borrow::Cow;

use rand_core::CryptoRng;

use crate::{Evidence, Malformed, Outgoing, PartyId, ProtocolMessage, Slot};

/// What an instance does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Waits for messages, or for a supply.
    Waiting,
    /// Has local work for [`Protocol::act`].
    Act,
    /// Has a result: [`Protocol::finalize`] can run.
    Finalize,
    /// No result is possible any more; [`Protocol::finalize`] returns the reason.
    Failed,
}

/// Our own mistake: an invariant of the code does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bug: {0}; please report it")]
pub struct Bug(pub &'static str);

/// Why an instance ends without a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Abort {
    /// The input was unusable although it passed validation, for example a ciphertext whose encryptor lied. No party is
    /// to blame.
    #[error("{0}")]
    Input(&'static str),
    /// Too many parties are banned: fewer than k can still contribute.
    #[error("{remaining} parties can still contribute, it takes {needed}")]
    TooFewHonest {
        /// The number of parties left.
        remaining: usize,
        /// k.
        needed: usize,
    },
    /// A check over all parties' messages failed: somebody cheated in the phase named, and the messages do not show who.
    /// Nothing secret has left.
    #[error("somebody cheated: {0}")]
    Cheated(&'static str),
    /// Somebody cheated where every party of a set is needed, and no set with this party is left in which nobody did. It is not tried again before
    /// an operator says so. Nothing secret has left.
    #[error("somebody cheated{}: {phase}; the holders that it takes are in quarantine, and no other set of them is left", by(*.party))]
    Quarantined {
        /// What was found false. A node may have found it before its last start.
        phase: Cow<'static, str>,
        /// Who it was, if that is known.
        party: Option<PartyId>,
    },
    /// A mistake of this program.
    #[error(transparent)]
    Bug(#[from] Bug),
}

/// Who cheated, in words.
fn by(party: Option<PartyId>) -> String {
    party.map_or_else(String::new, |party| format!(", the holder of share {party}"))
}

/// What a protocol wants done.
#[derive(Debug)]
pub enum Action<M, A> {
    /// Send a message.
    Send(Outgoing<M>),
    /// Ask the caller: see [`Protocol::Ask`].
    Ask(A),
}

/// The actions that a protocol wants done, in this order.
pub type Actions<M, A> = Vec<Action<M, A>>;

/// Answers questions from the start on, also when the protocol has ended. Questions change no state.
pub trait Replies<M>: Send {
    /// The answer to a question in that slot, if there is one; it goes to the questioner alone. Implementations answer
    /// each party a bounded number of times.
    fn reply(&mut self, from: PartyId, slot: Slot) -> Option<M>;
}

/// Whom a protocol blames, and for what. It is never empty.
pub type Blames<M> = Vec<(PartyId, M)>;

/// A multi-party protocol as one party runs it. It may go on with each message, as FROST with its coordinators does, or
/// in rounds, as a [`RoundProtocol`](crate::RoundProtocol).
///
/// An implementation is an enum of states, owned by value and named for what they await. Randomness enters in [`act`]
/// only; [`update`] takes the weights of batch verification from seeds drawn there. So the seed and the ordered inputs
/// replay a run exactly; what comes from a stock is an input like a message. The messages of one-round protocols are
/// derived from the key share and the statement instead: a restarted node repeats itself and is not taken for an
/// equivocator. Where it cannot repeat itself, [`is_unique`](Protocol::is_unique) says so.
///
/// [`act`]: Protocol::act
/// [`update`]: Protocol::update
pub trait Protocol: Send + 'static {
    /// Its messages.
    type Message: ProtocolMessage;
    /// Its typed result.
    type Output: Send;
    /// Exact, named reasons to blame a sender.
    type Misbehaviour: Evidence;
    /// What it asks its caller: material made in advance, from the stock of its key's epoch, or a check that may be made together
    /// with those of other instances. [`Infallible`](core::convert::Infallible) if it asks for nothing.
    type Ask: Send;
    /// What the caller answers.
    type Supply: Send;

    /// The longest payload, in bytes, that an honest party sends in a slot. The driver refuses longer ones before it
    /// keeps or decodes any of their bytes. Together with the number of slots that a party can fill, this bounds what
    /// one party costs an instance.
    fn longest(&self, slot: Slot) -> usize;

    /// Whether an honest party that fills this slot again, after a restart, says the same. If not, another payload of the same party is no
    /// offence: the first one counts, and the others are ignored.
    fn is_unique(&self, _slot: Slot) -> bool {
        true
    }

    /// The highest slot number whose messages can be taken now; messages with higher numbers wait.
    fn due(&self) -> u16 {
        u16::MAX
    }

    /// Parses the payload of a slot. Override it where only the instance can judge whether a message is valid.
    ///
    /// # Errors
    /// [`Malformed`] on anything that an honest party does not send.
    fn decode(&self, from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self::Message, Malformed> {
        Self::Message::decode(from, slot, payload)
    }

    /// Does the local work that is due and returns what is to be done.
    ///
    /// # Errors
    /// [`Bug`]: only our own.
    fn act(&mut self, rng: &mut dyn CryptoRng) -> Result<Actions<Self::Message, Self::Ask>, Bug>;

    /// Takes one message. The driver has checked sender, channel and slot, and delivers each slot of a party once.
    ///
    /// # Errors
    /// Blame for one or more senders: not necessarily `from`, since false shares may be found only when they are
    /// combined. Blame never ends the instance, so that one cheater cannot deny service.
    fn update(&mut self, from: PartyId, message: Self::Message) -> Result<(), Blames<Self::Misbehaviour>>;

    /// Takes what the stock answers to an [`Action::Ask`]. Answers come in any order, and may never come.
    ///
    /// # Errors
    /// Blame, as in [`update`](Self::update): a fault in an earlier message may show only now.
    fn supply(&mut self, supply: Self::Supply) -> Result<(), Blames<Self::Misbehaviour>>;

    /// Logical time passes: a tick or a block height.
    fn expire(&mut self) {}

    /// The instance's time is over. It is kept for a while, as the same request may go on with it, and time does not pass meanwhile: what only takes up
    /// room until then, or should not last, goes.
    fn rest(&mut self) {}

    /// Whether what was sent in this slot, here or by others, is still of use after a [`rest`](Self::rest). What is not is neither kept nor sent again, and
    /// its sender has its room back. Until the next rest a copy that comes late is known as one, so slots must not be used again before.
    fn outlives_rest(&self, _slot: Slot) -> bool {
        true
    }

    /// Whether nothing is looked at any more that comes in this slot; what is [due](Self::due) has changed since it was. Its sender has its room back, so that
    /// a protocol of many rounds can take more than [`KEPT_BYTES`](crate::KEPT_BYTES) of a party; what contradicts a message of such a slot is no offence.
    fn is_over(&self, _slot: Slot) -> bool {
        false
    }

    /// The driver has banned a party. Forget what it sent; expect nothing more from it.
    fn exclude(&mut self, party: PartyId);

    /// Whether that party may still send something that is missing here, so that it is worth asking it when time
    /// passes.
    fn awaits(&self, party: PartyId) -> bool;

    /// Where the protocol stands.
    fn progress(&self) -> Progress;

    /// The number of parties that have contributed, and the number that is needed. For display only.
    fn contributions(&self) -> (usize, usize);

    /// What answers other parties' questions, if the protocol has any. Called when the first question comes, or else
    /// just before [`finalize`](Self::finalize).
    fn replies(&self) -> Option<Box<dyn Replies<Self::Message>>> {
        None
    }

    /// The result.
    ///
    /// # Errors
    /// [`Abort`] with the reason.
    fn finalize(self) -> Result<Self::Output, Abort>;
}

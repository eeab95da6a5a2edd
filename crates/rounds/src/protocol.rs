//! What a protocol is to the driver: something that messages, supplies and time happen to.

use rand_core::CryptoRng;

use crate::{Evidence, Malformed, Outgoing, PartyId, ProtocolMessage, Slot};

/// What an instance waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More messages, or a supply.
    Waiting,
    /// [`Protocol::act`] has something to do.
    Act,
    /// [`Protocol::finalize`] can run.
    Finalize,
    /// No outcome is possible any more; `finalize` tells why.
    Failed,
}

/// Our own mistake: an invariant of the code does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bug: {0}; please report it")]
pub struct Bug(pub &'static str);

/// Why an instance ends without a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Abort {
    /// The input was unusable although it passed validation, for example a ciphertext whose encryptor lied. Nobody's share is to blame.
    #[error("{0}")]
    Input(&'static str),
    /// Too many parties misbehaved or are banned: fewer than k can still contribute.
    #[error("{remaining} parties can still contribute, it takes {needed}")]
    TooFewHonest {
        /// Parties left.
        remaining: usize,
        /// k.
        needed: usize,
    },
    /// Ours.
    #[error(transparent)]
    Bug(#[from] Bug),
}

/// What a protocol wants done.
#[derive(Debug)]
pub enum Action<M, A> {
    /// Send a message.
    Send(Outgoing<M>),
    /// Ask for what was made in advance, or give it something to keep: see [`Protocol::Ask`].
    Ask(A),
}

/// What a protocol wants done, in this order.
pub type Actions<M, A> = Vec<Action<M, A>>;

/// Answers to questions, from the start on and when the protocol has ended: they change nothing.
pub trait Replies<M>: Send {
    /// The answer to a question of that slot, if there is one; to its sender alone. Each party is answered a bounded number
    /// of times.
    fn reply(&mut self, from: PartyId, slot: Slot) -> Option<M>;
}

/// Whom a protocol blames, and for what. Never empty.
pub type Blames<M> = Vec<(PartyId, M)>;

/// A multi-party protocol as one party sees it, whatever drives it on: messages, as in FROST with coordinators, or rounds, as in
/// a [`RoundProtocol`](crate::RoundProtocol).
///
/// Inside, an enum of states owned by value and named for what they await. Randomness enters in [`act`] only (and, for the
/// weights of batch verification in [`update`], through seeds drawn there), so that seed + ordered inputs replay a run
/// exactly; what comes from a stock is an input like a message. What a party sends in an instance of the one-round family
/// is derived from its key share and the statement instead: a node that was restarted repeats itself and is not taken for
/// an equivocator.
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
    /// What it asks of the stock of its key's epoch: nonces, triples, presignatures made in advance.
    /// [`Infallible`](core::convert::Infallible) if it needs none.
    type Ask: Send;
    /// What the stock answers.
    type Supply: Send;

    /// The longest payload, in bytes, that an honest party sends in a slot. The driver refuses longer ones before it keeps or
    /// decodes anything of them: with as many slots as a party can fill, it bounds what one party costs an instance.
    fn longest(&self, slot: Slot) -> usize;

    /// The highest number of slots whose messages can be taken now; later ones wait.
    fn due(&self) -> u16 {
        u16::MAX
    }

    /// Parses the payload of a slot; for messages that can be judged only by what the instance is about.
    ///
    /// # Errors
    /// [`Malformed`] on anything that an honest party does not send.
    fn decode(&self, from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self::Message, Malformed> {
        Self::Message::decode(from, slot, payload)
    }

    /// Does the local work that is due and says what is to be done.
    ///
    /// # Errors
    /// [`Bug`]: only our own.
    fn act(&mut self, rng: &mut dyn CryptoRng) -> Result<Actions<Self::Message, Self::Ask>, Bug>;

    /// Takes one message. The driver has checked sender, channel and slot, and delivers each slot of a party once.
    ///
    /// # Errors
    /// Blame for one or more senders: not necessarily `from`, since false shares may be found only when combined. It never
    /// ends the instance: one cheater cannot deny service.
    fn update(&mut self, from: PartyId, message: Self::Message) -> Result<(), Blames<Self::Misbehaviour>>;

    /// Takes what the stock answers to an [`Action::Ask`]. Answers come in any order, and perhaps never.
    ///
    /// # Errors
    /// Blame, as in [`update`](Self::update): what a message is worth may come out only now.
    fn supply(&mut self, supply: Self::Supply) -> Result<(), Blames<Self::Misbehaviour>>;

    /// Logical time passes: a tick or a block height.
    fn expire(&mut self) {}

    /// A party was banned by the driver (equivocation, garbage): forget what it sent, expect nothing more from it.
    fn exclude(&mut self, party: PartyId);

    /// Whether that party may have something to say that is not here: then it is worth to ask it, should time pass.
    fn awaits(&self, party: PartyId) -> bool;

    /// Where the protocol stands.
    fn progress(&self) -> Progress;

    /// How many parties' contributions it has, and how many it takes, for people who watch.
    fn contributions(&self) -> (usize, usize);

    /// What answers the others' questions, if they have any. Asked when the first comes, or just before
    /// [`finalize`](Self::finalize).
    fn replies(&self) -> Option<Box<dyn Replies<Self::Message>>> {
        None
    }

    /// The result.
    ///
    /// # Errors
    /// [`Abort`] with the reason.
    fn finalize(self) -> Result<Self::Output, Abort>;
}

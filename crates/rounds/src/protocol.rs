//! The five verbs of the round interface and the words around them.

use core::{fmt, num::NonZeroU16};

use bytes::Bytes;
use rand_core::CryptoRng;
use theta_names::{NodeId, ShareIndex, codec::DecodeError};

use crate::Evidence;

/// The number of a party in one run of a protocol, 1 to 65,535.
///
/// In the protocols of a key (one-round schemes, FROST) parties are the holders of its shares, by their indices; in ceremonies they
/// are nodes. Whoever runs a protocol knows which, and says so: a party is made [of a share](Self::of_share) or [of a
/// node](Self::of_node), and read back as [the one](Self::share) or [the other](Self::node). There is no other way in or out, so
/// that a node's number never becomes an index without a key's holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartyId(NonZeroU16);

impl PartyId {
    /// The lowest number.
    pub const FIRST: Self = Self(NonZeroU16::MIN);

    /// The party that is this node, in a protocol whose parties are nodes.
    #[must_use]
    pub const fn of_node(node: NodeId) -> Self {
        Self(node.number())
    }

    /// The party that holds the share of this index, in a protocol whose parties are the holders of a key's shares.
    #[must_use]
    pub const fn of_share(index: ShareIndex) -> Self {
        Self(index.number())
    }

    /// The node that this party is, in a protocol whose parties are nodes.
    #[must_use]
    pub fn node(self) -> NodeId {
        self.0.into()
    }

    /// The index of the share that this party holds, in a protocol whose parties are the holders of a key's shares.
    #[must_use]
    pub fn share(self) -> ShareIndex {
        self.0.into()
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

impl fmt::Display for PartyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A round's number, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Round(pub u16);

/// Where in a protocol a message belongs: each party fills each slot once at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot {
    /// The round that sends it.
    pub round: Round,
    /// Which of the round's messages.
    pub kind: u16,
}

/// How a message must travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Authenticated and encrypted, to one party.
    Private,
    /// Authenticated, the same to all as far as an honest sender goes.
    Broadcast,
    /// Through agreed, totally ordered broadcast.
    Ordered,
}

/// Bytes that are not a message of this protocol; the sender is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed message: {0}")]
pub struct Malformed(pub &'static str);

impl From<DecodeError> for Malformed {
    fn from(error: DecodeError) -> Self {
        Self(error.problem())
    }
}

/// A protocol's message type, one variant a slot.
pub trait RoundMessage: Sized + Send {
    /// Where it belongs.
    fn slot(&self) -> Slot;
    /// How messages of a slot travel; `None` for a slot that the protocol does not have.
    fn channel(slot: Slot) -> Option<Channel>;
    /// The payload; the slot travels beside it.
    fn encode(&self) -> Bytes;
    /// Parses the payload of a slot, from `from`.
    ///
    /// # Errors
    /// [`Malformed`] on anything that an honest party does not send.
    fn decode(from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self, Malformed>;
}

/// To whom a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// One party.
    Party(PartyId),
    /// All the others.
    All,
    /// Whoever of the others asks for it, as those do who wait for longer than they should; nobody else.
    OnRequest,
}

/// A message to send.
#[derive(Clone, Debug)]
pub struct Outgoing<M> {
    /// To whom.
    pub to: Recipient,
    /// What.
    pub message: M,
}

/// What an instance waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More messages.
    Waiting,
    /// [`RoundProtocol::do_round`] can run.
    NextRound,
    /// [`RoundProtocol::finalize`] can run.
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

/// What a party that has finished still does for those that have not: it answers, and changes nothing.
pub trait Epilogue<M>: Send {
    /// The answer to a message of that slot, if there is one; to its sender alone. Each party is answered a bounded number
    /// of times.
    fn reply(&mut self, from: PartyId, slot: Slot) -> Option<M>;
}

/// A multi-party protocol as one party sees it.
///
/// Inside, an enum of states owned by value and named for what they await. Randomness enters in [`do_round`] only (and,
/// for the weights of batch verification in [`update`], through seeds drawn there), so that seed + ordered inputs replay
/// a run exactly. What a party sends in an instance of the one-round family is derived from its key share and the
/// statement instead: a node that was restarted repeats itself and is not taken for an equivocator.
///
/// [`do_round`]: RoundProtocol::do_round
/// [`update`]: RoundProtocol::update
pub trait RoundProtocol: Send + 'static {
    /// Its messages.
    type Message: RoundMessage;
    /// Its typed result.
    type Output: Send;
    /// Exact, named reasons to blame a sender.
    type Misbehaviour: Evidence;

    /// The current round.
    fn round(&self) -> Round;

    /// The longest payload, in bytes, that an honest party sends in a slot. The driver refuses longer ones before it keeps or
    /// decodes anything of them: with as many slots as a party can fill, it bounds what one party costs an instance.
    fn longest(&self, slot: Slot) -> usize;

    /// Parses the payload of a slot; for messages that can be judged only by what the instance is about.
    ///
    /// # Errors
    /// [`Malformed`] on anything that an honest party does not send.
    fn decode(&self, from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self::Message, Malformed> {
        Self::Message::decode(from, slot, payload)
    }

    /// Does the local work of the next round and says what to send.
    ///
    /// # Errors
    /// [`Bug`]: only our own.
    fn do_round(&mut self, rng: &mut dyn CryptoRng) -> Result<Vec<Outgoing<Self::Message>>, Bug>;

    /// Takes one message. The driver has checked sender, channel and slot, and delivers each slot of a party once.
    ///
    /// # Errors
    /// Blame for one or more senders: not necessarily `from`, since false shares may be found only when combined. It never
    /// ends the instance: one cheater cannot deny service.
    fn update(&mut self, from: PartyId, message: Self::Message) -> Result<(), Vec<(PartyId, Self::Misbehaviour)>>;

    /// Logical time passes: a tick or a block height.
    fn expire_round(&mut self) {}

    /// A party was banned by the driver (equivocation, garbage): forget what it sent, expect nothing more from it.
    fn exclude(&mut self, party: PartyId);

    /// Whether that party may have something to say that is not here: then it is worth to ask it, should time pass.
    fn awaits(&self, party: PartyId) -> bool;

    /// Where the protocol stands.
    fn progress(&self) -> Progress;

    /// Whether the next round can be done.
    fn is_ready_for_next_round(&self) -> bool {
        self.progress() == Progress::NextRound
    }

    /// Whether the result is there.
    fn is_ready_to_finalize(&self) -> bool {
        self.progress() == Progress::Finalize
    }

    /// How many parties' contributions it has, and how many it takes, for people who watch.
    fn contributions(&self) -> (usize, usize);

    /// What is left to do for others when this party has finished. Asked just before [`finalize`](Self::finalize).
    fn epilogue(&self) -> Option<Box<dyn Epilogue<Self::Message>>> {
        None
    }

    /// The result.
    ///
    /// # Errors
    /// [`Abort`] with the reason.
    fn finalize(self) -> Result<Self::Output, Abort>;
}

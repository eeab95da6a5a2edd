//! A running protocol, as the code that carries its messages sees it.

use bytes::Bytes;
use rand_core::CryptoRng;
use theta_names::Channel;

use crate::{Abort, Blame, Evidence, PartyId, Recipient, Slot};

/// What a machine takes.
#[derive(Clone, Debug)]
pub enum Input<S> {
    /// The application asked for this instance. Messages that came before wait for it.
    Start,
    /// A message from an authenticated peer.
    Message {
        /// Its sender, as the transport authenticated it.
        from: PartyId,
        /// The slot that it claims.
        slot: Slot,
        /// The channel that it came by. The transport sets it; the sender has no influence on it.
        channel: Channel,
        /// Its payload: any bytes.
        payload: Bytes,
    },
    /// What the stock of the key's epoch answers to an [`Effect::Ask`].
    Supply(S),
    /// Logical time passes.
    Tick,
}

/// What a machine wants done.
#[derive(Debug)]
pub enum Effect<O, M: Evidence, A> {
    /// Send a message.
    Send {
        /// The recipient.
        to: Recipient,
        /// Its slot.
        slot: Slot,
        /// How it must travel.
        channel: Channel,
        /// Its payload.
        payload: Bytes,
    },
    /// Ask the stock of the key's epoch for something, or give it something to keep. Its answer comes as
    /// [`Input::Supply`].
    Ask(A),
    /// A party misbehaved. The instance goes on.
    Blame(Blame<M>),
    /// The end; it comes exactly once. Afterwards the machine emits nothing but replies to parties that have not
    /// finished.
    Finished(Result<O, Abort>),
}

/// What a machine wants done after one input, in this order.
pub type Effects<M> = Vec<Effect<<M as Machine>::Output, <M as Machine>::Misbehaviour, <M as Machine>::Ask>>;

/// A running protocol of any kind: takes inputs, emits effects. It never blocks, and never panics on anything that
/// comes from outside.
pub trait Machine: Send {
    /// The protocol's result.
    type Output;
    /// What the protocol blames parties for.
    type Misbehaviour: Evidence;
    /// What it asks the stock of its key's epoch for: see [`Protocol::Ask`](crate::Protocol::Ask).
    type Ask;
    /// What the stock answers.
    type Supply;

    /// Takes one input and does everything that has become possible.
    fn handle(&mut self, input: Input<Self::Supply>, rng: &mut dyn CryptoRng) -> Effects<Self>;

    /// The number of parties that have contributed, and the number that is needed.
    fn contributions(&self) -> (usize, usize);

    /// Whether a party may have something to say that this one lacks: see [`Protocol::awaits`](crate::Protocol::awaits).
    fn awaits(&self, party: PartyId) -> bool;

    /// Whether [`Effect::Finished`] was emitted. From then on inputs are ignored, except questions while the machine
    /// [lingers](Machine::lingers).
    fn is_finished(&self) -> bool;

    /// It is put aside, perhaps for good: see [`Protocol::rest`](crate::Protocol::rest).
    fn rest(&mut self) {}

    /// How many bytes it keeps of what others have sent, about.
    fn kept_bytes(&self) -> usize {
        0
    }

    /// Whether a message of its own is still to be kept for others after a rest: see [`Protocol::outlives_rest`](crate::Protocol::outlives_rest).
    fn outlives_rest(&self, _slot: Slot) -> bool {
        true
    }

    /// Whether it has finished and still replies to parties that have not: see [`Replies`](crate::Replies).
    fn lingers(&self) -> bool {
        false
    }
}

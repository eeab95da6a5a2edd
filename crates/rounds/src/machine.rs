//! What runs a protocol, as those see it who carry messages.

use bytes::Bytes;
use rand_core::CryptoRng;
use theta_names::Channel;

use crate::{Abort, Blame, Evidence, PartyId, Recipient, Slot};

/// What happens to a machine.
#[derive(Clone, Debug)]
pub enum Input<S> {
    /// The application asked for this instance. Messages that came before wait for it.
    Start,
    /// A message from an authenticated peer.
    Message {
        /// Its sender, as the transport authenticated it.
        from: PartyId,
        /// Where it claims to belong.
        slot: Slot,
        /// How it came, as the transport says: its sender has no word in that.
        channel: Channel,
        /// Its bytes, of any content.
        payload: Bytes,
    },
    /// What the stock of the key's epoch answers to an [`Effect::Ask`].
    Supply(S),
    /// Logical time passes.
    Tick,
}

/// What a machine wants done, in this order.
#[derive(Debug)]
pub enum Effect<O, M: Evidence, A> {
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
    /// Ask the stock of the key's epoch, or give it something to keep. What comes back is an [`Input::Supply`].
    Ask(A),
    /// A party misbehaved. The instance goes on.
    Blame(Blame<M>),
    /// The end; exactly once. After it, there are but replies to those that have not finished.
    Finished(Result<O, Abort>),
}

/// What a machine wants done after one input.
pub type Effects<M> = Vec<Effect<<M as Machine>::Output, <M as Machine>::Misbehaviour, <M as Machine>::Ask>>;

/// A running protocol of any kind: eats inputs, emits effects. Never blocks, never panics on what comes from outside.
pub trait Machine: Send {
    /// The protocol's result.
    type Output;
    /// What the protocol blames parties for.
    type Misbehaviour: Evidence;
    /// What it asks the stock of its key's epoch for: see [`Protocol::Ask`](crate::Protocol::Ask).
    type Ask;
    /// What the stock answers.
    type Supply;

    /// Takes one input and does all that it makes possible.
    fn handle(&mut self, input: Input<Self::Supply>, rng: &mut dyn CryptoRng) -> Effects<Self>;

    /// How many parties' contributions there are, and how many it takes.
    fn contributions(&self) -> (usize, usize);

    /// Whether a party may have something to say that this one lacks: see [`Protocol::awaits`](crate::Protocol::awaits).
    fn awaits(&self, party: PartyId) -> bool;

    /// Whether [`Effect::Finished`] was emitted; from then on inputs are ignored, but for what [`Machine::lingers`] says.
    fn is_finished(&self) -> bool;

    /// Whether it has finished and still replies to those that have not: see [`Replies`](crate::Replies).
    fn lingers(&self) -> bool {
        false
    }
}

//! The message of a program: what one party tells another in one round, all in one.

use bytes::Bytes;
use theta_rounds::{
    Channel, EARLY_BYTES, EARLY_MESSAGES, KEPT_BYTES, Malformed, PartyId, ProtocolMessage, SLOT_BYTES, SMALL_BYTES,
    Slot,
};

/// The longest message, in bytes, 1,019 KiB: beside one of these there is room for all that may wait for its round, and for what is kept of rounds before.
pub const LONGEST_MESSAGE: usize = KEPT_BYTES - EARLY_BYTES - SMALL_BYTES - (EARLY_MESSAGES + ROUNDS) * SLOT_BYTES;

/// Of so many rounds at most it is kept that they were, and not what was said.
const ROUNDS: usize = 4;

/// Programs have one kind of messages.
const KIND: u16 = 1;

/// What one party tells another in one round. Only the program knows how to read it: see `Party::exchange`.
#[derive(Clone, Debug)]
pub struct RoundMessage {
    pub(crate) round: u16,
    pub(crate) payload: Bytes,
}

impl ProtocolMessage for RoundMessage {
    fn slot(&self) -> Slot {
        Slot { kind: KIND, number: self.round }
    }

    /// All of them are private: shares are among them, and what one party reads is not what another does.
    fn channel(slot: Slot) -> Option<Channel> {
        (slot.kind == KIND && slot.number > 0).then_some(Channel::Private)
    }

    fn encode(&self) -> Bytes {
        self.payload.clone()
    }

    fn decode(_from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self, Malformed> {
        Ok(Self { round: slot.number, payload: Bytes::copy_from_slice(payload) })
    }
}

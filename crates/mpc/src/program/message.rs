//! The message of a program: what one party tells another in one round, all in one.

use bytes::Bytes;
use theta_rounds::{Channel, EARLY_BYTES, Malformed, PartyId, ProtocolMessage, Slot};

/// The longest message, in bytes: as much as may wait for its round.
pub const LONGEST_MESSAGE: usize = EARLY_BYTES;

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

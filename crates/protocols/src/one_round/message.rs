//! The one message.

use core::num::NonZeroU16;

use bytes::Bytes;
use theta_groups::DecodeError;
use theta_rounds::{Channel, Malformed, PartyId, Round, RoundMessage, Slot};
use theta_schemes::ThresholdScheme;
use theta_sharing::ShareIndex;

/// Round 1, the only one: everybody's share, to all.
pub const SHARE: Slot = Slot { round: Round(1), kind: 0 };

/// A party's share, or why what it sent is none.
///
/// The payload is [`ThresholdScheme::encode_share`]; whose share it is follows from who sent it and is not repeated, so
/// nobody can send a share under another's name.
pub struct ShareMessage<S: ThresholdScheme>(pub(super) Result<S::Share, DecodeError>);

/// Party i holds the polynomial's value at i.
pub(crate) fn index_of(party: PartyId) -> Option<ShareIndex> {
    NonZeroU16::new(party.get()).map(ShareIndex::from)
}

/// The inverse of [`index_of`].
pub(crate) fn party_of(index: ShareIndex) -> Option<PartyId> {
    NonZeroU16::new(index.get()).map(PartyId::from)
}

impl<S: ThresholdScheme> RoundMessage for ShareMessage<S> {
    fn slot(&self) -> Slot {
        SHARE
    }

    fn channel(slot: Slot) -> Option<Channel> {
        (slot == SHARE).then_some(Channel::Broadcast)
    }

    fn encode(&self) -> Bytes {
        self.0.as_ref().map(S::encode_share).unwrap_or_default().into()
    }

    fn decode(from: PartyId, _slot: Slot, payload: &[u8]) -> Result<Self, Malformed> {
        let index = index_of(from).ok_or(Malformed("sender zero"))?;
        Ok(Self(S::decode_share(index, payload)))
    }
}

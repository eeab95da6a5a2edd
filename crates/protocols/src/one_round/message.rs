//! The messages.

use bytes::Bytes;
use theta_groups::DecodeError;
use theta_rounds::{Channel, Malformed, PartyId, Round, RoundMessage, Slot};
use theta_schemes::ThresholdScheme;

/// Everybody's share, to all; bare where the scheme has bare ones.
pub const SHARE: Slot = Slot { round: Round(1), kind: 0 };
/// Whoever got a false result asks all for proofs.
pub const PROOF_REQUEST: Slot = Slot { round: Round(2), kind: 0 };
/// The answer: the same share with its proof.
pub const PROVEN_SHARE: Slot = Slot { round: Round(2), kind: 1 };

/// The longest share of any scheme, with its proof, in bytes: three numbers of the size of an RSA modulus of 4096 bits, twice.
/// The driver holds every share that is sent against it.
pub(super) const LONGEST_SHARE: usize = 3 << 10;

/// A message of the family. The payload of a share is [`ThresholdScheme::encode_share`]; whose share it is follows from
/// who sent it and is not repeated, so nobody can send a share under another's name.
pub enum ShareMessage<S: ThresholdScheme> {
    /// A party's share, or why what it sent is none.
    Share(Result<S::Share, DecodeError>),
    /// "Prove your share."
    ProofRequest,
    /// The share again, with its proof.
    ProvenShare(Result<S::Share, DecodeError>),
}

impl<S: ThresholdScheme> RoundMessage for ShareMessage<S> {
    fn slot(&self) -> Slot {
        match self {
            Self::Share(_) => SHARE,
            Self::ProofRequest => PROOF_REQUEST,
            Self::ProvenShare(_) => PROVEN_SHARE,
        }
    }

    fn channel(slot: Slot) -> Option<Channel> {
        matches!(slot, SHARE | PROOF_REQUEST | PROVEN_SHARE).then_some(Channel::Broadcast)
    }

    fn encode(&self) -> Bytes {
        match self {
            Self::Share(share) | Self::ProvenShare(share) => {
                share.as_ref().map(S::encode_share).unwrap_or_default().into()
            }
            Self::ProofRequest => Bytes::new(),
        }
    }

    fn decode(from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self, Malformed> {
        let index = from.share();
        let share = || S::decode_share(index, payload);
        match slot {
            PROOF_REQUEST if payload.is_empty() => Ok(Self::ProofRequest),
            PROOF_REQUEST => Err(Malformed("a request for proofs has no content")),
            PROVEN_SHARE => match share() {
                Ok(bare) if !S::is_proven(&bare) => Err(Malformed("a proven share has a proof")),
                share => Ok(Self::ProvenShare(share)),
            },
            _ => Ok(Self::Share(share())),
        }
    }
}

//! The messages.

use bytes::Bytes;
use theta_rounds::{Channel, Malformed, PartyId, ProtocolMessage, Slot};

/// A party's share, to all; without its proof where the scheme has bare shares.
pub const SHARE: Slot = Slot { kind: 1, number: 1 };
/// A party that got a false result asks all for the proofs of the first round's shares. It is a question, which is
/// answered in any round.
pub const PROOF_REQUEST: Slot = Slot { kind: 2, number: 1 };
/// The answer, to the questioner alone: the same share with its proof. Only parties in the second round, which have
/// asked, use it.
pub const PROVEN_SHARE: Slot = Slot { kind: 3, number: 2 };

/// The combined value of k shares, to all or to those that ask, where not everybody combines. Its number is below that of
/// the first round, so that parties that stand by take it.
pub const COMBINED: Slot = Slot { kind: 4, number: 0 };

/// The longest share of any scheme, with its proof, in bytes: three numbers of the size of an RSA modulus of 4096 bits,
/// twice. The driver refuses longer ones. Combined values are no longer, but for those that are shares themselves.
pub(super) const LONGEST_SHARE: usize = 3 << 10;

/// A message of the family. Shares are encoded by
/// [`ThresholdScheme::encode_share`](theta_schemes::ThresholdScheme::encode_share); the receiver finds out if the bytes
/// are no share. The sender determines whose share it is; messages do not repeat it, so that nobody can send a share
/// under another's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShareMessage {
    /// A party's share.
    Share(Bytes),
    /// The question for the proof of a share.
    ProofRequest,
    /// The share again, with its proof.
    ProvenShare(Bytes),
    /// A combined value. All honest parties send the same bytes for one request, but for schemes whose value is k shares.
    Combined(Bytes),
}

impl ProtocolMessage for ShareMessage {
    fn slot(&self) -> Slot {
        match self {
            Self::Share(_) => SHARE,
            Self::ProofRequest => PROOF_REQUEST,
            Self::ProvenShare(_) => PROVEN_SHARE,
            Self::Combined(_) => COMBINED,
        }
    }

    fn channel(slot: Slot) -> Option<Channel> {
        matches!(slot, SHARE | PROOF_REQUEST | PROVEN_SHARE | COMBINED).then_some(Channel::Broadcast)
    }

    fn is_question(slot: Slot) -> bool {
        slot == PROOF_REQUEST
    }

    fn encode(&self) -> Bytes {
        match self {
            Self::Share(bytes) | Self::ProvenShare(bytes) | Self::Combined(bytes) => bytes.clone(),
            Self::ProofRequest => Bytes::new(),
        }
    }

    fn decode(_from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self, Malformed> {
        match slot {
            PROOF_REQUEST if payload.is_empty() => Ok(Self::ProofRequest),
            PROOF_REQUEST => Err(Malformed("a request for proofs has no content")),
            PROVEN_SHARE => Ok(Self::ProvenShare(Bytes::copy_from_slice(payload))),
            COMBINED => Ok(Self::Combined(Bytes::copy_from_slice(payload))),
            _ => Ok(Self::Share(Bytes::copy_from_slice(payload))),
        }
    }
}

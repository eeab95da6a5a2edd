//! The four messages.
//!
//! A slot's `kind` tells the messages of a round apart: commitments have running numbers, sessions too, and both begin
//! at a random one. Whoever was restarted in the middle of an instance has forgotten its nonces and makes new ones; their
//! numbers are others, so that nobody takes it for an equivocator (but with probability 2^-16 or so a message, and then
//! for this instance only).

use core::num::NonZeroU16;

use bytes::Bytes;
use theta_groups::{Group, Scalar};
use theta_rounds::{Channel, Malformed, PartyId, Round, RoundMessage, Slot};
use theta_schemes::signatures::frost::{FrostSuite, SignatureShare, SigningCommitments};
use theta_sharing::ShareIndex;

use crate::one_round::{index_of, party_of};

/// A signer's commitments, to a coordinator.
pub const COMMITMENTS: Round = Round(1);
/// Who signs with which commitments, from a coordinator to each of the signers.
pub const PACKAGE: Round = Round(2);
/// A signer's share, to the coordinator.
pub const SHARE: Round = Round(3);
/// The signature, to all.
pub const SIGNATURE: Round = Round(4);

/// Commitments and the number by which their signer finds the nonces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbered<C: FrostSuite> {
    pub(super) number: u16,
    pub(super) commitments: SigningCommitments<C>,
}

/// A message; see the constants for who sends it to whom.
pub enum FrostMessage<C: FrostSuite> {
    /// D || E; the number is the slot's kind.
    Commitments(CommitmentsMessage<C>),
    /// The number of the addressee's commitments, then index, D, E of each signer by rising index.
    Package(PackageMessage<C>),
    /// The share, then number, D, E for a next session.
    Share(ShareMessage<C>),
    /// The signature, then the indices of its signers as the coordinator has them.
    Signature(SignatureMessage),
}

/// See [`FrostMessage::Commitments`].
pub struct CommitmentsMessage<C: FrostSuite>(pub(super) Numbered<C>);

/// See [`FrostMessage::Package`].
pub struct PackageMessage<C: FrostSuite> {
    pub(super) session: u16,
    pub(super) number: u16,
    pub(super) list: Vec<SigningCommitments<C>>,
}

/// See [`FrostMessage::Share`].
pub struct ShareMessage<C: FrostSuite> {
    pub(super) session: u16,
    pub(super) share: SignatureShare<C>,
    pub(super) next: Numbered<C>,
}

/// See [`FrostMessage::Signature`].
pub struct SignatureMessage {
    pub(super) number: u16,
    pub(super) signature: Vec<u8>,
    pub(super) signers: Vec<PartyId>,
}

const NUMBER_LEN: usize = 2;

fn number(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<NUMBER_LEN>()?;
    Some((u16::from_be_bytes(*number), rest))
}

fn commitments<C: FrostSuite>(index: ShareIndex, bytes: &[u8]) -> Result<SigningCommitments<C>, Malformed> {
    // Whether they are in the subgroup is checked when a signature fails; see `spec/frost.md`.
    SigningCommitments::decode_unchecked_subgroup(index, bytes)
        .map_err(|_| Malformed("commitments are two elements of the group"))
}

/// Reads the list of a package. That it is a set of signers that can sign is for the scheme to check.
fn list<C: FrostSuite>(bytes: &[u8]) -> Result<Vec<SigningCommitments<C>>, Malformed> {
    const NO_LIST: Malformed = Malformed("a package is a list of commitments");
    let entries = bytes.chunks_exact(NUMBER_LEN + 2 * C::Group::ENCODED_LEN);
    if !entries.remainder().is_empty() {
        return Err(NO_LIST);
    }
    let entry = |entry| {
        let (index, bytes) = number(entry).ok_or(NO_LIST)?;
        commitments(NonZeroU16::new(index).ok_or(Malformed("no party has index zero"))?.into(), bytes)
    };
    entries.map(entry).collect()
}

fn signers(bytes: &[u8]) -> Result<Vec<PartyId>, Malformed> {
    let (indices, rest) = bytes.as_chunks::<NUMBER_LEN>();
    let signers: Option<Vec<PartyId>> =
        indices.iter().map(|index| NonZeroU16::new(u16::from_be_bytes(*index)).map(PartyId::from)).collect();
    let rising = |signers: &Vec<PartyId>| signers.iter().zip(signers.iter().skip(1)).all(|(a, b)| a < b);
    signers.filter(|signers| rest.is_empty() && rising(signers)).ok_or(Malformed("signers are listed by rising index"))
}

impl<C: FrostSuite> FrostMessage<C> {
    fn read(from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self, Malformed> {
        let index = index_of(from).ok_or(Malformed("sender zero"))?;
        let kind = slot.kind;
        match slot.round {
            COMMITMENTS => {
                let commitments = commitments(index, payload)?;
                Ok(Self::Commitments(CommitmentsMessage(Numbered { number: kind, commitments })))
            }
            PACKAGE => {
                let (number, rest) = number(payload).ok_or(Malformed("a package begins with a number"))?;
                Ok(Self::Package(PackageMessage { session: kind, number, list: list(rest)? }))
            }
            SHARE => {
                const NO_SHARE: Malformed = Malformed("a share is a scalar and commitments");
                let len = <C::Group as Group>::Scalar::ENCODED_LEN;
                let (share, rest) = payload.split_at_checked(len).ok_or(NO_SHARE)?;
                let (number, rest) = number(rest).ok_or(NO_SHARE)?;
                let share = SignatureShare::decode(index, share).map_err(|_| NO_SHARE)?;
                let next = Numbered { number, commitments: commitments(index, rest)? };
                Ok(Self::Share(ShareMessage { session: kind, share, next }))
            }
            SIGNATURE => {
                let len = C::STANDARD_LEN + <C::Group as Group>::Scalar::ENCODED_LEN;
                let (signature, rest) = payload.split_at_checked(len).ok_or(Malformed("too short for a signature"))?;
                let (signature, signers) = (signature.to_vec(), signers(rest)?);
                Ok(Self::Signature(SignatureMessage { number: kind, signature, signers }))
            }
            _ => Err(Malformed("no such round")),
        }
    }
}

impl<C: FrostSuite> RoundMessage for FrostMessage<C> {
    fn slot(&self) -> Slot {
        let (round, kind) = match self {
            Self::Commitments(CommitmentsMessage(Numbered { number, .. })) => (COMMITMENTS, *number),
            Self::Package(message) => (PACKAGE, message.session),
            Self::Share(message) => (SHARE, message.session),
            Self::Signature(message) => (SIGNATURE, message.number),
        };
        Slot { round, kind }
    }

    fn channel(slot: Slot) -> Option<Channel> {
        match slot.round {
            COMMITMENTS | PACKAGE | SHARE => Some(Channel::Private),
            SIGNATURE => Some(Channel::Broadcast),
            _ => None,
        }
    }

    fn encode(&self) -> Bytes {
        let mut bytes = Vec::new();
        match self {
            Self::Commitments(CommitmentsMessage(numbered)) => bytes = numbered.commitments.encode(),
            Self::Package(message) => {
                bytes.extend_from_slice(&message.number.to_be_bytes());
                for commitments in &message.list {
                    bytes.extend_from_slice(&commitments.index().get().to_be_bytes());
                    bytes.extend_from_slice(&commitments.encode());
                }
            }
            Self::Share(message) => {
                bytes = message.share.encode();
                bytes.extend_from_slice(&message.next.number.to_be_bytes());
                bytes.extend_from_slice(&message.next.commitments.encode());
            }
            Self::Signature(message) => {
                bytes.extend_from_slice(&message.signature);
                message.signers.iter().for_each(|party| bytes.extend_from_slice(&party.get().to_be_bytes()));
            }
        }
        bytes.into()
    }

    fn decode(from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self, Malformed> {
        Self::read(from, slot, payload)
    }
}

/// Whose shares a session takes.
pub(super) fn parties_of<C: FrostSuite>(list: &[SigningCommitments<C>]) -> impl Iterator<Item = PartyId> {
    list.iter().filter_map(|commitments| party_of(commitments.index()))
}

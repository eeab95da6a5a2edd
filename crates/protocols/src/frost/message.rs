//! The five messages, by kind.
//!
//! A slot's number tells the messages of a kind apart. It is the number of a session or a running number, and starts at
//! a random one. A party that was restarted in the middle of an instance has forgotten its nonces and makes new ones;
//! its messages have other numbers, so that nobody takes it for an equivocator (except with a probability of about
//! 2^-16 for each message, and then for this instance only).

use core::num::NonZeroU16;

use bytes::Bytes;
use theta_groups::{Group, Scalar};
use theta_rounds::{Channel, Malformed, PartyId, ProtocolMessage, Slot};
use theta_schemes::signatures::frost::{FrostSuite, SignatureShare, SigningCommitments};
use theta_sharing::ShareIndex;

/// A signer's commitments, to a coordinator.
pub const COMMITMENTS: u16 = 1;
/// The signers of a session and their commitments, from a coordinator to each of the signers.
pub const PACKAGE: u16 = 2;
/// A signer's share, to the coordinator.
pub const SHARE: u16 = 3;
/// The signature, to all.
pub const SIGNATURE: u16 = 4;
/// A coordinator's request for commitments that it lacks.
pub const REQUEST: u16 = 5;

/// The most commitments for later signatures in one message.
pub(super) const MOST_POOLED: usize = 64;

/// Commitments and the number by which their signer finds the nonces.
#[derive(Clone, Copy, Debug)]
pub struct Numbered<C: FrostSuite> {
    pub(super) number: u64,
    pub(super) commitments: SigningCommitments<C>,
}

/// The commitments that a signer gives a coordinator.
pub(super) struct Offer<C: FrostSuite> {
    /// For this signature.
    pub(super) own: Option<Numbered<C>>,
    /// For later ones.
    pub(super) pooled: Vec<Numbered<C>>,
}

/// A message; see the constants for who sends it to whom.
pub enum FrostMessage<C: FrostSuite> {
    /// Whether the first pair is for this signature (1 byte); then the number, D and E of each pair.
    Commitments(CommitmentsMessage<C>),
    /// How many more commitments are wanted, the number of the receiver's commitments, then the index, D and E of each
    /// signer by rising index.
    Package(PackageMessage),
    /// The share; then commitments as in [`FrostMessage::Commitments`].
    Share(ShareMessage<C>),
    /// The signature, the number of its signers and their indices as the coordinator has them; under a re-randomised
    /// key also their commitments.
    Signature(SignatureMessage),
    /// How many commitments for later signatures are wanted, in addition to those for this one.
    Request(RequestMessage),
}

/// See [`FrostMessage::Commitments`].
pub struct CommitmentsMessage<C: FrostSuite> {
    pub(super) sent: u16,
    pub(super) offer: Offer<C>,
}

/// See [`FrostMessage::Package`].
pub struct PackageMessage {
    pub(super) session: u16,
    pub(super) wanted: u8,
    pub(super) number: u64,
    /// The list as [`encode_list`] wrote it. A receiver without nonces of that number does not read it.
    pub(super) list: Bytes,
}

/// See [`FrostMessage::Share`].
pub struct ShareMessage<C: FrostSuite> {
    pub(super) session: u16,
    pub(super) share: SignatureShare<C>,
    pub(super) offer: Offer<C>,
}

/// See [`FrostMessage::Signature`].
pub struct SignatureMessage {
    pub(super) sent: u16,
    pub(super) signed: Signed,
}

/// See [`FrostMessage::Request`].
pub struct RequestMessage {
    pub(super) sent: u16,
    pub(super) wanted: u8,
}

/// A signature and the parties whose shares are in it.
#[derive(Clone)]
pub(super) struct Signed {
    pub(super) signature: Vec<u8>,
    pub(super) signers: Vec<PartyId>,
    /// The signers' commitments, from which a re-randomised key is derived; empty under the group's own key.
    pub(super) commitments: Vec<u8>,
}

const INDEX_LEN: usize = 2;
const NUMBER_LEN: usize = 8;

fn index(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (index, rest) = bytes.split_first_chunk::<INDEX_LEN>()?;
    Some((u16::from_be_bytes(*index), rest))
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<NUMBER_LEN>()?;
    Some((u64::from_be_bytes(*number), rest))
}

fn commitments<C: FrostSuite>(index: ShareIndex, bytes: &[u8]) -> Result<SigningCommitments<C>, Malformed> {
    // Membership in the subgroup is checked when a signature fails; see `spec/frost.md`.
    SigningCommitments::decode_unchecked_subgroup(index, bytes)
        .map_err(|_| Malformed("commitments are two elements of the group"))
}

impl<C: FrostSuite> Offer<C> {
    fn read(index: ShareIndex, bytes: &[u8]) -> Result<Self, Malformed> {
        const NO_OFFER: Malformed = Malformed("commitments have a number each");
        let (is_own, bytes) = match bytes.split_first() {
            Some((0, rest)) => (false, rest),
            Some((1, rest)) => (true, rest),
            _ => return Err(Malformed("commitments are for this signature or for later ones")),
        };
        let entries = bytes.chunks_exact(NUMBER_LEN + 2 * C::Group::ENCODED_LEN);
        if !entries.remainder().is_empty() {
            return Err(NO_OFFER);
        }
        if entries.len() > MOST_POOLED + 1 {
            return Err(Malformed("more commitments than anybody asks for"));
        }
        let mut entries = entries.map(|entry| {
            let (number, bytes) = number(entry).ok_or(NO_OFFER)?;
            Ok::<_, Malformed>(Numbered { number, commitments: commitments(index, bytes)? })
        });
        let own = if is_own { Some(entries.next().ok_or(NO_OFFER)??) } else { None };
        Ok(Self { own, pooled: entries.collect::<Result<_, _>>()? })
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.own.is_some().into());
        for Numbered { number, commitments } in self.own.iter().chain(&self.pooled) {
            bytes.extend_from_slice(&number.to_be_bytes());
            bytes.extend_from_slice(&commitments.encode());
        }
    }

    /// Whether there are none.
    pub(super) const fn is_empty(&self) -> bool {
        self.own.is_none() && self.pooled.is_empty()
    }
}

const NO_LIST: Malformed = Malformed("a package is a list of commitments");

/// Index, D and E of each signer.
pub(super) fn encode_list<C: FrostSuite>(list: &[SigningCommitments<C>]) -> Bytes {
    let mut bytes = Vec::new();
    for commitments in list {
        bytes.extend_from_slice(&commitments.index().get().to_be_bytes());
        bytes.extend_from_slice(&commitments.encode());
    }
    bytes.into()
}

/// Reads the list of a package. The scheme checks that it is a set of signers that can sign.
pub(super) fn decode_list<C: FrostSuite>(bytes: &[u8]) -> Result<Vec<SigningCommitments<C>>, Malformed> {
    let entries = bytes.chunks_exact(INDEX_LEN + 2 * C::Group::ENCODED_LEN);
    if !entries.remainder().is_empty() {
        return Err(NO_LIST);
    }
    let entry = |entry| {
        let (index, bytes) = index(entry).ok_or(NO_LIST)?;
        commitments(NonZeroU16::new(index).ok_or(Malformed("no party has index zero"))?.into(), bytes)
    };
    entries.map(entry).collect()
}

/// Reads the number of signers and their indices; returns the rest, too.
fn signers(bytes: &[u8]) -> Result<(Vec<PartyId>, &[u8]), Malformed> {
    const NO_SIGNERS: Malformed = Malformed("signers are listed by rising index");
    let (count, rest) = index(bytes).ok_or(NO_SIGNERS)?;
    let (listed, rest) = rest.split_at_checked(INDEX_LEN * usize::from(count)).ok_or(NO_SIGNERS)?;
    let (indices, _) = listed.as_chunks::<INDEX_LEN>();
    let signers: Option<Vec<PartyId>> =
        indices.iter().map(|index| Some(PartyId::of_share(u16::from_be_bytes(*index).try_into().ok()?))).collect();
    let rising = |signers: &Vec<PartyId>| signers.iter().zip(signers.iter().skip(1)).all(|(a, b)| a < b);
    Ok((signers.filter(rising).ok_or(NO_SIGNERS)?, rest))
}

impl<C: FrostSuite> FrostMessage<C> {
    fn read(from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self, Malformed> {
        let index = from.share();
        let sent = slot.number;
        match slot.kind {
            COMMITMENTS => {
                let offer = Offer::read(index, payload)?;
                if offer.is_empty() {
                    return Err(Malformed("no commitments at all"));
                }
                Ok(Self::Commitments(CommitmentsMessage { sent, offer }))
            }
            PACKAGE => {
                const NO_PACKAGE: Malformed = Malformed("a package begins with two numbers");
                let (wanted, rest) = payload.split_first().ok_or(NO_PACKAGE)?;
                let (number, rest) = number(rest).ok_or(NO_PACKAGE)?;
                if !rest.len().is_multiple_of(INDEX_LEN + 2 * C::Group::ENCODED_LEN) {
                    return Err(NO_LIST);
                }
                let list = Bytes::copy_from_slice(rest);
                Ok(Self::Package(PackageMessage { session: sent, wanted: *wanted, number, list }))
            }
            SHARE => {
                const NO_SHARE: Malformed = Malformed("a share is a scalar and commitments");
                let len = <C::Group as Group>::Scalar::ENCODED_LEN;
                let (share, rest) = payload.split_at_checked(len).ok_or(NO_SHARE)?;
                let share = SignatureShare::decode(index, share).map_err(|_| NO_SHARE)?;
                Ok(Self::Share(ShareMessage { session: sent, share, offer: Offer::read(index, rest)? }))
            }
            SIGNATURE => {
                let len = C::STANDARD_LEN + <C::Group as Group>::Scalar::ENCODED_LEN;
                let (signature, rest) = payload.split_at_checked(len).ok_or(Malformed("too short for a signature"))?;
                let (signers, rest) = signers(rest)?;
                let signed = Signed { signature: signature.to_vec(), signers, commitments: rest.to_vec() };
                Ok(Self::Signature(SignatureMessage { sent, signed }))
            }
            REQUEST => match payload {
                [wanted] => Ok(Self::Request(RequestMessage { sent, wanted: *wanted })),
                _ => Err(Malformed("a request is one byte")),
            },
            _ => Err(Malformed("no such message")),
        }
    }
}

/// The longest payload of a slot, in bytes, for a key with n shares.
pub(super) fn longest<C: FrostSuite>(n: u16, slot: Slot) -> usize {
    let (signers, pair) = (usize::from(n), 2 * C::Group::ENCODED_LEN);
    let scalar = <C::Group as Group>::Scalar::ENCODED_LEN;
    let offer = 1 + (MOST_POOLED + 1) * (NUMBER_LEN + pair);
    match slot.kind {
        COMMITMENTS => offer,
        PACKAGE => 1 + NUMBER_LEN + signers * (INDEX_LEN + pair),
        SHARE => scalar + offer,
        // Under a re-randomised key the signers' commitments follow, each behind an identifier as long as a scalar.
        SIGNATURE => C::STANDARD_LEN + scalar + INDEX_LEN + signers * (INDEX_LEN + scalar + pair),
        REQUEST => 1,
        _ => 0,
    }
}

impl<C: FrostSuite> ProtocolMessage for FrostMessage<C> {
    fn slot(&self) -> Slot {
        let (kind, number) = match self {
            Self::Commitments(message) => (COMMITMENTS, message.sent),
            Self::Package(message) => (PACKAGE, message.session),
            Self::Share(message) => (SHARE, message.session),
            Self::Signature(message) => (SIGNATURE, message.sent),
            Self::Request(message) => (REQUEST, message.sent),
        };
        Slot { kind, number }
    }

    fn channel(slot: Slot) -> Option<Channel> {
        match slot.kind {
            COMMITMENTS | PACKAGE | SHARE | REQUEST => Some(Channel::Private),
            SIGNATURE => Some(Channel::Broadcast),
            _ => None,
        }
    }

    fn encode(&self) -> Bytes {
        let mut bytes = Vec::new();
        match self {
            Self::Commitments(message) => message.offer.write(&mut bytes),
            Self::Package(message) => {
                bytes.push(message.wanted);
                bytes.extend_from_slice(&message.number.to_be_bytes());
                bytes.extend_from_slice(&message.list);
            }
            Self::Share(message) => {
                bytes = message.share.encode();
                message.offer.write(&mut bytes);
            }
            Self::Signature(SignatureMessage { signed, .. }) => {
                bytes.extend_from_slice(&signed.signature);
                let count = u16::try_from(signed.signers.len()).unwrap_or(u16::MAX);
                bytes.extend_from_slice(&count.to_be_bytes());
                signed.signers.iter().for_each(|party| bytes.extend_from_slice(&party.get().to_be_bytes()));
                bytes.extend_from_slice(&signed.commitments);
            }
            Self::Request(message) => bytes.push(message.wanted),
        }
        bytes.into()
    }

    fn decode(from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self, Malformed> {
        Self::read(from, slot, payload)
    }
}

/// The parties whose shares a session takes.
pub(super) fn parties_of<C: FrostSuite>(list: &[SigningCommitments<C>]) -> impl Iterator<Item = PartyId> {
    list.iter().map(|commitments| PartyId::of_share(commitments.index()))
}

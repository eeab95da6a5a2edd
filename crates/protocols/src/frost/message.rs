//! The five messages, by kind.
//!
//! A slot's number tells the messages of a kind apart. It is the number of a session or a running number, and starts at
//! a random one. A party that was restarted in the middle of an instance has forgotten its nonces and makes new ones;
//! its messages have other numbers, so that nobody takes it for an equivocator (except with a probability of about
//! 2^-16 for each message, and then for this instance only).

use bytes::Bytes;
use theta_groups::{Group, Scalar};
use theta_names::codec::{Reader, Writer};
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

fn commitments<C: FrostSuite>(index: ShareIndex, fields: &mut Reader<'_>) -> Result<SigningCommitments<C>, Malformed> {
    // Membership in the subgroup is checked when a signature fails; see `spec/frost.md`.
    SigningCommitments::decode_unchecked_subgroup(index, fields.take(2 * C::Group::ENCODED_LEN)?)
        .map_err(|_| Malformed("commitments are two elements of the group"))
}

fn share_index(fields: &mut Reader<'_>) -> Result<ShareIndex, Malformed> {
    fields.u16()?.try_into().map_err(|_| Malformed("no party has index zero"))
}

impl<C: FrostSuite> Offer<C> {
    fn read(index: ShareIndex, mut fields: Reader<'_>) -> Result<Self, Malformed> {
        let is_own = fields.flag()?;
        let numbered = |fields: &mut Reader<'_>| {
            Ok::<_, Malformed>(Numbered { number: fields.u64()?, commitments: commitments(index, fields)? })
        };
        let own = if is_own { Some(numbered(&mut fields)?) } else { None };
        let pooled = fields.all(numbered)?;
        if pooled.len() + usize::from(is_own) > MOST_POOLED + 1 {
            return Err(Malformed("more commitments than anybody asks for"));
        }
        Ok(Self { own, pooled })
    }

    fn write(&self, writer: Writer) -> Writer {
        let pairs = self.own.iter().chain(&self.pooled);
        pairs.fold(writer.flag(self.own.is_some()), |writer, Numbered { number, commitments }| {
            writer.u64(*number).raw(&commitments.encode())
        })
    }

    /// Whether there are none.
    pub(super) const fn is_empty(&self) -> bool {
        self.own.is_none() && self.pooled.is_empty()
    }
}

/// Index, D and E of each signer.
pub(super) fn encode_list<C: FrostSuite>(list: &[SigningCommitments<C>]) -> Bytes {
    let write = |writer: Writer, commitments: &SigningCommitments<C>| {
        writer.u16(commitments.index().get()).raw(&commitments.encode())
    };
    list.iter().fold(Writer::default(), write).finish().into()
}

/// Reads the list of a package. The scheme checks that it is a set of signers that can sign.
pub(super) fn decode_list<C: FrostSuite>(bytes: &[u8]) -> Result<Vec<SigningCommitments<C>>, Malformed> {
    Reader::new(bytes).all(|fields| commitments(share_index(fields)?, fields))
}

/// Reads the number of signers and their indices.
fn signers(fields: &mut Reader<'_>) -> Result<Vec<PartyId>, Malformed> {
    let count = usize::from(fields.u16()?);
    let listed = Reader::new(fields.take(INDEX_LEN * count)?);
    let signers = listed.all(|fields| Ok::<_, Malformed>(PartyId::of_share(share_index(fields)?)))?;
    let rising = signers.is_sorted_by(|one, next| one < next);
    if rising { Ok(signers) } else { Err(Malformed("signers are listed by rising index")) }
}

impl<C: FrostSuite> FrostMessage<C> {
    fn read(from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self, Malformed> {
        let (index, sent) = (from.share(), slot.number);
        let mut fields = Reader::new(payload);
        match slot.kind {
            COMMITMENTS => {
                let offer = Offer::read(index, fields)?;
                if offer.is_empty() {
                    return Err(Malformed("no commitments at all"));
                }
                Ok(Self::Commitments(CommitmentsMessage { sent, offer }))
            }
            PACKAGE => {
                let (wanted, number) = (fields.u8()?, fields.u64()?);
                let list = Bytes::copy_from_slice(fields.rest());
                if !list.len().is_multiple_of(INDEX_LEN + 2 * C::Group::ENCODED_LEN) {
                    return Err(Malformed("a package is a list of commitments"));
                }
                Ok(Self::Package(PackageMessage { session: sent, wanted, number, list }))
            }
            SHARE => {
                let share = SignatureShare::decode(index, fields.take(<C::Group as Group>::Scalar::ENCODED_LEN)?)
                    .map_err(|_| Malformed("a share is a scalar and commitments"))?;
                Ok(Self::Share(ShareMessage { session: sent, share, offer: Offer::read(index, fields)? }))
            }
            SIGNATURE => {
                let signature = fields.take(C::STANDARD_LEN + <C::Group as Group>::Scalar::ENCODED_LEN)?.to_vec();
                let signers = signers(&mut fields)?;
                let signed = Signed { signature, signers, commitments: fields.rest().to_vec() };
                Ok(Self::Signature(SignatureMessage { sent, signed }))
            }
            REQUEST => {
                let wanted = fields.u8()?;
                Ok(fields.end(Self::Request(RequestMessage { sent, wanted }))?)
            }
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
        let writer = Writer::default();
        let written = match self {
            Self::Commitments(message) => message.offer.write(writer),
            Self::Package(message) => writer.u8(message.wanted).u64(message.number).raw(&message.list),
            Self::Share(message) => message.offer.write(writer.raw(&message.share.encode())),
            Self::Signature(SignatureMessage { signed, .. }) => {
                let count = u16::try_from(signed.signers.len()).unwrap_or(u16::MAX);
                let writer = writer.raw(&signed.signature).u16(count);
                let writer = signed.signers.iter().fold(writer, |writer, party| writer.u16(party.get()));
                writer.raw(&signed.commitments)
            }
            Self::Request(message) => writer.u8(message.wanted),
        };
        written.finish().into()
    }

    fn decode(from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self, Malformed> {
        Self::read(from, slot, payload)
    }
}

/// The parties whose shares a session takes.
pub(super) fn parties_of<C: FrostSuite>(list: &[SigningCommitments<C>]) -> impl Iterator<Item = PartyId> {
    list.iter().map(|commitments| PartyId::of_share(commitments.index()))
}

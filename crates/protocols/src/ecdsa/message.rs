//! The messages, by kind.
//!
//! A slot's number is a running number of its sender's that starts at a random one, as in [FROST](crate::frost): a party that was
//! restarted in the middle of an instance sends other messages than before, and nobody takes it for an equivocator. Programs take so many messages
//! that 16 bits are too few for that. Their kind is a random one of many, too, for each life of a sender; and their numbers run for each receiver.

mod views;

use bytes::Bytes;
use theta_groups::{Group, Scalar};
use theta_mpc::View;
use theta_mpc::ecdsa::Curve;
use theta_names::codec::{Reader, Writer};
use theta_rounds::{Channel, Malformed, PartyId, ProtocolMessage, Slot};
use theta_sharing::ShareIndex;

use super::Majority;
pub(super) use views::{GaveUp, Reason};
use views::{LONGEST_GAVE_UP, LONGEST_VIEW, read_view, write_view};

/// A signer's share of a signature, to all: presignature, R, the share.
pub const SHARE: u16 = 1;
/// The signature and the holders whose shares are in it, to whoever asks.
pub const SIGNATURE: u16 = 2;
/// From a coordinator to all: how many presignatures are made in this attempt, and by which holders.
pub const PREPARE: u16 = 3;
/// To each holder of an attempt's program that has failed: that it is thrown away, attempt first.
pub const GAVE_UP: u16 = 4;
/// To each of them when all have said so: what this one knows of the program, attempt first.
pub const VIEW: u16 = 5;
/// A message of the program of an attempt: attempt, round, and what the program sends in it. It is the first of these kinds: all above are for the same.
pub const PROGRAM: u16 = 6;

/// The longest message of a program, in bytes. With an honest majority, of either security, and as many presignatures as one makes it is some 3,000; with a dishonest one
/// a round of masked products takes 16,400 for each.
const fn longest_round(majority: Majority) -> usize {
    match majority {
        Majority::Honest => 1 << 15,
        Majority::Dishonest => 1 << 18,
    }
}

/// The length of r and s.
pub(super) const SIGNATURE_LEN: usize = 64;
const ID_LEN: usize = 32;
const INDEX_LEN: usize = 2;

/// A message; see the constants for who sends it to whom.
pub struct EcdsaMessage<G: Group> {
    pub(super) slot: Slot,
    pub(super) body: Body<G>,
}

/// What a message says.
pub(super) enum Body<G: Group> {
    Share { id: [u8; ID_LEN], element: G::Element, share: G::Scalar },
    Signature(Signed),
    Prepare { attempt: u16, count: u16, holders: Vec<ShareIndex> },
    GaveUp { attempt: u16, gave_up: GaveUp },
    View { attempt: u16, view: View },
    Program { attempt: u16, round: u16, payload: Bytes },
}

/// A signature and the holders that made it.
#[derive(Clone)]
pub(super) struct Signed {
    pub(super) bytes: [u8; SIGNATURE_LEN],
    pub(super) signers: Vec<ShareIndex>,
}

/// Indices by rising number.
fn indices(fields: &mut Reader<'_>) -> Result<Vec<ShareIndex>, Malformed> {
    let count = usize::from(fields.u16()?);
    let listed = Reader::new(fields.take(INDEX_LEN * count)?);
    let index =
        |fields: &mut Reader<'_>| ShareIndex::try_from(fields.u16()?).map_err(|_| Malformed("no share has index zero"));
    let indices = listed.all(index)?;
    let rising = indices.is_sorted_by(|one, next| one < next);
    if rising { Ok(indices) } else { Err(Malformed("holders are listed by rising index")) }
}

fn write_indices(writer: Writer, indices: &[ShareIndex]) -> Writer {
    let writer = writer.u16(u16::try_from(indices.len()).unwrap_or(u16::MAX));
    indices.iter().fold(writer, |writer, index| writer.u16(index.get()))
}

/// The longest payload of a slot, in bytes, for a key with n shares.
pub(super) fn longest<G: Group>(n: u16, majority: Majority, slot: Slot) -> usize {
    let list = INDEX_LEN + INDEX_LEN * usize::from(n);
    match slot.kind {
        SHARE => ID_LEN + G::ENCODED_LEN + G::Scalar::ENCODED_LEN,
        SIGNATURE => SIGNATURE_LEN + list,
        PREPARE => 4 + list,
        GAVE_UP => LONGEST_GAVE_UP,
        VIEW => LONGEST_VIEW,
        PROGRAM.. => 4 + longest_round(majority),
        _ => 0,
    }
}

impl<G: Curve> ProtocolMessage for EcdsaMessage<G> {
    fn slot(&self) -> Slot {
        self.slot
    }

    fn channel(slot: Slot) -> Option<Channel> {
        match slot.kind {
            SHARE | SIGNATURE | PREPARE => Some(Channel::Broadcast),
            GAVE_UP | VIEW | PROGRAM.. => Some(Channel::Private),
            _ => None,
        }
    }

    fn encode(&self) -> Bytes {
        let writer = Writer::default();
        let written = match &self.body {
            Body::Share { id, element, share } => writer.raw(id).raw(&G::encode(element)).raw(share.encode().as_ref()),
            Body::Signature(signed) => write_indices(writer.raw(&signed.bytes), &signed.signers),
            Body::Prepare { attempt, count, holders } => write_indices(writer.u16(*attempt).u16(*count), holders),
            Body::GaveUp { attempt, gave_up } => gave_up.write(writer.u16(*attempt)),
            Body::View { attempt, view } => write_view(writer.u16(*attempt), view),
            Body::Program { attempt, round, payload } => writer.u16(*attempt).u16(*round).raw(payload),
        };
        written.finish().into()
    }

    fn decode(_from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Reader::new(payload);
        let body = match slot.kind {
            SHARE => {
                let id = fields.array()?;
                let element = G::decode(fields.take(G::ENCODED_LEN)?).map_err(|_| Malformed("R is an element"))?;
                let share = G::Scalar::decode(fields.take(G::Scalar::ENCODED_LEN)?)
                    .map_err(|_| Malformed("a share is a scalar"))?;
                fields.end(Body::Share { id, element, share })?
            }
            SIGNATURE => {
                let bytes = fields.array()?;
                let signers = indices(&mut fields)?;
                fields.end(Body::Signature(Signed { bytes, signers }))?
            }
            PREPARE => {
                let (attempt, count) = (fields.u16()?, fields.u16()?);
                let holders = indices(&mut fields)?;
                fields.end(Body::Prepare { attempt, count, holders })?
            }
            GAVE_UP => {
                let (attempt, gave_up) = (fields.u16()?, GaveUp::read(&mut fields)?);
                fields.end(Body::GaveUp { attempt, gave_up })?
            }
            VIEW => {
                let (attempt, view) = (fields.u16()?, read_view(&mut fields)?);
                fields.end(Body::View { attempt, view })?
            }
            PROGRAM.. => {
                let (attempt, round) = (fields.u16()?, fields.u16()?);
                Body::Program { attempt, round, payload: Bytes::copy_from_slice(fields.rest()) }
            }
            _ => return Err(Malformed("no such message")),
        };
        Ok(Self { slot, body })
    }
}

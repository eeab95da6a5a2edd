//! The statements of parties, signed so that they can be passed on and kept as evidence.

use bytes::Bytes;
use theta_groups::Transcript;
use theta_names::NodeId;
use theta_rounds::{Malformed, PartyId};

use crate::CeremonyKeys;
use crate::codec::{Reader, Sink, Writer, read_party};
use crate::plan::{CeremonyId, CeremonyPlan};
use crate::schnorr::{self, Claim, Message, SIGNATURE_LEN, Signature};

/// The kind of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Shares of a dealer's secret; in recoveries of a mask, numbered by attempt.
    Dealing = 1,
    /// That a dealing is false, with proof; numbered by dealer.
    Complaint = 2,
    /// The same after the decision.
    LateComplaint = 3,
    /// What a convicted dealer dealt to its author; numbered by dealer.
    Release = 4,
    /// What to decide; numbered by view, as are the votes.
    Proposal = 5,
    /// The first vote.
    Prevote = 6,
    /// The second vote; a quorum of them is the decision.
    Precommit = 7,
    /// A verification key with proof.
    Key = 8,
    /// A share of the proof of possession.
    ProofOfPossession = 9,
    /// That the author has its share of the key that is named.
    Activation = 10,
    /// Which masks of an attempt are right.
    Checked = 11,
    /// Which masks to use in an attempt.
    Request = 12,
    /// A masked share for the one that lost its own.
    Answer = 13,
    /// That the lost share is found.
    Done = 14,
    /// The one request that a helper accepts in an attempt.
    Accepted = 15,
    /// What all who are listed in a request signed to accept it.
    Acceptances = 16,
    /// What to encrypt to in this ceremony; of the owner of a lost share numbered by attempt.
    EncryptionKey = 17,
}

impl Kind {
    /// Every kind, by rising number.
    pub const ALL: [Self; 17] = [
        Self::Dealing,
        Self::Complaint,
        Self::LateComplaint,
        Self::Release,
        Self::Proposal,
        Self::Prevote,
        Self::Precommit,
        Self::Key,
        Self::ProofOfPossession,
        Self::Activation,
        Self::Checked,
        Self::Request,
        Self::Answer,
        Self::Done,
        Self::Accepted,
        Self::Acceptances,
        Self::EncryptionKey,
    ];

    fn read(byte: u8) -> Result<Self, Malformed> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte).ok_or(Malformed("no such kind of statement"))
    }
}

/// The place of a statement: an honest party makes at most one statement in each slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatementSlot {
    /// The kind of the statement.
    pub kind: Kind,
    /// Which of those: see [`Kind`].
    pub number: u32,
}

impl StatementSlot {
    /// The slot of that kind and number.
    #[must_use]
    pub const fn new(kind: Kind, number: u32) -> Self {
        Self { kind, number }
    }

    /// The slot about a party.
    pub(crate) fn about(kind: Kind, party: PartyId) -> Self {
        Self::new(kind, u32::from(party.get()))
    }

    /// The party that a numbered-by-party slot is about.
    pub(crate) fn party(self) -> Option<PartyId> {
        NodeId::try_from(u16::try_from(self.number).ok()?).ok().map(PartyId::of_node)
    }

    /// Whether it is a vote or proposal, numbered by view.
    pub(crate) const fn is_of_view(self) -> bool {
        matches!(self.kind, Kind::Proposal | Kind::Prevote | Kind::Precommit)
    }

    pub(crate) fn write<S: Sink>(self, writer: Writer<S>) -> Writer<S> {
        writer.u8(self.kind as u8).u32(self.number)
    }

    pub(crate) fn encode(self) -> Vec<u8> {
        self.write(Writer::default()).finish()
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { kind: Kind::read(reader.u8()?)?, number: reader.u32()? })
    }
}

/// 32 bytes that stand for something longer.
pub type Digest = [u8; 32];

/// The claim that a party signed a body in a slot of the ceremony; `None` if it is no party of it.
pub(crate) fn claim<'a>(
    plan: &'a CeremonyPlan,
    author: PartyId,
    slot: StatementSlot,
    body: &[u8],
    signature: &'a Signature,
) -> Option<Claim<'a>> {
    let message = signed_message(plan.id(), author, slot, body);
    Some(Claim { key: plan.member(author)?.verifying_key(), message, signature })
}

/// What is signed.
pub(crate) fn signed_message(ceremony: &CeremonyId, author: PartyId, slot: StatementSlot, body: &[u8]) -> Message {
    Transcript::new("theta/ceremony/statement/v1")
        .with("ceremony", ceremony.as_bytes())
        .with("author", &author.get().to_be_bytes())
        .with("slot", &slot.encode())
        .with("body", body)
}

/// A signed statement of a party in a ceremony.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    author: PartyId,
    slot: StatementSlot,
    body: Bytes,
    signature: Signature,
}

impl Statement {
    /// Signs a statement. The caller decides what an honest party may sign.
    #[must_use]
    pub fn sign(ceremony: &CeremonyId, keys: &CeremonyKeys, slot: StatementSlot, body: Vec<u8>) -> Self {
        let signature = keys.sign(&signed_message(ceremony, keys.party(), slot, &body));
        Self { author: keys.party(), slot, body: body.into(), signature }
    }

    /// A statement with a signature that was seen elsewhere. [`Statement::is_signed`] checks whether it is the
    /// author's.
    pub(crate) const fn of(author: PartyId, slot: StatementSlot, body: Bytes, signature: Signature) -> Self {
        Self { author, slot, body, signature }
    }

    /// The party that signed it.
    #[must_use]
    pub const fn author(&self) -> PartyId {
        self.author
    }

    /// The slot that it belongs to.
    #[must_use]
    pub const fn slot(&self) -> StatementSlot {
        self.slot
    }

    /// What it says.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// Its signature.
    #[must_use]
    pub const fn signature(&self) -> &[u8; SIGNATURE_LEN] {
        &self.signature
    }

    /// Whether its author is a party of the ceremony and signed it.
    #[must_use]
    pub fn is_signed(&self, plan: &CeremonyPlan) -> bool {
        self.claim(plan).is_some_and(|claim| schnorr::vartime_verify_all(&[claim]))
    }

    /// Whether all these are statements of parties of the ceremony that signed them.
    pub(crate) fn are_signed<'a>(all: impl IntoIterator<Item = &'a Self>, plan: &CeremonyPlan) -> bool {
        let claims: Option<Vec<_>> = all.into_iter().map(|statement| statement.claim(plan)).collect();
        claims.is_some_and(|claims| schnorr::vartime_verify_all(&claims))
    }

    /// The claim that its author signed it; `None` if that is no party of the ceremony.
    fn claim<'a>(&'a self, plan: &'a CeremonyPlan) -> Option<Claim<'a>> {
        claim(plan, self.author, self.slot, &self.body, &self.signature)
    }

    /// The digest that stands for it elsewhere.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Transcript::new("theta/ceremony/digest/v1")
            .with("author", &self.author.get().to_be_bytes())
            .with("slot", &self.slot.encode())
            .with("body", &self.body)
            .finish32()
    }

    /// Appends author, slot, body, signature.
    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        let writer = Writer::onto(out).node_id(self.author.node());
        self.slot.write(writer).bytes(&self.body).raw(&self.signature).finish();
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::read_as(reader, Bytes::copy_from_slice)
    }

    /// The same from a reader of `whole`, of which the body stays a part: of what is kept as a whole anyway.
    pub(crate) fn read_in(whole: &Bytes, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::read_as(reader, |body| whole.slice_ref(body))
    }

    fn read_as(reader: &mut Reader<'_>, body: impl Fn(&[u8]) -> Bytes) -> Result<Self, Malformed> {
        let (author, slot) = (read_party(reader)?, StatementSlot::read(reader)?);
        let body = body(reader.bytes()?);
        Ok(Self { author, slot, body, signature: reader.array::<SIGNATURE_LEN>()? })
    }
}

//! Quorums of signatures on one statement, for everybody to check.

use std::collections::BTreeMap;

use bytes::Bytes;
use theta_rounds::{Malformed, PartyId};

use crate::EncodedKey;
use crate::codec::{Reader, Writer, read_entries, write_entries};
use crate::plan::{CeremonyPlan, public_digest};
use crate::schnorr::Signature;
use crate::statement::{Kind, Statement, StatementSlot};

/// The same statement, signed by a quorum of the members.
///
/// Of two kinds: a decision (of [`Kind::Precommit`]) says which dealings count; an activation (of [`Kind::Activation`])
/// says that a quorum holds shares of the key whose digest it carries. In a recovery, the signatures of all helpers that a request
/// lists (of [`Kind::Accepted`]), however many these are, are written down in the same form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumCertificate {
    slot: StatementSlot,
    body: Bytes,
    signatures: BTreeMap<PartyId, Signature>,
}

impl QuorumCertificate {
    pub(crate) const fn new(slot: StatementSlot, body: Bytes, signatures: BTreeMap<PartyId, Signature>) -> Self {
        Self { slot, body, signatures }
    }

    /// What the statements are.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.slot.kind
    }

    /// Where the statements belong.
    pub(crate) const fn slot(&self) -> StatementSlot {
        self.slot
    }

    /// The signatures by signer.
    pub(crate) const fn signatures(&self) -> &BTreeMap<PartyId, Signature> {
        &self.signatures
    }

    /// The statements that it stands for.
    pub(crate) fn statements(&self) -> impl Iterator<Item = Statement> {
        self.signatures.iter().map(|(party, signature)| Statement::of(*party, self.slot, self.body.clone(), *signature))
    }

    /// What they all say.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// Who signed.
    pub fn signers(&self) -> impl Iterator<Item = PartyId> {
        self.signatures.keys().copied()
    }

    /// Whether a quorum of the plan's members signed.
    #[must_use]
    pub fn is_valid(&self, plan: &CeremonyPlan) -> bool {
        let statements: Vec<Statement> = self.statements().collect();
        statements.len() >= plan.quorum()
            && statements.iter().all(|statement| plan.index_of(statement.author()).is_some())
            && Statement::are_signed(&statements, plan)
    }

    /// Whether it makes this key the one of the plan's ceremony.
    #[must_use]
    pub fn activates(&self, plan: &CeremonyPlan, public: &EncodedKey) -> bool {
        self.kind() == Kind::Activation && self.body[..] == activation_body(plan, public) && self.is_valid(plan)
    }

    /// StatementSlot, body, and party and signature of each signer.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let writer = self.slot.write(Writer::default()).bytes(&self.body);
        write_entries(writer, &self.signatures).finish()
    }

    /// Reads what [`QuorumCertificate::encode`] wrote. It may still be false.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let (slot, body) = (StatementSlot::read(&mut reader)?, Bytes::copy_from_slice(reader.bytes()?));
        let signatures = read_entries(reader, "signers are listed by rising party")?.into_iter().collect();
        Ok(Self { slot, body, signatures })
    }
}

/// What the members sign of a key, to make it active: the sharing's number, and a digest of all that is public about it.
pub(crate) fn activation_body(plan: &CeremonyPlan, public: &EncodedKey) -> Vec<u8> {
    Writer::default().short_epoch(plan.epoch()).raw(&public_digest(plan.suite(), public)).finish()
}

//! Approvals: one approver's signature to one operation on one statement with one key, for a limited time.
//!
//! Every node counts approvals itself. An approval does not name a client: any client that has it may use it until it expires,
//! for exactly what it approves. It covers neither parameters nor slot of a request.

use theta_names::Operation;
use theta_names::codec::{DecodeError, Reader, Writer};

use crate::armor::{ArmorError, armor, dearmor_all};
use crate::{
    Ask, Digest, FalseSignature, MOST_NAME, Name, NameError, Signature, SigningKey, UnixTime, Validity, VerifyingKey,
};

/// The longest that an approval may be valid: 31 days, in milliseconds.
pub const MOST_APPROVAL_LIFETIME: u64 = 31 * 86_400_000;

/// How many approvals a request may carry. Further ones are ignored.
pub const MOST_APPROVALS: usize = 64;

const DOMAIN: &str = "theta/approval/v1";
const ARMOR: &str = "THETA APPROVAL";

/// The terms that an approver signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalTerms {
    /// The group.
    pub group: Name,
    /// The key, if the operation has one.
    pub key: Option<Name>,
    /// The operation.
    pub operation: Operation,
    /// The digest of the statement: of the message, the ciphertext's header, the coin's name or the encoded change of a key.
    pub statement: Digest,
    /// When the approval is valid; for at most [`MOST_APPROVAL_LIFETIME`].
    pub validity: Validity,
}

/// An approver's signed consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    terms: ApprovalTerms,
    approver: VerifyingKey,
    signature: Signature,
}

/// The text is not a sequence of approvals.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not approvals: {0}")]
pub enum ApprovalTextError {
    /// The text is not armored bytes.
    Armor(#[from] ArmorError),
    /// The bytes are not an approval.
    Decode(#[from] DecodeError),
    /// There are more approvals than a request may carry.
    #[error("not approvals: there are {0}, and a request may carry {MOST_APPROVALS}")]
    TooMany(usize),
}

impl ApprovalTerms {
    /// The terms that approve what is asked.
    ///
    /// # Errors
    /// [`NameError`] if the group's or the key's name is not valid.
    pub fn of(ask: &Ask<'_>, validity: Validity) -> Result<Self, NameError> {
        Ok(Self {
            group: ask.group.parse()?,
            key: ask.key.map(str::parse).transpose()?,
            operation: ask.operation,
            statement: Digest::of(ask.statement),
            validity,
        })
    }

    fn encode(&self, approver: &VerifyingKey) -> Vec<u8> {
        Writer::of(DOMAIN)
            .text(self.group.as_str())
            .option(self.key.as_ref(), |writer, key| writer.text(key.as_str()))
            .u8(self.operation.code())
            .raw(&self.statement.0)
            .u64(self.validity.from.0)
            .u64(self.validity.until.0)
            .raw(approver.as_bytes())
            .finish()
    }
}

impl Approval {
    /// Signs the terms with the approver's key.
    #[must_use]
    pub fn sign(terms: ApprovalTerms, key: &SigningKey) -> Self {
        let approver = key.verifying_key();
        let signature = key.sign(&terms.encode(&approver));
        Self { terms, approver, signature }
    }

    /// The terms.
    #[must_use]
    pub const fn terms(&self) -> &ApprovalTerms {
        &self.terms
    }

    /// The approver that it names; [`Approval::check_signature`] tells whether that approver signed it.
    #[must_use]
    pub const fn approver(&self) -> &VerifyingKey {
        &self.approver
    }

    /// Checks the approver's signature.
    ///
    /// # Errors
    /// [`FalseSignature`].
    pub fn check_signature(&self) -> Result<(), FalseSignature> {
        self.approver.verify(&self.terms.encode(&self.approver), &self.signature)
    }

    /// The bytes that travel: the terms as they were signed, then the signature.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.terms.encode(&self.approver);
        bytes.extend_from_slice(&self.signature.0);
        bytes
    }

    /// The inverse of [`Approval::encode`]. The signature is not checked.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::of(bytes, DOMAIN)?;
        let terms = ApprovalTerms {
            group: name(&mut reader)?,
            key: reader.option(name)?,
            operation: reader.operation()?,
            statement: Digest(reader.array()?),
            validity: Validity { from: UnixTime(reader.u64()?), until: UnixTime(reader.u64()?) },
        };
        let approver = VerifyingKey::from_bytes(reader.array()?).ok_or(DecodeError::Field("the approver's key"))?;
        let signature = Signature(reader.array()?);
        reader.end(Self { terms, approver, signature })
    }

    /// The text form, for files. A file may hold several.
    #[must_use]
    pub fn to_text(&self) -> String {
        armor(ARMOR, &self.encode())
    }

    /// All approvals of a text that holds nothing else.
    ///
    /// # Errors
    /// [`ApprovalTextError`].
    pub fn all_from_text(text: &str) -> Result<Vec<Self>, ApprovalTextError> {
        let blocks = dearmor_all(ARMOR, text)?;
        if blocks.len() > MOST_APPROVALS {
            return Err(ApprovalTextError::TooMany(blocks.len()));
        }
        Ok(blocks.iter().map(|bytes| Self::decode(bytes)).collect::<Result<_, _>>()?)
    }
}

fn name(reader: &mut Reader<'_>) -> Result<Name, DecodeError> {
    reader.parsed("a name", MOST_NAME)
}

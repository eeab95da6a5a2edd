//! Consents of people: one approver's signature to one operation on one message with one key, for some time.
//!
//! Every share holder counts for itself and trusts no other's count. An approval says nothing about who asks: whoever has
//! it may use it until it expires, for precisely what it approves.

mod count;

pub use count::{ApprovalFault, Consents, MOST_APPROVALS};
pub(crate) use count::{Approver, count};

use crate::encoding::{ArmorError, DecodeError, Decoder, Encoder, armor, dearmor_all};
use crate::request::Ask;
use crate::{Digest, Name, NameError, Operation, Signature, SigningKey, Validity, VerifyingKey};

/// The longest that an approval may be valid: 31 days, in milliseconds.
pub const MOST_APPROVAL_LIFETIME: u64 = 31 * 86_400_000;

const DOMAIN: &str = "theta/approval/v1";
const ARMOR: &str = "THETA APPROVAL";

/// What an approver consents to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalTerms {
    /// In which group.
    pub group: Name,
    /// With which key, if any.
    pub key: Option<Name>,
    /// Which operation.
    pub operation: Operation,
    /// The digest of the statement: of the message, the ciphertext's header, the coin's name.
    pub statement: Digest,
    /// When; at most [`MOST_APPROVAL_LIFETIME`].
    pub validity: Validity,
}

/// An approver's signed consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    terms: ApprovalTerms,
    approver: VerifyingKey,
    signature: Signature,
}

/// A text that does not hold approvals alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not approvals: {0}")]
pub enum ApprovalTextError {
    /// Not even bytes.
    Armor(#[from] ArmorError),
    /// Other bytes.
    Decode(#[from] DecodeError),
    /// More than a request may carry.
    #[error("not approvals: there are {0}, and a request may carry {MOST_APPROVALS}")]
    TooMany(usize),
}

impl ApprovalTerms {
    /// The terms that approve what is asked.
    ///
    /// # Errors
    /// [`NameError`] if the group's or the key's name is none.
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
        Encoder::new(DOMAIN)
            .text(self.group.as_str())
            .optional(self.key.as_ref(), |encoder, key| encoder.text(key.as_str()))
            .u8(self.operation.code())
            .raw(&self.statement.0)
            .validity(self.validity)
            .raw(approver.as_bytes())
            .finish()
    }
}

impl Approval {
    /// Consents.
    #[must_use]
    pub fn sign(terms: ApprovalTerms, key: &SigningKey) -> Self {
        let approver = key.verifying_key();
        let signature = key.sign(&terms.encode(&approver));
        Self { terms, approver, signature }
    }

    /// What is consented to.
    #[must_use]
    pub const fn terms(&self) -> &ApprovalTerms {
        &self.terms
    }

    /// Whose consent it claims to be.
    #[must_use]
    pub const fn approver(&self) -> &VerifyingKey {
        &self.approver
    }

    /// The bytes that travel: the terms as they were signed, then the signature.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.terms.encode(&self.approver);
        bytes.extend_from_slice(&self.signature.0);
        bytes
    }

    /// The inverse of [`Approval::encode`]. The signature is not looked at.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes, DOMAIN)?;
        let terms = ApprovalTerms {
            group: decoder.name()?,
            key: decoder.optional(Decoder::name)?,
            operation: decoder.operation()?,
            statement: Digest(decoder.array()?),
            validity: decoder.validity()?,
        };
        let approver = VerifyingKey::from_bytes(decoder.array()?).ok_or(DecodeError::Field("the approver's key"))?;
        let signature = Signature(decoder.array()?);
        decoder.finish(Self { terms, approver, signature })
    }

    /// The text form, for files. Texts may follow each other in one file.
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

//! Requests that a client signs. Anybody may relay one; each node checks it itself.
//!
//! Replay: anybody who saw a signed request can send it again until it expires, at most [`MOST_REQUEST_LIFETIME`] after it
//! begins, and gains nothing. A decryption, signature or coin is an instance named by its content, so a repeated request meets
//! the instance of the first. The statement of a ceremony has a nonce: a node holds one ceremony for each nonce, and remembers
//! it for longer than an approval is valid. The statement of a change of state names the generation that it makes: a node
//! makes no generation twice, and none after a later one.

use theta_names::codec::{DecodeError, Reader, Writer};
use theta_names::{Label, Operation};

use crate::armor::{ArmorError, armor, dearmor};
use crate::time::Invalid;
use crate::{Ask, Digest, FalseSignature, MOST_NAME, Name, Signature, SigningKey, UnixTime, Validity, VerifyingKey};

/// The longest that a signed request may be valid: an hour, in milliseconds.
pub const MOST_REQUEST_LIFETIME: u64 = 3_600_000;
/// The same for what the group decides, and decides once, whoever sends it how often: six days, so that nodes that are down
/// can be asked by the others.
pub const MOST_DECISION_LIFETIME: u64 = 6 * 86_400_000;

/// Whether sending a request for it again has no effect.
const fn is_decided_once(operation: Operation) -> bool {
    use Operation::{
        KeysCreate, KeysDestroy, KeysDisable, KeysEnable, KeysRecover, KeysRefresh, KeysReshare, KeysRotate,
    };
    matches!(
        operation,
        KeysCreate | KeysRefresh | KeysReshare | KeysRecover | KeysRotate | KeysEnable | KeysDisable | KeysDestroy
    )
}

const DOMAIN: &str = "theta/request/v1";
const ID_DOMAIN: &str = "theta/request-id/v1";
const ARMOR: &str = "THETA REQUEST";

/// The terms that a client signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTerms {
    /// The group.
    pub group: Name,
    /// The key, if the operation has one.
    pub key: Option<Name>,
    /// The operation.
    pub operation: Operation,
    /// The label of the ciphertext, empty if there is none.
    pub label: Label<Vec<u8>>,
    /// The digest of the statement.
    pub statement: Digest,
    /// The digest of the parameters.
    pub parameters: Digest,
    /// The slot, where a signing rule counts slots.
    pub slot: Option<u64>,
    /// When the request is valid; for at most [`MOST_REQUEST_LIFETIME`], or [`MOST_DECISION_LIFETIME`] where it asks the group for a
    /// decision. Clocks differ: let it begin a minute ago.
    pub validity: Validity,
    /// Random bytes, which tell apart two equal requests that are both meant.
    pub nonce: [u8; 16],
}

/// A request and its client's signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRequest {
    terms: RequestTerms,
    signer: VerifyingKey,
    signature: Signature,
}

/// Why a signed request does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignedRequestError {
    /// It was signed for something else.
    #[error("it was signed for another {0}")]
    Differs(&'static str),
    /// It is not valid now, or for too long.
    #[error("{0}{advice}", advice = clocks(.0))]
    Invalid(#[from] Invalid),
    /// Its signer did not sign it.
    #[error("its signature is false")]
    FalseSignature,
}

/// What to look at when a request is of another time: it was signed a moment ago.
const fn clocks(invalid: &Invalid) -> &'static str {
    match invalid {
        Invalid::NotYet(_) | Invalid::Expired(_) => ": compare the clock of whoever signed it with the node's",
        Invalid::Lifetime { .. } => "",
    }
}

/// The text is not a signed request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a signed request: {0}")]
pub enum SignedRequestTextError {
    /// The text is not armored bytes.
    Armor(#[from] ArmorError),
    /// The bytes are not a signed request.
    Decode(#[from] DecodeError),
}

impl RequestTerms {
    /// The terms of an ask.
    ///
    /// # Errors
    /// [`crate::NameError`] if the group's or the key's name is not valid.
    pub fn of(ask: &Ask<'_>, validity: Validity, nonce: [u8; 16]) -> Result<Self, crate::NameError> {
        Ok(Self {
            group: ask.group.parse()?,
            key: ask.key.map(str::parse).transpose()?,
            operation: ask.operation,
            label: ask.label.copied(),
            statement: Digest::of(ask.statement),
            parameters: Digest::of(ask.parameters),
            slot: ask.slot,
            validity,
            nonce,
        })
    }

    fn encode(&self, signer: &VerifyingKey) -> Vec<u8> {
        Writer::of(DOMAIN)
            .text(self.group.as_str())
            .option(self.key.as_ref(), |writer, key| writer.text(key.as_str()))
            .u8(self.operation.code())
            .label(self.label.view())
            .raw(&self.statement.0)
            .raw(&self.parameters.0)
            .option(self.slot, Writer::u64)
            .u64(self.validity.from.0)
            .u64(self.validity.until.0)
            .raw(&self.nonce)
            .raw(signer.as_bytes())
            .finish()
    }
}

impl SignedRequest {
    /// Signs the terms with the client's key.
    #[must_use]
    pub fn sign(terms: RequestTerms, key: &SigningKey) -> Self {
        let signer = key.verifying_key();
        let signature = key.sign(&terms.encode(&signer));
        Self { terms, signer, signature }
    }

    /// The terms.
    #[must_use]
    pub const fn terms(&self) -> &RequestTerms {
        &self.terms
    }

    /// The signer that it names; [`SignedRequest::verify`] tells whether that signer signed it.
    #[must_use]
    pub const fn signer(&self) -> &VerifyingKey {
        &self.signer
    }

    /// The request's id: a hash of its terms and its signer, the same for every copy.
    #[must_use]
    pub fn id(&self) -> Digest {
        Digest::in_domain(ID_DOMAIN, &self.terms.encode(&self.signer))
    }

    /// Checks that the request is for exactly `ask`, is valid now, and is signed by its signer.
    ///
    /// # Errors
    /// [`SignedRequestError`].
    pub fn verify(&self, ask: &Ask<'_>, now: UnixTime) -> Result<(), SignedRequestError> {
        let terms = &self.terms;
        let same = [
            ("group", terms.group.as_str() == ask.group),
            ("key", terms.key.as_ref().map(Name::as_str) == ask.key),
            ("operation", terms.operation == ask.operation),
            ("label", terms.label.view() == ask.label),
            ("statement", terms.statement == Digest::of(ask.statement)),
            ("choice of parameters", terms.parameters == Digest::of(ask.parameters)),
            ("slot", terms.slot == ask.slot),
        ];
        if let Some((what, _)) = same.into_iter().find(|(_, same)| !same) {
            return Err(SignedRequestError::Differs(what));
        }
        let most = if is_decided_once(terms.operation) { MOST_DECISION_LIFETIME } else { MOST_REQUEST_LIFETIME };
        terms.validity.check_bounded(now, most)?;
        self.check_signature().map_err(|_| SignedRequestError::FalseSignature)
    }

    /// Checks the signer's signature alone, for those who read later what was asked once.
    ///
    /// # Errors
    /// [`FalseSignature`].
    pub fn check_signature(&self) -> Result<(), FalseSignature> {
        self.signer.verify(&self.terms.encode(&self.signer), &self.signature)
    }

    /// The bytes that travel: the terms as they were signed, then the signature.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.terms.encode(&self.signer);
        bytes.extend_from_slice(&self.signature.0);
        bytes
    }

    /// The inverse of [`SignedRequest::encode`]. The signature is not checked.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::of(bytes, DOMAIN)?;
        let terms = RequestTerms {
            group: name(&mut reader)?,
            key: reader.option(name)?,
            operation: reader.operation()?,
            label: reader.label()?.copied(),
            statement: Digest(reader.array()?),
            parameters: Digest(reader.array()?),
            slot: reader.option(Reader::u64)?,
            validity: Validity { from: UnixTime(reader.u64()?), until: UnixTime(reader.u64()?) },
            nonce: reader.array()?,
        };
        let signer = VerifyingKey::from_bytes(reader.array()?).ok_or(DecodeError::Field("the signer's key"))?;
        let signature = Signature(reader.array()?);
        reader.end(Self { terms, signer, signature })
    }

    /// The text form, for files.
    #[must_use]
    pub fn to_text(&self) -> String {
        armor(ARMOR, &self.encode())
    }

    /// The inverse of [`SignedRequest::to_text`].
    ///
    /// # Errors
    /// [`SignedRequestTextError`].
    pub fn from_text(text: &str) -> Result<Self, SignedRequestTextError> {
        Ok(Self::decode(&dearmor(ARMOR, text)?)?)
    }
}

fn name(reader: &mut Reader<'_>) -> Result<Name, DecodeError> {
    reader.parsed("a name", MOST_NAME)
}

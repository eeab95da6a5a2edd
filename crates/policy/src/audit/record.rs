//! What is recorded of one decision.

use serde::{Deserialize, Serialize};

use crate::encoding::{DecodeError, Decoder, Encoder};
use crate::{Decision, Digest, Name, Operation, Request, Unidentified, UnixTime};

const DOMAIN: &str = "theta/audit/v1";
/// Of a field that is text, in bytes.
const MOST_TEXT: usize = 1_024;
const MOST_APPROVERS: usize = 64;

/// One decision. Texts longer than 1,024 bytes are cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditRecord {
    /// When.
    pub time: UnixTime,
    /// Which node decided.
    pub node: u16,
    /// Who asked; absent if nobody was recognised.
    pub client: Option<String>,
    /// How the client was recognised.
    pub recognised_by: Option<String>,
    /// With which key.
    pub key: Option<String>,
    /// For what, by its name in policy files.
    pub operation: String,
    /// The digest of the statement.
    pub statement: Digest,
    /// For which slot.
    pub slot: Option<u64>,
    /// Whether it was allowed.
    pub allowed: bool,
    /// The rule that decided.
    pub rule: Option<String>,
    /// Why, as a name that never changes.
    pub reason: String,
    /// Why, for people.
    pub detail: String,
    /// Whose consents counted.
    pub approvers: Vec<String>,
    /// The digest of the policy that was in force.
    pub policy: Digest,
}

impl AuditRecord {
    /// The record of a decision.
    #[must_use]
    pub fn of(node: u16, time: UnixTime, request: &Request<'_>, decision: &Decision, policy: Digest) -> Self {
        let ask = request.ask();
        Self {
            time,
            node,
            client: Some(cut(request.client().as_str())),
            recognised_by: Some(request.recognised_by().to_owned()),
            key: ask.key.map(cut),
            operation: ask.operation.name().to_owned(),
            statement: request.statement(),
            slot: ask.slot,
            allowed: decision.allowed,
            rule: decision.rule.as_ref().map(Name::to_string),
            reason: decision.reason.code().to_owned(),
            detail: cut(&decision.reason.to_string()),
            approvers: decision.approvers.iter().take(MOST_APPROVERS).map(Name::to_string).collect(),
            policy,
        }
    }

    /// The record of a request from nobody that the policy knows.
    #[must_use]
    pub fn of_stranger(
        node: u16,
        time: UnixTime,
        operation: Operation,
        key: Option<&str>,
        error: &Unidentified,
        policy: Digest,
    ) -> Self {
        Self {
            time,
            node,
            client: None,
            recognised_by: None,
            key: key.map(cut),
            operation: operation.name().to_owned(),
            statement: Digest([0; 32]),
            slot: None,
            allowed: false,
            rule: None,
            reason: "unidentified".to_owned(),
            detail: cut(&error.to_string()),
            approvers: Vec::new(),
            policy,
        }
    }

    /// The canonical encoding, which the chain's hashes cover.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let text = |encoder: Encoder, text: &String| encoder.text(text);
        let encoder = Encoder::new(DOMAIN)
            .u64(self.time.0)
            .raw(&self.node.to_be_bytes())
            .optional(self.client.as_ref(), text)
            .optional(self.recognised_by.as_ref(), text)
            .optional(self.key.as_ref(), text)
            .text(&self.operation)
            .raw(&self.statement.0)
            .optional(self.slot, Encoder::u64)
            .u8(u8::from(self.allowed))
            .optional(self.rule.as_ref(), text)
            .text(&self.reason)
            .text(&self.detail)
            .u64(u64::try_from(self.approvers.len()).unwrap_or(u64::MAX));
        self.approvers.iter().fold(encoder, text).raw(&self.policy.0).finish()
    }

    /// The inverse of [`AuditRecord::encode`].
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let text = |decoder: &mut Decoder<'_>| decoder.text(MOST_TEXT).map(str::to_owned);
        let mut decoder = Decoder::new(bytes, DOMAIN)?;
        let record = Self {
            time: UnixTime(decoder.u64()?),
            node: decoder.array().map(u16::from_be_bytes)?,
            client: decoder.optional(text)?,
            recognised_by: decoder.optional(text)?,
            key: decoder.optional(text)?,
            operation: text(&mut decoder)?,
            statement: Digest(decoder.array()?),
            slot: decoder.optional(Decoder::u64)?,
            allowed: decoder.flag()?,
            rule: decoder.optional(text)?,
            reason: text(&mut decoder)?,
            detail: text(&mut decoder)?,
            approvers: (0..count(&mut decoder)?).map(|_| text(&mut decoder)).collect::<Result<_, _>>()?,
            policy: Digest(decoder.array()?),
        };
        decoder.finish(record)
    }
}

fn count(decoder: &mut Decoder<'_>) -> Result<usize, DecodeError> {
    let count = usize::try_from(decoder.u64()?).ok().filter(|count| *count <= MOST_APPROVERS);
    count.ok_or(DecodeError::Field("the number of approvers"))
}

fn cut(text: &str) -> String {
    let end = (0..=text.len().min(MOST_TEXT)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    text.get(..end).unwrap_or_default().to_owned()
}

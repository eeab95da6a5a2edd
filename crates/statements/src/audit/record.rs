//! The record of one decision.

use serde::{Deserialize, Serialize};

use theta_names::codec::{DecodeError, Reader, Writer};

use crate::{Digest, UnixTime};

const DOMAIN: &str = "theta/audit/v1";
/// The longest text in a record, in bytes.
const MOST_TEXT: usize = 1_024;
/// The most approvers in a record.
pub const MOST_APPROVERS: usize = 64;

/// The record of one decision. Its maker cuts texts to 1,024 bytes with [`AuditRecord::cut`]; longer ones do not decode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditRecord {
    /// When the decision was made.
    pub time: UnixTime,
    /// The number of the node that decided.
    pub node: u16,
    /// The client's name; absent if no client was recognised.
    pub client: Option<String>,
    /// How the client was recognised.
    pub recognised_by: Option<String>,
    /// The key's name, if the operation has one.
    pub key: Option<String>,
    /// The operation, by its name in policy files.
    pub operation: String,
    /// The digest of the statement.
    pub statement: Digest,
    /// The slot, if the request had one.
    pub slot: Option<u64>,
    /// Whether it was allowed.
    pub allowed: bool,
    /// The rule that decided.
    pub rule: Option<String>,
    /// The reason, as a name that never changes.
    pub reason: String,
    /// The reason, for people.
    pub detail: String,
    /// The approvers whose approvals counted.
    pub approvers: Vec<String>,
    /// The digest of the policy that was in force.
    pub policy: Digest,
}

impl AuditRecord {
    /// At most the first 1,024 bytes of a text, cut between characters.
    #[must_use]
    pub fn cut(text: &str) -> String {
        let end = text.floor_char_boundary(MOST_TEXT);
        text.get(..end).unwrap_or_default().to_owned()
    }

    /// The canonical encoding, which the chain's hashes cover.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let text = |writer: Writer, text: &String| writer.text(text);
        let writer = Writer::of(DOMAIN)
            .u64(self.time.0)
            .u16(self.node)
            .option(self.client.as_ref(), text)
            .option(self.recognised_by.as_ref(), text)
            .option(self.key.as_ref(), text)
            .text(&self.operation)
            .raw(&self.statement.0)
            .option(self.slot, Writer::u64)
            .flag(self.allowed)
            .option(self.rule.as_ref(), text)
            .text(&self.reason)
            .text(&self.detail)
            .u64(u64::try_from(self.approvers.len()).unwrap_or(u64::MAX));
        self.approvers.iter().fold(writer, text).raw(&self.policy.0).finish()
    }

    /// The inverse of [`AuditRecord::encode`].
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let text = |reader: &mut Reader<'_>| reader.text(MOST_TEXT).map(str::to_owned);
        let mut reader = Reader::of(bytes, DOMAIN)?;
        let record = Self {
            time: UnixTime(reader.u64()?),
            node: reader.u16()?,
            client: reader.option(text)?,
            recognised_by: reader.option(text)?,
            key: reader.option(text)?,
            operation: text(&mut reader)?,
            statement: Digest(reader.array()?),
            slot: reader.option(Reader::u64)?,
            allowed: reader.flag()?,
            rule: reader.option(text)?,
            reason: text(&mut reader)?,
            detail: text(&mut reader)?,
            approvers: (0..count(&mut reader)?).map(|_| text(&mut reader)).collect::<Result<_, _>>()?,
            policy: Digest(reader.array()?),
        };
        reader.end(record)
    }
}

fn count(reader: &mut Reader<'_>) -> Result<usize, DecodeError> {
    let count = usize::try_from(reader.u64()?).ok().filter(|count| *count <= MOST_APPROVERS);
    count.ok_or(DecodeError::Field("the number of approvers"))
}

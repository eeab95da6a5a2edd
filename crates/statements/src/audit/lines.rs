//! The log as JSON lines, for people, other programs and verification elsewhere.

use serde::{Deserialize, Serialize};

use super::{AuditRecord, LogEntry};
use crate::Digest;

/// The longest line, in bytes.
pub const MOST_LINE: usize = 256 << 10;

#[derive(Serialize)]
struct LineOut<'a> {
    sequence: u64,
    previous: Digest,
    hash: Digest,
    record: &'a AuditRecord,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineIn {
    sequence: u64,
    previous: Digest,
    hash: Digest,
    record: AuditRecord,
}

/// The line is not a log entry.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The line is longer than [`MOST_LINE`].
    #[error("a line of {0} bytes is longer than any record's ({MOST_LINE})")]
    TooLong(usize),
    /// The line is not JSON, or has other fields.
    #[error("not a record: {0}")]
    Json(#[from] serde_json::Error),
}

/// The entry as one line of JSON, without the end of the line.
///
/// # Errors
/// [`LineError::Json`] if the entry cannot be written; every entry can.
pub fn to_line(entry: &LogEntry) -> Result<String, LineError> {
    let LogEntry { sequence, previous, hash, record } = entry;
    Ok(serde_json::to_string(&LineOut { sequence: *sequence, previous: *previous, hash: *hash, record })?)
}

/// The inverse of [`to_line`]. The hashes are not checked; [`super::verify`] does that.
///
/// # Errors
/// [`LineError`].
pub fn from_line(line: &str) -> Result<LogEntry, LineError> {
    if line.len() > MOST_LINE {
        return Err(LineError::TooLong(line.len()));
    }
    let LineIn { sequence, previous, hash, record } = serde_json::from_str(line)?;
    Ok(LogEntry { sequence, previous, hash, record })
}

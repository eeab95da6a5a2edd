//! The chain and its verification.

use core::{fmt, str::FromStr};

use theta_names::AUDIT_CHAIN;

use super::AuditRecord;
use crate::Digest;

const CHECKPOINT: &str = "theta-audit";

/// The end of a log: the number of its records and the hash of the last, zeros if there is none. A checkpoint that is kept
/// elsewhere, or signed, tells this log from any other. Text form: `theta-audit:COUNT:HASH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// How many records there are.
    pub count: u64,
    /// The hash of the last.
    pub head: Digest,
}

impl Checkpoint {
    /// The checkpoint of an empty log.
    pub const START: Self = Self { count: 0, head: Digest([0; 32]) };
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{CHECKPOINT}:{}:{}", self.count, self.head)
    }
}

/// The text is not a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a checkpoint; it is written as {CHECKPOINT}:COUNT:HASH with 64 hexadecimal digits")]
pub struct CheckpointError;

impl FromStr for Checkpoint {
    type Err = CheckpointError;

    fn from_str(text: &str) -> Result<Self, CheckpointError> {
        let (count, head) = text
            .strip_prefix(CHECKPOINT)
            .and_then(|rest| rest.strip_prefix(':'))
            .and_then(|rest| rest.split_once(':'))
            .ok_or(CheckpointError)?;
        let checkpoint = Self {
            count: count.parse().map_err(|_| CheckpointError)?,
            head: head.parse().map_err(|_| CheckpointError)?,
        };
        // A checkpoint has one text: no leading zeros, signs or upper case.
        if checkpoint.to_string() == text { Ok(checkpoint) } else { Err(CheckpointError) }
    }
}

/// A record at its place in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The record's number, from 0.
    pub sequence: u64,
    /// The hash of the record before; zeros before the first.
    pub previous: Digest,
    /// This record's hash.
    pub hash: Digest,
    /// The record.
    pub record: AuditRecord,
}

fn hash(sequence: u64, previous: Digest, record: &AuditRecord) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key(AUDIT_CHAIN);
    hasher.update(&sequence.to_be_bytes()).update(&previous.0).update(&record.encode());
    Digest(*hasher.finalize().as_bytes())
}

/// The first record that is wrong in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log is broken at record {sequence}: {fault}")]
pub struct BrokenLog {
    /// The record's number, from 0.
    pub sequence: u64,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong with a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The record is not what its hash says.
    #[error("it was altered")]
    Altered,
    /// The record before it is not the one that it followed.
    #[error("it followed another record than the one before it, so that one was replaced")]
    Unlinked,
    /// A later record stands here.
    #[error("it is missing: record {0} stands in its place")]
    Missing(u64),
    /// An earlier record stands here again.
    #[error("record {0} stands in its place, out of order or a second time")]
    OutOfOrder(u64),
    /// The log ends before this record.
    #[error("it and what follows was cut off: {0} records were there")]
    Truncated(u64),
    /// The log is consistent, but not the one of the kept checkpoint.
    #[error("the record's hash is not the one that was kept, so the log was rewritten")]
    Rewritten,
}

/// Checks records that should follow `from` in order. With `kept`, a checkpoint from elsewhere, they must reach and agree
/// with it; the log may have grown since.
///
/// # Errors
/// [`BrokenLog`], the first record that is wrong.
pub fn verify<'a>(
    entries: impl IntoIterator<Item = &'a LogEntry>,
    from: Checkpoint,
    kept: Option<Checkpoint>,
) -> Result<Checkpoint, BrokenLog> {
    let mut reached = from;
    meets(reached, kept)?;
    for entry in entries {
        reached = follow(reached, entry)?;
        meets(reached, kept)?;
    }
    match kept.filter(|kept| kept.count > reached.count) {
        Some(kept) => Err(BrokenLog { sequence: reached.count, fault: Fault::Truncated(kept.count) }),
        None => Ok(reached),
    }
}

/// The end of the log with one more record.
fn follow(reached: Checkpoint, entry: &LogEntry) -> Result<Checkpoint, BrokenLog> {
    let Checkpoint { count: expected, head } = reached;
    let broken = |fault| Err(BrokenLog { sequence: expected, fault });
    if entry.sequence > expected {
        return broken(Fault::Missing(entry.sequence));
    }
    if entry.sequence < expected {
        return broken(Fault::OutOfOrder(entry.sequence));
    }
    if hash(entry.sequence, entry.previous, &entry.record) != entry.hash {
        return broken(Fault::Altered);
    }
    if entry.previous != head {
        return broken(Fault::Unlinked);
    }
    Ok(Checkpoint { count: expected.saturating_add(1), head: entry.hash })
}

fn meets(reached: Checkpoint, kept: Option<Checkpoint>) -> Result<(), BrokenLog> {
    match kept.filter(|kept| kept.count == reached.count && kept.head != reached.head) {
        Some(_) => Err(BrokenLog { sequence: reached.count.saturating_sub(1), fault: Fault::Rewritten }),
        None => Ok(()),
    }
}

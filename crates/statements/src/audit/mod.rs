//! The audit log: a chain of hashes over what was decided.
//!
//! The hash of a record covers its number, the hash before it and its canonical encoding, so the last hash stands for the
//! whole log. A [`Checkpoint`] that is kept elsewhere, or signed, reveals any later change and a log that was cut. Records
//! have digests and names, but neither statements nor secrets.

mod chain;
mod lines;
mod record;

pub use chain::{BrokenLog, Checkpoint, CheckpointError, Fault, LogEntry, verify};
pub use lines::{LineError, MOST_LINE, from_line, to_line};
pub use record::{AuditRecord, MOST_APPROVERS};

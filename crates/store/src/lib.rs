//! A node's durable memory: an embedded, transactional, sealed store in one file.
//!
//! - [`Store`]: one process opens it, with a [`SealingKey`]. Every change is durable before it is answered; changes of
//!   many threads share a commit. [`Store::write`] makes several changes in one transaction.
//! - [`key`]: keys with versions, states and epochs; shares, sealed one by one.
//! - [`Store::burn`]: what must never happen twice. [`Store::decide`]: at most one message for a slot.
//! - [`Ceremony`]: the journal, from which a killed node resumes. [`AuditRecord`]: the log that only grows.
//! - [`Store::ledger_entry`]: what the group has decided, and what this node has said about what comes next.
//! - [`Store::identity`]: who the node is in ceremonies.
//! - [`Incarnation`], [`Witness`], [`Store::seen_of_peers`], [`Contradiction`]: how peers notice that an old copy of the file was put in its place.
//! - [`Store::backup`], [`Store::restore`], [`check_backup`].
//! - [`disk::SimulatedDisk`]: a disk that loses power, for tests and the simulator.
//!
//! No secret is in the file in clear, and no record can be taken for another. Records are checked when they are read:
//! one that this build did not write is refused, never misread. Callers pass times in; the store has no clock.

mod audit;
mod backup;
mod burnt;
mod codec;
mod database;
pub mod disk;
mod error;
mod identity;
mod incarnation;
mod journal;
pub mod key;
mod ledger;
mod name;
mod peers;
mod seal;
mod slots;

pub use audit::{AuditChain, AuditRecord, BrokenChain};
pub use backup::{BackedUp, BackupReport, Fits, RestoreFloors, check_backup};
pub use burnt::{BurnError, BurnId, Fresh};
pub use database::{Options, Store, Transaction};
pub use error::StoreError;
pub use incarnation::{Incarnation, Lineage, Opening, Rollback, Seen, StoreId, Witness};
pub use journal::{
    Ceremony, CeremonyId, JournalError, MOST_BYTES as JOURNAL_BYTES, MOST_INPUT as JOURNAL_INPUT_BYTES,
    MOST_INPUTS as JOURNAL_INPUTS, MOST_TEXT as JOURNAL_TEXT_BYTES,
};
pub use key::{EpochRecord, Frozen, KeyError, KeyRecord, KeyStates, Quarantined, VersionRecord};
pub use peers::Contradiction;
pub use seal::{Argon2Cost, SealingKey, SealingKeyError};
pub use slots::SlotRule;
pub use theta_names::SlotDecision;

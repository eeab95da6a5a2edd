//! Custody: a node's live keys, its ceremonies, and the slots of its signing rules.
//!
//! - [`KeyTable`]: the keys in use, replaced entry by entry while others read.
//! - [`Custodian`]: runs ceremonies and keeps keys, witnesses and journal in the store.
//! - [`Certifier`]: slot certificates, at most one message for each slot over all nodes.
//! - [`Burner`]: records used nonces before they sign.
//! - [`Quarantines`]: records which holders of a key compute no more together.
//!
//! All of it is pure and synchronous: no threads, no sockets, no clock; the store is the disk.

mod burner;
mod ceremony;
mod certify;
mod codec;
mod custodian;
mod error;
mod keys;
mod request;
mod roster;
mod seating;
mod slots;
mod standing;

pub use burner::{Burner, Burnt};
pub use ceremony::{EvidenceError, ProvenLie, check_evidence};
pub use certify::{
    Certifier, CertifierEffect, CertifierLimits, Equivocation, Promise, PromiseOffence, Races, SlotRefusal, Subject,
    Ticket, claim_of, encode_promises, promises_of,
};
pub use custodian::{Custodian, announcement, message_subject};
pub use error::{CeremonyError, ChangeError, CustodyError, MembersError, NotInLedger};
pub use keys::{
    DealtKey, KeyEntry, KeyTable, KeyTableError, Quarantines, ResolveError, check_new_key, import_dealt, read_keys,
};
pub use request::{
    CeremonyOffence, CeremonyReport, CeremonyState, ChangeReport, CustodyEffect, CustodyInput, EvidenceReport,
    GroupRequest, LedgerOffence, MembersState, To,
};
pub use roster::Roster;
pub use seating::{Members, Standing};
pub use slots::StoreSlots;
pub use standing::StoreStanding;
pub use theta_ledger::founding::Card;
pub use theta_policy::{SlotClaim, SlotQuorum, SlotRace, SlotStanding};

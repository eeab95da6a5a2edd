//! Ceremonies of any suite, as a custodian runs them.

mod evidence;
mod journal;
mod planned;
mod runner;
mod subject;

pub use evidence::{EvidenceError, ProvenLie, check_evidence};
pub(crate) use journal::{Entry, Page, Pages, fit};
pub(crate) use planned::{Planned, Plans};
pub(crate) use runner::{Ending, begin};
pub(crate) use subject::{Subject, public_of};

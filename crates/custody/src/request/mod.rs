//! The requests to a custodian, its inputs and effects, and its reports.

mod effect;
mod evidence;
mod kept;
mod report;

pub use effect::{CeremonyOffence, CustodyEffect, CustodyInput, GroupRequest, LedgerOffence, To};
pub use evidence::EvidenceReport;
pub(crate) use evidence::FORMAT as SUBJECT_FORMAT;
pub use report::{CeremonyReport, CeremonyState, ChangeReport, MembersState};

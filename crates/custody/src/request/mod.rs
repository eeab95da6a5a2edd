//! The requests to a custodian, its inputs and effects, and its reports.

mod effect;
mod evidence;
mod report;

pub use effect::{CeremonyOffence, CustodyEffect, CustodyInput, GroupRequest, LedgerOffence, To};
pub use evidence::EvidenceReport;
pub use report::{CeremonyReport, CeremonyState, ChangeReport, MembersState};

//! The requests to a custodian, its inputs and effects, and its reports.

mod effect;
mod report;

pub use effect::{CeremonyOffence, CustodyEffect, CustodyInput, GroupRequest, To};
pub use report::{CeremonyReport, CeremonyState, ChangeReport, EvidenceReport, MembersState};

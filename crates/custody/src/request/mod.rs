//! The requests to a custodian, its inputs and effects, and its reports.

mod effect;
mod report;

pub use effect::{CeremonyOffence, CustodyEffect, CustodyInput, To};
pub use report::{CeremonyReport, CeremonyState, EvidenceReport, MembersState};

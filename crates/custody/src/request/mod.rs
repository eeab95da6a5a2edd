//! The requests to a custodian, its inputs and effects, and its reports.

mod change;
mod effect;
mod report;

pub use change::{CeremonyRequest, KeyChange, StateChange};
pub use effect::{CustodyEffect, CustodyInput, To};
pub use report::{CeremonyReport, CeremonyState, EvidenceReport};

//! What is asked of a custodian, and what it tells.

mod change;
mod effect;
mod report;

pub use change::{CeremonyRequest, KeyChange, StateChange};
pub use effect::{CustodyEffect, CustodyInput, To};
pub use report::{CeremonyReport, CeremonyState, EvidenceReport};

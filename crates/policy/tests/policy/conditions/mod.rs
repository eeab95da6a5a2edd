//! The conditions of rules.

mod agents;
mod approvals;
mod rates;

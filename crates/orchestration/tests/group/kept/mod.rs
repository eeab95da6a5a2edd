//! Nodes whose keys are kept by custodians, which make and renew them.

mod burning;
pub(crate) mod cluster;
mod epochs;
mod filling;
mod majority;
pub(crate) mod members;
mod queue;
mod quorum;
mod set_ups;
pub(crate) mod threads;
mod waiting;

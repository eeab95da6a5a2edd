//! Instances: those that run, those that ended, and the messages and requests on their way to them.

mod backlog;
mod command;
mod ending;
mod envelope;
mod instance;
mod orchestrator;
mod results;
mod router;
mod shard;
mod shared;

pub use orchestrator::{ComputeError, Orchestrator, StartError};
pub use shared::Load;

//! Instances: those that run, those that ended, and the messages and requests on their way to them. Without threads.

mod admission;
mod backlog;
mod command;
mod ending;
mod envelope;
mod instance;
mod moving;
mod results;
mod shard;
mod shared;

pub(crate) use admission::Identification;
pub(crate) use backlog::Early;
pub(crate) use command::Command;
pub(crate) use ending::Ending;
pub(crate) use envelope::Content;
pub use envelope::EnvelopeError;
pub(crate) use shard::Shard;
pub use shared::Load;
pub(crate) use shared::{Computing, Failure, ShardLoad, Shared, Ticks};

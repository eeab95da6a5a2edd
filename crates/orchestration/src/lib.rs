//! Many protocol instances at once.
//!
//! [`Orchestrator`] takes requests and messages from peers, brings them together in instances of protocols, and keeps the
//! results for a while. Its rooms:
//!
//! - [`Keys`]: where the keys of this node are.
//! - `instances`: shards that each own a part of the instances without locks; the backlog of messages that came before
//!   their request; the results that leave by age and by size. No threads.
//! - `node`: the CPU threads of [`Orchestrator`], one for each shard, and the task that routes from the network; [`Engine`],
//!   the same without threads, driven by hand.
//! - [`Stage`] and the metrics: what happened to a request, when, and how long it took.
//!
//! Cryptography never runs on the threads of the network, and nothing here grows without a bound: requests that wait,
//! instances that run, messages that came early, results that are kept. All limits are in [`OrchestratorConfig`].

mod config;
mod culprits;
mod entropy;
mod instances;
mod metrics;
mod node;
mod quota;
mod request;

pub use config::{ConfigError, OrchestratorConfig};
pub use culprits::CulpritRecord;
pub use instances::Load;
pub use metrics::Stage;
pub use node::{ChangeKeyError, ComputeError, Engine, HoldError, Keys, NoCustodian, Orchestrator, Pending, StartError};
pub use request::{
    Asker, Culprit, Finished, InstanceError, InstanceId, InstanceSnapshot, InstanceState, KeyRequest, Request, Seed,
    SubmitError,
};
pub use theta_custody::{KeyEntry, KeyTable, ResolveError, SlotClaim, SlotRefusal};

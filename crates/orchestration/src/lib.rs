//! Many protocol instances at once.
//!
//! [`Orchestrator`] takes granted requests and messages from peers, brings them together in instances of protocols, and
//! keeps the results for a while. It accepts nothing that has not passed the gate:
//!
//! ```compile_fail,E0308
//! use theta_authority::Request;
//! use theta_orchestration::{Certified, NotServed, Orchestrator};
//! async fn forgets_to_ask(node: &Orchestrator, request: Request) -> Result<Certified, NotServed> {
//!     node.certify(request).await
//! }
//! ```
//!
//! ```compile_fail,E0308
//! use theta_authority::{Granted, Request};
//! use theta_orchestration::{InstanceId, Orchestrator, SubmitError};
//! async fn forgets_the_slots(node: &Orchestrator, granted: Granted<Request>) -> Result<InstanceId, SubmitError> {
//!     node.submit(granted).await
//! }
//! ```
//!
//! ```compile_fail,E0308
//! use theta_custody::CeremonyReport;
//! use theta_orchestration::{HoldError, Orchestrator};
//! use theta_statements::CeremonyRequest;
//! async fn forgets_to_ask(node: &Orchestrator, request: CeremonyRequest) -> Result<CeremonyReport, HoldError> {
//!     node.hold(request, Vec::new()).await
//! }
//! ```
//!
//! ```compile_fail,E0308
//! use theta_orchestration::{InstanceId, InstanceSnapshot, Orchestrator};
//! async fn forgets_to_ask(node: &Orchestrator, id: InstanceId) -> Option<InstanceSnapshot> {
//!     node.status(id).await
//! }
//! ```
//!
//! What has passed the gate is accepted:
//!
//! ```
//! use theta_authority::{Granted, Request};
//! use theta_custody::CeremonyReport;
//! use theta_orchestration::{HoldError, InstanceId, InstanceSnapshot, Orchestrator};
//! use theta_statements::CeremonyRequest;
//! async fn asked(node: &Orchestrator, granted: Granted<Request>) -> Result<InstanceId, Box<dyn core::error::Error>> {
//!     Ok(node.submit(node.certify(granted).await?).await?)
//! }
//! async fn result(node: &Orchestrator, granted: Granted<InstanceId>) -> Option<InstanceSnapshot> {
//!     node.status(granted).await
//! }
//! async fn hold(node: &Orchestrator, granted: Granted<CeremonyRequest>) -> Result<CeremonyReport, HoldError> {
//!     node.hold(granted, Vec::new()).await
//! }
//! ```
//!
//! Its parts:
//!
//! - [`Keys`]: the source of this node's keys.
//! - `instances`: shards that each own a part of the instances without locks; the backlog of messages that came before
//!   their request; the results, bounded by age and size. No threads.
//! - `node`: the CPU threads of [`Orchestrator`], one for each shard, and the task that routes from the network; [`Engine`],
//!   the same without threads, driven by hand.
//! - [`Stage`] and the metrics: what happened to a request, when, and how long it took.
//!
//! Cryptography never runs on the threads of the network, and nothing here grows without a bound: requests that wait,
//! instances that run, messages that came early, results that are kept. All limits are in [`OrchestratorConfig`].

mod asked;
mod burning;
mod certified;
mod config;
mod culprits;
mod entropy;
mod filling;
mod hedge;
mod instances;
mod metrics;
mod node;
mod quota;
mod request;

pub use certified::{Certified, NotServed};
pub use config::{ConfigError, OrchestratorConfig};
pub use culprits::CulpritRecord;
pub use instances::{EnvelopeError, Load};
pub use metrics::Stage;
pub use node::{
    ChangeKeyError, ChangeMembersError, ComputeError, Engine, Forwarded, HoldError, Keys, NoCustodian, Orchestrator,
    Pending, StartError,
};
pub use request::{
    Culprit, Finished, InstanceError, InstanceSnapshot, InstanceState, NodeOffence, Quarantine, Stock, SubmitError,
};
pub use theta_authority::{Asker, InstanceId};
pub use theta_custody::{KeyEntry, KeyTable, ResolveError, SlotClaim, SlotRefusal};

//! The gate of a node: it decides who may ask for what, and records the decision before anything is done.
//!
//! A front end decodes each message once into a [`Request`] (or a change of a key, or a [`Look`]), and brings it here
//! with the caller's credentials ([`Presented`]). It gets a [`Granted`] of it, or a [`Refusal`] to express in its own
//! terms. The crates below take nothing but [`Granted`], which no other crate makes: a front end that forgets to ask
//! does not compile.
//!
//! - [`Authority`]: the gate of a node in service, with policy file, store, audit log, and each client's use of the
//!   node.
//! - [`Gate`]: the decision alone, without files, clocks or threads.
//!
//! This crate knows no network and no network protocol.

mod agents;
mod asks;
mod authority;
mod gate;
mod granted;
mod instance;
mod presented;
mod reason;
mod refusal;
mod request;

pub use agents::{Agents, Hearing, Question};
pub use asks::{Asked, Asks, BackUp, BringWarrant, ListCeremonies, Look, PruneAudit, WatchCeremony};
pub use authority::{
    AuditKeeping, AuditUnavailable, Authority, AuthorityError, Place, PolicyLoadError, PruneError, Pruned, QuotaError,
    load_policy, watch,
};
pub use gate::{Gate, Judged};
pub use granted::{Asker, Granted, Terms};
pub use instance::InstanceId;
pub use presented::Presented;
pub use reason::reason_of;
pub use refusal::{Denial, EnclosureError, Refusal};
pub use request::{KeyRequest, ParsedStatement, Request, Seed};

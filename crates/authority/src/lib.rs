//! The gate of a node: who may ask it for what, decided and on record before anything is done.
//!
//! A front end decodes what comes to it into a [`Request`] (or a change of a key, or a [`Look`]), once, and brings it here with
//! what it has of the caller ([`Presented`]). It gets a [`Granted`] of it, or a [`Refusal`] to put into its own words. The
//! floors below take nothing but [`Granted`], which nobody else makes: a front end that forgets to ask does not compile.
//!
//! - [`Authority`]: the gate of a node in service: policy file, store, audit log, what each client holds.
//! - [`Gate`]: the decision alone, without files, clocks or threads.
//!
//! No network and no protocol of one is known here.

mod asks;
mod authority;
mod gate;
mod granted;
mod instance;
mod presented;
mod refusal;
mod request;

pub use asks::{Asked, Asks, BackUp, Look, PruneAudit};
pub use authority::{
    AuditKeeping, AuditUnavailable, Authority, AuthorityError, Place, PolicyLoadError, PruneError, Pruned, QuotaError,
    load_policy, now, watch,
};
pub use gate::{Gate, Judged};
pub use granted::{Asker, Granted, Terms};
pub use instance::InstanceId;
pub use presented::Presented;
pub use refusal::{Denial, EnclosureError, Refusal};
pub use request::{KeyRequest, ParsedStatement, Request, Seed};

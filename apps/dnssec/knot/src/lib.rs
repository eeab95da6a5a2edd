//! Knot DNS on this machine, for the demonstration of a zone that several operators sign, and for tests.
//!
//! - [`places`]: where its programs are, and those of others that use the PKCS#11 module.
//! - [`config`]: what it is told.
//! - [`server`]: one name server, which ends with this process.
//!
//! It knows Knot and nothing of ours but the name of the PKCS#11 module's variable for its configuration.

pub mod config;
mod error;
pub mod places;
pub mod server;

pub use error::KnotError;

//! The commands of `theta`.
//!
//! They are a library for two programs outside the product: `theta-demo`, which has a Byzantine node, and `theta-bench`,
//! which measures. What is public here is what these two, and `theta-cluster` below them, need.

mod access;
pub mod ask;
mod audit;
mod cipher;
pub mod cli;
pub mod connect;
pub mod culprits;
mod doctor;
mod drand;
mod elsewhere;
pub mod files;
mod founding;
pub mod group;
pub mod keys;
mod ledger;
mod members;
pub mod node;
mod pkcs11;
mod policy;
pub mod random;
mod signature;
mod suites;
mod terminal;
mod vault;

use terminal::text;
pub use terminal::{exit, interrupt, output, progress, units};

//! The product: what `theta` does, and its command line.
//!
//! It is a library so that two programs can stand on it that are not the product: `theta-demo`, which has a node that lies, and
//! `theta-bench`, the laboratory. What is public here is what these two need; nothing else imports it.

mod access;
pub mod ask;
mod audit;
mod cipher;
pub mod cli;
pub mod connect;
mod doctor;
mod drand;
pub mod files;
pub mod group;
pub mod keys;
pub mod node;
mod policy;
pub mod random;
mod signature;
mod suites;
mod terminal;
mod vault;

use terminal::text;
pub use terminal::{exit, interrupt, output, progress, units};

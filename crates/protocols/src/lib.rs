//! Threshold protocols: what the parties say to each other so that the schemes' results come about.
//!
//! [`start`] is the one door: a key, a share of it and a statement in, a [`Machine`] out. Behind it are [`one_round`],
//! which serves every scheme whose parties send one share each, and [`frost`], which signs in two rounds.

pub mod frost;
pub mod one_round;
mod start;

pub use start::{AnyMachine, Outcome, start, start_with};
pub use theta_rounds::Machine;
pub use theta_schemes::RequestError;

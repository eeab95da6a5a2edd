//! Threshold protocols: what the parties say to each other so that the schemes' results come about.
//!
//! [`start`] is the one door: a key, a share of it and a statement in, a [`Machine`] out. Behind it are [`one_round`],
//! which serves every scheme whose parties send one share each, in lock-step, and [`frost`], which signs in two rounds and goes on with every
//! message. What a machine [asks](frost::Ask) of the [stock](frost::Stock) of its key's epoch is for whoever runs it to bring.

pub mod frost;
mod misbehaviour;
pub mod one_round;
mod start;

pub use misbehaviour::Misbehaviour;
pub use start::{AnyMachine, Outcome, start, start_with};
pub use theta_rounds::Machine;
pub use theta_schemes::RequestError;

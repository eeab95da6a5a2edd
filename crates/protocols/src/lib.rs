//! Threshold protocols: the messages by which parties compute the schemes' results.
//!
//! [`start`] is the entry: it takes a key, a share of it and a statement, and returns a [`Machine`]. The protocols are
//! [`one_round`], which serves every scheme whose parties send one share each, in lock-step, [`frost`], which signs
//! in two rounds and goes on with every message, and [`ecdsa`], which signs with what a program of `theta-mpc` has made in advance. The caller that runs a machine passes what it [asks](Ask) to the
//! [stock](Stock) of its key's epoch, or checks it together with what others ask, and brings the answers.

mod ask;
pub mod ecdsa;
pub mod frost;
mod misbehaviour;
pub mod one_round;
mod outcome;
mod parties;
mod served;
mod start;
mod stock;

pub use ask::{Ask, Supply, Used};
pub use misbehaviour::Misbehaviour;
pub use outcome::{AnyMachine, Outcome};
pub use served::Served;
pub use start::{Options, start, start_unproven, start_with};
pub use stock::Stock;
pub use theta_rounds::Machine;
pub use theta_schemes::RequestError;

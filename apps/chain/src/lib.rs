//! A small chain that nobody can front-run: an exchange on a real CometBFT network, whose orders are encrypted under a group's key until
//! their place is decided.
//!
//! - [`market`]: the state machine, which is a function of the blocks.
//! - [`abci`]: the socket to CometBFT.
//! - [`validator`]: the application beside one CometBFT node and one node of the group; and validators that misbehave.
//! - [`net`]: whole networks of real processes on this machine.
//! - [`story`]: the demonstration.
//!
//! `spec/chain.md` has the rules and the argument.

pub mod abci;
pub mod market;
pub mod net;
pub mod story;
pub mod validator;

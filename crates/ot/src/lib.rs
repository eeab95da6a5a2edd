//! Oblivious transfer between two parties, with active security, and products of their secrets on it.
//!
//! - [`base`]: some hundred transfers by public-key cryptography (Masny and Rindal 2019);
//! - [`extension`]: any number of transfers from 128 base OTs (SoftSpokenOT, Roy 2022), with the check that stops a receiver with
//!   inconsistent choices;
//! - [`correlated`]: correlated OTs modulo q;
//! - [`gilboa`]: products modulo q from transfers, secure against parties that follow the protocol;
//! - [`copee`]: products with one fixed factor, such as a MAC key, of MASCOT (Keller, Orsini, Scholl 2016);
//! - [`mascot`]: multiplication triples with MACs among any number of parties, all but one of which may cheat.
//!
//! Everything is a pure state machine of two parties: a step takes the state by value and a message, and gives the next state and
//! a message. Messages are bytes of a length that the parameters fix. After an error nothing is left of the state, so that a party
//! whose cheating was seen cannot try again. `spec/ot.md` has messages, checks, parameters and arguments.
//!
//! A block of 128 bits is a `u128`; its encoding is little-endian.

pub mod base;
mod choices;
pub mod copee;
pub mod correlated;
mod error;
pub mod extension;
mod forest;
pub mod gilboa;
mod hash;
pub mod mascot;
mod prg;
mod reduce;
mod session;
mod wide;
mod words;

pub use choices::Choices;
pub use error::{Error, Misbehaviour, Misuse};
pub use session::Session;

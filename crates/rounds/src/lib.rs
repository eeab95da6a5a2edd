//! The Threshold Round Interface: how a protocol is written here, and what runs it.
//!
//! A protocol is pure and total: no clock, no socket, no async. One with real rounds implements [`RoundProtocol`], and [`LockStep`] makes it
//! a [`Protocol`]; one that goes on with each message, as FROST with its coordinators, implements [`Protocol`] itself. [`Driver`] turns any of
//! them into a [`Machine`], which is all that those know who carry messages: it eats inputs and emits effects. The driver does once what every
//! protocol would otherwise repeat: it decodes, refuses unknown senders, enforces the channel, keeps early messages, ignores exact
//! duplicates, turns conflicting ones into equivocation evidence, bans, answers questions, and loops until the protocol waits.
//!
//! What was made in advance (nonces, later triples and presignatures) belongs to an epoch of a key and not to a machine: a machine
//! asks for it with [`Effect::Ask`] and receives it as [`Input::Supply`].
//!
//! `simulator` (feature `simulator`, on in tests) runs whole groups of machines under seeded delivery orders, loss and Byzantine parties.

mod driver;
mod evidence;
mod lock_step;
mod machine;
mod mailbox;
mod message;
mod party;
mod protocol;
#[cfg(any(test, feature = "simulator"))]
pub mod simulator;

pub use driver::Driver;
pub use evidence::{Blame, Evidence, Offence};
pub use lock_step::{LockStep, Round, RoundProtocol};
pub use machine::{Effect, Effects, Input, Machine};
pub use mailbox::{EARLY_BYTES, EARLY_MESSAGES, KEPT_BYTES};
pub use message::{Malformed, Outgoing, ProtocolMessage, Recipient, Slot};
pub use party::PartyId;
pub use protocol::{Abort, Action, Actions, Blames, Bug, Progress, Protocol, Replies};
pub use theta_names::Channel;

#[cfg(test)]
mod tests;

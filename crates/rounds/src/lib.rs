//! The Threshold Round Interface: how protocols are written here, and what runs them.
//!
//! A protocol is pure and total: it has no clock, no socket and nothing asynchronous. A protocol of real rounds
//! implements [`RoundProtocol`], and [`LockStep`] makes it a [`Protocol`]; a protocol that goes on with each message,
//! as FROST does with its coordinators, implements [`Protocol`] itself. [`Driver`] turns any of them into a
//! [`Machine`], which takes inputs and emits effects; code that carries messages sees nothing else. The driver does
//! once what every protocol would otherwise repeat: it decodes, refuses unknown senders, enforces the channel, keeps
//! early messages, ignores exact duplicates, turns conflicting messages into evidence of equivocation, bans, answers
//! questions, and loops until the protocol waits.
//!
//! Material made in advance (nonces, later triples and presignatures) belongs to an epoch of a key and not to a
//! machine. A machine asks for it with [`Effect::Ask`] and receives it as [`Input::Supply`].
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
pub use mailbox::{EARLY_BYTES, EARLY_MESSAGES, KEPT_BYTES, SLOT_BYTES, SMALL_BYTES};
pub use message::{Malformed, Outgoing, ProtocolMessage, Recipient, Slot};
pub use party::PartyId;
pub use protocol::{Abort, Action, Actions, Blames, Bug, Progress, Protocol, Replies};
pub use theta_names::Channel;

#[cfg(test)]
mod tests;

//! The Threshold Round Interface: how a protocol is written here, and what runs it.
//!
//! A protocol implements [`RoundProtocol`], pure and total: no clock, no socket, no async. [`Driver`] turns any of them
//! into a [`Machine`] that eats messages and emits effects, and does once what every protocol would otherwise repeat:
//! it decodes, refuses unknown senders, enforces the channel, keeps early messages, ignores exact duplicates, turns
//! conflicting ones into equivocation evidence, bans, and loops until the protocol waits.
//! `simulator` (feature `simulator`, on in tests) runs whole groups of machines under seeded delivery orders, loss and Byzantine parties.

mod driver;
mod evidence;
mod mailbox;
mod protocol;
#[cfg(any(test, feature = "simulator"))]
pub mod simulator;

pub use driver::{Driver, Effect, Input, Machine};
pub use evidence::{Blame, Evidence, Offence};
pub use mailbox::{EARLY_BYTES, EARLY_MESSAGES, KEPT_BYTES};
pub use protocol::{
    Abort, Bug, Channel, Epilogue, Malformed, Outgoing, PartyId, Progress, Recipient, Round, RoundMessage,
    RoundProtocol, Slot,
};

#[cfg(test)]
mod tests;

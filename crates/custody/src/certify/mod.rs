//! Slot certificates: at most one message for a slot over all nodes, whatever k is.
//!
//! Each node promises a slot to one message, durably and for ever. A message that has the promises of more than (n + t)
//! / 2 of the group's n nodes is *certified*: two such sets have more than t nodes in common, so they share an honest
//! node, which promises once. A share leaves a node only for a certified message. See `spec/policy.md`, "Slots", and
//! `docs/adr/0018-slot-certificates.md`.
//!
//! - [`Promise`]: the statement that a node signs, and the evidence if it signs two.
//! - `tally`: counts the promises for one slot: certified, void, or undecided.
//! - `entry`: one slot: its promises and the requests that wait for it.
//! - [`Races`]: which message is first in the total order of the nodes' hosts, where a rule asks for that before it promises.
//! - [`Certifier`]: all slots of a node, bounded; no clock, no thread, no socket.

mod certifier;
mod early;
mod entry;
mod interface;
mod message;
mod promise;
mod races;
mod refusal;
mod tally;

pub use certifier::Certifier;
pub use interface::{CertifierEffect, CertifierLimits, PromiseOffence, Ticket};
pub use promise::{Equivocation, Promise, Subject};
pub use races::{Races, claim_of};
pub use refusal::SlotRefusal;

use bytes::Bytes;

/// A message with these promises, for simulated liars and tests, which have no certifier.
#[must_use]
pub fn encode_promises(subject: &Subject, promises: Vec<Promise>) -> Bytes {
    message::Known { asks: false, subject: subject.clone(), promises }.encode().into()
}

/// The slot and the promises of a certifier's message, unverified; `None` if it is none.
#[must_use]
pub fn promises_of(bytes: &[u8]) -> Option<(Subject, Vec<Promise>)> {
    let known = message::Known::decode(bytes, usize::from(u16::MAX)).ok()?;
    Some((known.subject, known.promises))
}

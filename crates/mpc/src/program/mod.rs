//! Programs: multi-party protocols written as one reads the paper, and what runs them.
//!
//! A program is an async function of its [`Party`]. Whatever it sends is collected while it runs; when all of it waits,
//! what was collected leaves as one message to each peer, which ends the round. The program goes on when the messages of
//! that round are there. So a thousand multiplications that wait at the same time take as many messages as one.
//!
//! There is no thread, no clock and no I/O: [`Program`] is a [`RoundProtocol`](theta_rounds::RoundProtocol) that polls
//! its future when a round is complete. All parties run the same program, whose course may depend on public values only;
//! then all agree what a message of each round contains, and a message of another length is blamed on its sender.

#[cfg(test)]
mod among;
mod exchange;
mod join;
mod machine;
mod message;
mod party;
mod stop;
mod view;

#[cfg(test)]
pub(crate) use among::{among, among_with};
pub use exchange::{Exchange, Gather};
pub use join::{all, both};
pub use machine::Program;
pub use message::{LONGEST_MESSAGE, RoundMessage};
pub use party::Party;
pub use stop::{Misbehaviour, Stop};
pub(crate) use view::rehearse;
pub use view::{Heard, MOST_ROUNDS, Recording, View};

/// Bytes of a seed of secrets.
pub(crate) const SEED: usize = 32;

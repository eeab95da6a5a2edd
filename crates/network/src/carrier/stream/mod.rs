//! An ordered, reliable stream of messages over frames of which each may be lost, doubled or late.

mod incoming;
mod item;
mod outbox;
mod outgoing;
mod recovery;

pub use self::outbox::{Full, Outbox};
pub(super) use self::{
    incoming::{Fate, Incoming, Lie},
    item::{ACK_BYTES, Ack, Item, PIECE_HEADER_BYTES, put_ping, take},
    outgoing::{Filled, Outgoing},
    recovery::ACK_DELAY,
};

//! What carries the messages of the parties: real sockets, or a model of far ones.

mod envelope;
mod model;
mod party;
mod sockets;
mod timeline;

pub(super) use model::Model;
pub(super) use sockets::Sockets;

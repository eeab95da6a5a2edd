//! Nodes that gossip over real sockets.

mod delivery;
mod mending;
mod support;

//! Gossip: a transport for groups that are too large, or too loosely connected, for connections between all nodes. Each node has a few
//! neighbours, and all pass on what any of them says, by libp2p's gossipsub.
//!
//! # What goes over it
//! Frames of the carrier layer ([`theta_network::carrier`]), which seals what each pair of nodes says, puts it in order, and sends it again until it is
//! acknowledged. So gossip need neither be trusted nor be reliable, and whatever orchestration is promised of a transport holds here as well. All
//! frames that a node has at one time leave in one message with its signature: what is for all is passed on once, and what is for one reader
//! travels with it, sealed. `spec/carriers.md` has the format.
//!
//! # Who takes part
//! Connections are TLS 1.3 with the keys that the group has pinned, so that nobody else connects. A message is checked before it is passed
//! on: it has to be signed by a member, new, and within that member's share of what a node passes on in a second. A neighbour that passes on
//! false messages, or more than all members may say, is left for a while, and one that takes none is let go. Each node dials some of its
//! neighbours itself, drawn at random, and exchanges one every few minutes: those who dial it may all be of one party.
//!
//! # Bounds
//! Connections in the handshake, connections of a member, what is read of a neighbour in a second and kept for it, messages' lengths, and what
//! an author may say: [`GossipLimits`].

mod authors;
mod bundle;
mod config;
mod connection;
#[cfg(test)]
mod hostile;
mod members;
mod mesh;
mod neighbours;
mod rate;
mod tally;
mod task;
mod transport;

pub use self::{
    config::{Degree, GossipConfig, GossipError, GossipLimits},
    tally::GossipCounts,
    transport::Gossip,
};

//! The messages between clients and nodes and among nodes: the code generated from the `.proto` files beside it.
//!
//! The generated code is kept in `generated`, so that building this crate does not take a compiler of `.proto` files.
//! `cargo xtask proto` writes it, and a test compares it with the `.proto` files.
//!
//! Byte fields are [`bytes::Bytes`]: a decoded message borrows from the buffer in which it arrived.

mod bounded;
pub mod rpc;

pub use bounded::{Bounded, TooManyFields};

/// The client API: [`v1::threshold_protocol_server`], [`v1::threshold_scheme_server`], [`v1::threshold_keys_server`],
/// [`v1::governance_server`], [`v1::total_order_server`], their clients and messages.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, clippy::unwrap_used)]
pub mod v1 {
    include!("../generated/theta.v1.rs");
}

/// The messages between nodes.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod peer {
    include!("../generated/theta.peer.v1.rs");

    /// The version of the peer protocol of this build.
    pub const VERSION: u32 = 3;

    /// The `stream` of messages of instances.
    pub const INSTANCES: u32 = 0;
    /// The `stream` of messages between custodians.
    pub const CUSTODY: u32 = 1;
    /// The `stream` of promises for slots.
    pub const SLOTS: u32 = 2;
}

/// What hosts serve that carry the messages between nodes: [`host::message_host_server`], its client and messages.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, clippy::unwrap_used)]
pub mod host {
    include!("../generated/theta.host.v1.rs");

    /// The version of this build.
    pub const VERSION: u32 = 1;
}

/// What agents serve beside a node, which consent to requests by their content: [`agent::agent_server`], its client and messages.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, clippy::unwrap_used)]
pub mod agent {
    include!("../generated/theta.agent.v1.rs");
}

/// The compiled descriptors of all services, for the gRPC reflection service.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("../generated/descriptors.bin");

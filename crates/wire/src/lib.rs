//! What travels between clients and nodes, and from node to node: the generated code of the `.proto` files beside it.
//!
//! The generated code lies in `generated`, so that whoever builds this crate builds no compiler of `.proto` files first;
//! `cargo xtask proto` makes it anew, and a test compares it with what the files say.
//!
//! Byte fields are [`bytes::Bytes`]: decoding a message borrows from the buffer that it arrived in.

/// The client API: [`v1::threshold_protocol_server`], [`v1::threshold_scheme_server`], [`v1::threshold_keys_server`] and
/// [`v1::governance_server`], their clients and messages.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, clippy::unwrap_used)]
pub mod v1 {
    include!("../generated/theta.v1.rs");
}

/// What nodes say to each other.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod peer {
    include!("../generated/theta.peer.v1.rs");

    /// The version of the peer protocol that this build speaks.
    pub const VERSION: u32 = 3;

    /// The `stream` of instances' messages.
    pub const INSTANCES: u32 = 0;
    /// The `stream` of custodians' messages.
    pub const CUSTODY: u32 = 1;
    /// The `stream` of promises for slots.
    pub const SLOTS: u32 = 2;
}

/// The compiled descriptors of all services, for the gRPC reflection service.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("../generated/descriptors.bin");

//! Pinned TLS, the mesh over real sockets, and the group file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking, in their helpers too"
)]

mod archive;
mod faults;
mod group;
mod host_attacks;
mod hostile;
mod members;
mod mesh;
mod p2p;
mod renewal;
mod support;
mod tls;

//! Nodes that gossip over real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking, in their helpers too"
)]

mod delivery;
// The same members as in the tests of the mesh.
#[path = "../../../network/tests/network/support/members.rs"]
mod members;
mod mending;
mod support;

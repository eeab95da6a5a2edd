//! Tests a node from outside, in real groups over real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests fail by panicking, in their helpers too"
)]

mod agents;
mod api;
mod batch;
mod doors;
mod faults;
mod group;
mod members;
mod quorum;
mod quotas;
mod sound;
mod start;

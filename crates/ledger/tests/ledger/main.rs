//! Replicas among each other: honest, lying, crashing, cut off. And clients that follow them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod crash;
mod follow;
mod honest;
mod liars;
mod net;
mod runs;
mod states;

//! Programs on the black boxes, in groups of real machines over a simulated network.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod auction;
mod blackbox;
mod cheating;
mod dishonest;
mod ecdsa;
mod group;
mod held_back;
mod presignatures;
mod program;
mod stock;
mod views;

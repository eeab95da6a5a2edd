//! Repositories of signed objects: what is published, what is refused, and that the old state stays.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests are test code, too"
)]

mod checks;
mod neglect;
mod program;
mod publisher;
mod reading;
mod repository;
mod signatures;
mod state;

//! Whole groups of orchestrators: real keys, real cryptography, real threads. Only the wire is replaced, by channels
//! that tests can cut, delay and tamper with; `mesh` runs over the real one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking, in their helpers too"
)]

mod accounts;
mod bounds;
mod engine;
mod faults;
mod frost;
mod gated;
mod group;
mod kept;
mod lifecycle;
mod mesh;
mod suites;
mod wire;

//! The issuer with keys in memory, each signature of which takes the consent of a registry's agent, as at a node: what it publishes is checked by the
//! publisher, and validated from the anchor down.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests are test code, too"
)]

mod others;
mod runs;
mod world;

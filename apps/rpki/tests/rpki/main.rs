//! What a registry's node signs, and what not, for each kind of object. A signer in memory is in the place of the nodes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests are test code, too"
)]

mod agent;
mod certificates;
mod commands;
mod contents;
mod encodings;
mod issuer;
mod lists;
mod manifests;
mod operators;
mod state;
mod waits;

//! The gate from outside: its dependencies, and what a request keeps of its key.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking, in their helpers too"
)]

mod requests;
mod tree;

#[path = "../../../client/tests/client/tree.rs"]
mod crates_with;

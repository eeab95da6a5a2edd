//! The client against real groups of real nodes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests fail by panicking, in their helpers too"
)]

mod blocking;
mod ceremonies;
mod checkpoint;
mod connection;
mod fake;
#[path = "../../../service/tests/service/group/mod.rs"]
mod group;
mod ledger;
mod liar;
mod light;
mod members;
mod policy;
mod requests;
mod tree;

//! Tests of the real binary, used as people and scripts use it: real processes, real sockets, real files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests are test code, too"
)]

mod bad_input;
mod elsewhere;
mod faults;
mod group;
mod harness;
mod incoming;
mod keeping;
mod keys;
mod losses;
mod operations;
mod run;
mod words;

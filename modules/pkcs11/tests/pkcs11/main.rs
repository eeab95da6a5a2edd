//! The module as programs use it that know nothing of ours: with a group of real node processes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::needless_pass_by_value,
    reason = "the helpers of tests are test code, too"
)]

mod bind;
mod calls;
mod command;
mod generation;
mod group;
#[path = "../../../../bin/theta/tests/cli/harness.rs"]
#[allow(dead_code, reason = "the tests of the command line use the rest")]
mod harness;
mod host;
mod knot;
mod krill;
mod login;
mod nodes;
mod opensc;
mod pkcs11_provider;
mod pool;
mod python_pkcs11;
mod resolvers;
#[path = "../../../../bin/theta/tests/rpki/routinator.rs"]
#[allow(dead_code, reason = "the tests of agents use the rest")]
mod routinator;
#[path = "../../../../bin/theta/tests/cli/run.rs"]
mod run;
mod ssh;

//! The demonstration, as people run it: nodes, agents, a real Knot DNS, and the module that it loads. Without Knot the tests fail, and say what is
//! missing; `cargo xtask test` leaves them out where it cannot be had.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests are test code, too"
)]

mod absent;
mod knot;

use std::{path::PathBuf, process::Command};

/// The demonstration, with the module that cargo has built beside this program.
fn demo() -> Command {
    let module: PathBuf = std::env::current_exe().unwrap().with_file_name("libtheta_pkcs11.so");
    assert!(module.is_file(), "{} is missing: it is built with these tests", module.display());
    let mut demo = Command::new(env!("CARGO_BIN_EXE_theta-dnssec-demo"));
    demo.args(["demo", "--json", "--module"]).arg(module);
    demo
}

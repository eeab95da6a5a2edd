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
mod measure;

use std::{path::PathBuf, process::Command};

/// The demonstration.
fn demo() -> Command {
    program("demo")
}

/// A command of the program, with the module that cargo has built beside this one.
fn program(command: &str) -> Command {
    let mut program = for_people(command);
    program.arg("--json");
    program
}

/// The same with what people read.
fn for_people(command: &str) -> Command {
    let module: PathBuf = std::env::current_exe().unwrap().with_file_name("libtheta_pkcs11.so");
    assert!(module.is_file(), "{} is missing: it is built with these tests", module.display());
    let mut program = Command::new(env!("CARGO_BIN_EXE_theta-dnssec-demo"));
    program.args([command, "--module"]).arg(module);
    program
}

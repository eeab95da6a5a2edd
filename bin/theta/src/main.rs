//! `theta`: one binary for nodes, clients and operators. `theta --help` is its manual.

use std::process::ExitCode;

use theta::cli::Cli;

fn main() -> ExitCode {
    theta::exit::main("theta", Cli::run)
}

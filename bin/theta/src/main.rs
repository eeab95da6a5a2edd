//! `theta`: one binary for nodes, clients and their keepers. `theta --help` is its manual.

mod access;
mod ask;
mod audit;
mod bench;
mod cipher;
mod cli;
mod cluster;
mod connect;
#[cfg(feature = "demo")]
mod demo;
mod drand;
mod files;
mod group;
mod keys;
mod node;
mod policy;
mod random;
mod signature;
mod suites;
mod terminal;
mod vault;

use std::process::ExitCode;

use clap::Parser;
use terminal::{exit, output, progress, units};

fn main() -> ExitCode {
    match cli::Cli::try_parse() {
        Ok(cli) => exit::report(cli.run()),
        Err(error) => exit::report_usage(&error),
    }
}

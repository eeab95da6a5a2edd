//! `theta pkcs11`: what programs need that sign with tokens, and whether it works.

mod check;
mod config;
mod pool;
mod watch;

use std::path::{Path, PathBuf};

use clap::Subcommand;

use crate::{exit::Failure, output::Output};

/// Commands about the PKCS#11 module.
#[derive(Debug, Subcommand)]
pub(crate) enum Pkcs11Command {
    /// Print what programs need to sign with the group's keys: the module's configuration, and theirs
    Config(config::ConfigArgs),
    /// Play a program that signs with a token, and say what is wrong
    Check(check::CheckArgs),
    /// See how many keys there are for programs that make their own, and make more
    Pool(Box<pool::PoolArgs>),
    /// Run a command whenever enough nodes are back to sign: a program makes up then for what it could not sign
    Watch(Box<watch::WatchArgs>),
}

impl Pkcs11Command {
    pub(crate) fn run(&self, output: Output) -> Result<(), Failure> {
        match self {
            Self::Config(args) => config::print(args, output),
            Self::Check(args) => check::check(args, output),
            Self::Pool(args) => pool::pool(args, output),
            Self::Watch(args) => watch::watch(args, output),
        }
    }
}

/// The module's file.
const MODULE: &str = "libtheta_pkcs11.so";

/// Where the module is: as said, or beside this program, or where packages put libraries.
fn find_module(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(given) = given {
        let found = given.canonicalize().map_err(|error| Failure::reading(given, &error))?;
        return Ok(found);
    }
    let program = std::env::current_exe().unwrap_or_default();
    let folder = program.parent().unwrap_or_else(|| Path::new(""));
    let places = [folder.join(MODULE), folder.join("../lib").join(MODULE), folder.join("deps").join(MODULE)];
    let found = places.iter().find(|place| place.is_file()).and_then(|place| place.canonicalize().ok());
    found.ok_or_else(|| {
        Failure::Usage(format!(
            "{MODULE} is neither beside {} nor in ../lib: name it with --module (cargo build --release -p theta-pkcs11 makes it)",
            program.display()
        ))
    })
}

//! `theta group warrant`: what the operators of a small group sign when a machine is gone for ever.

mod new;
mod show;
mod sign;
mod view;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use theta_ledger::{LedgerState, Warrant};

pub(crate) use self::view::why;
use crate::{
    exit::Failure,
    founding::read,
    output::{self, Output},
};

/// See [`crate::cli`].
#[derive(Debug, Subcommand)]
pub(crate) enum WarrantCommand {
    /// Write a warrant that nobody has signed yet, from the cards of the new machines
    New(new::NewArgs),
    /// Sign a warrant as the operator of a member, unless it contradicts what the same key has signed
    Sign(sign::SignArgs),
    /// Say in words what a warrant allows, who has signed it, and whether it serves
    Show(show::ShowArgs),
}

impl WarrantCommand {
    /// Runs the command.
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::New(args) => new::new(&args, output),
            Self::Sign(args) => sign::sign(&args, output),
            Self::Show(args) => show::show(&args, output),
        }
    }
}

/// Reads copies of one warrant, each with the signatures of some operators, and gives it with all that are true, by this ledger. Says whose
/// are false.
pub(crate) fn read_warrant(files: &[PathBuf], state: &LedgerState) -> Result<Warrant, Failure> {
    let mut copies: Vec<Warrant> = Vec::new();
    for file in files {
        for warrant in read_all(file)? {
            if copies.first().is_some_and(|first| !first.is_same(&warrant)) {
                let file = file.display();
                return Err(Failure::Usage(format!(
                    "{file} is another warrant than the one before: name copies of one, which differ in their signatures alone"
                )));
            }
            copies.push(warrant);
        }
    }
    let none = || Failure::Usage("name a file with a warrant in it".to_owned());
    let (warrant, false_ones) = state.gathered(&copies).ok_or_else(none)?;
    if !false_ones.is_empty() {
        let nodes: Vec<u16> = false_ones.iter().map(|node| node.get()).collect();
        let nodes = crate::connect::nodes(&nodes);
        output::diagnostic(
            "warning",
            &format!("signatures in the names of {nodes} are not those of their operators, and are left out"),
        );
    }
    Ok(warrant)
}

fn read_all(file: &Path) -> Result<Vec<Warrant>, Failure> {
    let text = read(file)?;
    Warrant::all_from_text(&text).map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))
}

//! Commands for people: members who state, operators who override, and whoever wants to know what is authorised
//! (`docs/guides/rpki-members.md`). What is signed, and how files are read, is the library's: nothing is encoded here a second time.

mod about;
mod check;
mod failure;
mod files;
mod key;
mod known;
mod moment;
mod overriding;
mod signer;
mod statement;
mod tal;
mod tally;
mod terminal;

use clap::Subcommand;

pub(crate) use failure::Failure;

/// What a person asks for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Makes the keys with which members and operators sign
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Makes, signs and shows what a member states: ROAs and ASPAs, granted or withdrawn
    #[command(subcommand)]
    Statement(statement::StatementCommand),
    /// Makes, signs and shows what operators permit though agents refuse it, or state in a member's place
    #[command(subcommand)]
    Override(overriding::OverrideCommand),
    /// Says what is authorised now, and which files count for nothing
    Check(check::CheckArgs),
}

impl Command {
    /// Does it.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Key(command) => command.run(),
            Self::Statement(command) => command.run(),
            Self::Override(command) => command.run(),
            Self::Check(args) => check::check(args),
        }
    }
}

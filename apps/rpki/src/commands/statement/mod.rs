//! `theta-rpki statement`.

mod new;
mod report;
mod show;
mod sign;
mod text;

use clap::Subcommand;

use super::failure::Failure;
pub(super) use report::Matter;
pub(super) use text::{AspaText, RoaText, texts};

/// What is done with a member's statements.
#[derive(Debug, Subcommand)]
pub(crate) enum StatementCommand {
    /// Writes that a member grants a ROA or an ASPA
    Grant(new::GrantArgs),
    /// Writes that a member withdraws a ROA or an ASPA
    Withdraw(new::WithdrawArgs),
    /// Adds a signature
    Sign(sign::SignArgs),
    /// Says what a statement grants, who has signed it, and whether it counts now
    Show(show::ShowArgs),
}

impl StatementCommand {
    pub(super) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Grant(args) => new::grant(args),
            Self::Withdraw(args) => new::withdraw(args),
            Self::Sign(args) => sign::sign(args),
            Self::Show(args) => show::show(args),
        }
    }
}

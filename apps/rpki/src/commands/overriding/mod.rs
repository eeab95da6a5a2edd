//! `theta-rpki override`.

mod new;
mod output;
mod report;
mod show;
mod sign;
mod stated;
mod text;

use std::path::Path;

use clap::Subcommand;
use theta_rpki::{
    overrides::{OverrideError, Overriding},
    registry::Registry,
    signatures::{KeySet, Signed},
};

use super::failure::Failure;
pub(super) use text::Text;

/// What is done with operators' overrides.
#[derive(Debug, Subcommand)]
pub(crate) enum OverrideCommand {
    /// Writes that one object is to be signed though agents refuse it
    New(new::NewArgs),
    /// Writes that operators grant a ROA or an ASPA in a member's place
    Grant(stated::GrantArgs),
    /// Writes that operators withdraw a ROA or an ASPA in a member's place
    Withdraw(stated::WithdrawArgs),
    /// Adds a signature
    Sign(sign::SignArgs),
    /// Says what an override permits or states, who has signed it, and whether it counts now
    Show(show::ShowArgs),
}

impl OverrideCommand {
    pub(super) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::New(args) => new::new(args),
            Self::Grant(args) => stated::grant(args),
            Self::Withdraw(args) => stated::withdraw(args),
            Self::Sign(args) => sign::sign(args),
            Self::Show(args) => show::show(args),
        }
    }
}

/// An override's file, which the library reads and finds nothing wrong with but that too few may have signed.
struct Checked<'a> {
    what: Overriding,
    signatures: Vec<Signed>,
    operators: &'a KeySet,
}

/// Reads the text of a file.
fn check<'a>(text: &str, path: &Path, registry: &'a Registry) -> Result<Checked<'a>, Failure> {
    let wrong = |reason| Failure::Override { path: path.to_owned(), reason };
    let operators = registry.operators.as_ref().ok_or_else(|| wrong(OverrideError::NoOperators))?;
    let (what, signatures) = Overriding::parse(text).map_err(wrong)?;
    what.fits(registry).map_err(wrong)?;
    Ok(Checked { what, signatures, operators })
}

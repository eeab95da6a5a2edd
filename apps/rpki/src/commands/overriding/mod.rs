//! `theta-rpki override`.

mod new;
mod report;
mod show;
mod sign;
mod text;

use std::path::Path;

use clap::Subcommand;
use theta_rpki::{
    overrides::{Override, OverrideError},
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
    /// Adds a signature
    Sign(sign::SignArgs),
    /// Says what an override permits, who has signed it, and whether it does so now
    Show(show::ShowArgs),
}

impl OverrideCommand {
    pub(super) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::New(args) => new::new(args),
            Self::Sign(args) => sign::sign(args),
            Self::Show(args) => show::show(args),
        }
    }
}

/// An override's file, which the library reads and finds nothing wrong with but that too few may have signed.
struct Checked<'a> {
    what: Override,
    signatures: Vec<Signed>,
    operators: &'a KeySet,
}

/// Reads the text of a file.
fn check<'a>(text: &str, path: &Path, registry: &'a Registry) -> Result<Checked<'a>, Failure> {
    let wrong = |reason| Failure::Override { path: path.to_owned(), reason };
    match Override::read(text, registry) {
        Ok(_) | Err(OverrideError::Signatures { .. }) => {}
        Err(reason) => return Err(wrong(reason)),
    }
    let (what, signatures) = Text::parse(text).map_err(wrong)?;
    let operators = registry.operators.as_ref().ok_or_else(|| wrong(OverrideError::NoOperators))?;
    Ok(Checked { what, signatures, operators })
}

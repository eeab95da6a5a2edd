//! An operator's key, as it is kept in a file.

use std::path::Path;

use theta_ledger::OperatorKey;

use crate::{exit::Failure, files::Source};

/// Longer than the file of an operator's key is.
const MOST: usize = 1024;

/// Reads an operator's key.
pub(super) fn read(file: &Path) -> Result<OperatorKey, Failure> {
    let text = Source::open_private(file)?.read_secret(MOST)?;
    let wrong = |error: &dyn core::fmt::Display| Failure::Usage(format!("{}: {error}", file.display()));
    let text = std::str::from_utf8(text.expose()).map_err(|_| wrong(&"it is not an operator's key"))?;
    OperatorKey::from_text(text).map_err(|error| wrong(&error))
}

//! Key files.

mod error;
mod files;

use std::path::Path;

pub use error::KeyFilesError;
use theta_custody::KeyTable;

/// Reads `keys/*.pub` and `keys/*.share` of a node's directory. A node without a folder `keys` has no keys.
///
/// # Errors
/// [`KeyFilesError`]: a file that cannot be read, is readable by others, is malformed, or does not belong to the rest.
pub fn load_keys(directory: &Path) -> Result<KeyTable, KeyFilesError> {
    Ok(KeyTable::new(files::read(&directory.join("keys"))?)?)
}

//! What a client file and a client directory look like from outside.

use std::path::Path;

use crate::exit::Failure;

/// Whether this is a client file or a client directory, as far as can be seen without reading it.
pub(crate) fn is_client(dir: &Path) -> bool {
    dir.is_file() || dir.join("group.toml").is_file()
}

/// Refuses what is neither a client file nor a client directory.
pub(crate) fn check_client(dir: &Path) -> Result<(), Failure> {
    if is_client(dir) {
        return Ok(());
    }
    let dir = dir.display();
    Err(Failure::Usage(format!(
        "{dir} is not a client directory (it has no group.toml), nor a client file: name one with --client or THETA_CLIENT, or make a \
         group with theta group init"
    )))
}

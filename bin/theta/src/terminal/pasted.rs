//! Commands that a person is told to paste: they ask with the client of this one.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// The client that the command line names, where another is the usual one.
static NAMED: OnceLock<PathBuf> = OnceLock::new();

/// Notes that this client is not the usual one.
pub(crate) fn name_client(client: &Path) {
    NAMED.get_or_init(|| client.to_owned());
}

/// What a command to be pasted needs behind it to ask with the client of this one: nothing for the usual client.
pub(crate) fn client_option() -> String {
    NAMED.get().map(|client| format!(" --client {}", quoted(client))).unwrap_or_default()
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-+@".contains(character);
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// A node's text with hints that can be pasted here: to see why a policy refuses, the node is asked with the client of this command.
pub(crate) fn pasteable(text: &str) -> String {
    const HINT: &str = "theta policy explain --ask ";
    let Some(client) = NAMED.get() else { return text.to_owned() };
    text.replace(HINT, &format!("theta policy explain --client-dir {} --ask ", quoted(client)))
}

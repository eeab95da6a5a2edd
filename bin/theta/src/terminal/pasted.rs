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

/// Commands that ask with a client, where a hint names them.
const ASK: [&str; 14] = [
    "theta status",
    "theta keys list",
    "theta keys show",
    "theta keys create",
    "theta keys enable",
    "theta keys disable",
    "theta keys destroy",
    "theta keys rotate",
    "theta keys refresh",
    "theta keys reshare",
    "theta keys recover",
    "theta keys ceremonies",
    "theta keys cancel",
    "theta ledger show",
];

/// A text with hints that can be pasted here: the commands in it ask with the client of this command.
pub(crate) fn pasteable(text: &str) -> String {
    NAMED.get().map_or_else(|| text.to_owned(), |client| asking_as(client, text))
}

fn asking_as(client: &Path, text: &str) -> String {
    const EXPLAIN: &str = "theta policy explain --ask ";
    let client = quoted(client);
    let text = text.replace(EXPLAIN, &format!("theta policy explain --client-dir {client} --ask "));
    text.split_inclusive('\n')
        .map(|line| if line.contains(" --client ") { line.to_owned() } else { in_line(&client, line) })
        .collect()
}

/// The client stands right behind the command's name: where a hint ends is not to be seen.
fn in_line(client: &str, line: &str) -> String {
    ASK.iter().fold(line.to_owned(), |line, command| {
        let mut parts = line.split(command);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |done, rest| {
            // Not where a longer word begins so.
            let is_whole = !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '-');
            if is_whole { format!("{done}{command} --client {client}{rest}") } else { format!("{done}{command}{rest}") }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_hints_ask_with_the_client_of_this_one() {
        let told = |text| asking_as(Path::new("ann's.client"), text);
        assert_eq!(
            told("no answer; theta status shows who is up"),
            "no answer; theta status --client 'ann'\\''s.client' shows who is up"
        );
        let two = "a key; theta keys list shows others, theta keys enable a takes it back";
        assert_eq!(
            asking_as(Path::new("x"), two),
            "a key; theta keys list --client x shows others, theta keys enable --client x a takes it back"
        );
        // What names a client, has another name, or asks nobody stays.
        for same in
            ["theta keys enable a --client b", "theta keys listing", "theta status-page", "theta keys import a.pem"]
        {
            assert_eq!(asking_as(Path::new("x"), same), same);
        }
        let explained = asking_as(Path::new("x"), "see why with: theta policy explain --ask 01");
        assert_eq!(explained, "see why with: theta policy explain --client-dir x --ask 01");
    }
}

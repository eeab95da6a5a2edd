//! Answers on standard output, for people or as JSON; notes and questions on standard error.

use std::{
    fmt::Display,
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    path::Path,
};

use clap::Args;
use serde::Serialize;

use super::failure::Failure;

/// The form of an answer.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Form {
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

impl Form {
    /// Answers: with one line of JSON, or with these words.
    pub(crate) fn answer(self, value: &impl Serialize, words: &str) -> Result<(), Failure> {
        let json = self.json.then(|| serde_json::to_string(value));
        let json = json.transpose().map_err(|error| Failure::Output(error.into()))?;
        let mut out = io::stdout().lock();
        let written = match json {
            Some(line) => writeln!(out, "{line}"),
            None => out.write_all(words.as_bytes()),
        };
        written.and_then(|()| out.flush()).map_err(Failure::Output)
    }
}

/// Says something to people, whatever the form of the answer.
pub(crate) fn note(words: impl Display) {
    // If standard error is closed, the note is lost.
    let _ = writeln!(io::stderr(), "{words}");
}

/// Asks whether this is to be signed; a program has to say so before.
pub(crate) fn confirm(yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::Unasked);
    }
    note("Sign? Type yes:");
    let mut answer = String::new();
    let asked = io::stdin().lock().read_line(&mut answer);
    asked.map_err(|reason| Failure::Read { path: Path::new("standard input").to_owned(), reason })?;
    if answer.trim() == "yes" { Ok(()) } else { Err(Failure::Declined) }
}

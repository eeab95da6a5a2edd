//! What a command says of an override.

use std::{fmt, path::Path};

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use theta_rpki::{
    overrides::{Override, Overriding, words::FLAG},
    statements::ByOperators,
};

use super::{
    super::{moment::Moment, statement::Matter, tally::Tally},
    text::Text,
};

/// What an override permits, or operators state, in words.
pub(super) struct Words<'a>(pub(super) &'a Overriding);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(Overriding::Object(one)) => object(one, f),
            Self(what @ Overriding::Statement(one)) => statement(one, &what.signed_bytes(), f),
        }
    }
}

fn object(Override { digest, key, reason, until }: &Override, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "whatever agents say against it, this may be signed:")?;
    writeln!(f, "  the bytes with the SHA-256 {}", hex::encode(digest))?;
    // A file may have anything in the place of a name.
    writeln!(f, "  with the key {}", key.escape_debug())?;
    writeln!(f, "  because: {}", reason.escape_debug())?;
    writeln!(f, "  until {}", Moment(*until))
}

fn statement(one: &ByOperators, signed: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let ByOperators { statement, until, reason } = one;
    let act = if statement.is_grant() { "grant" } else { "withdraw" };
    let (member, number) = (statement.member.escape_debug(), statement.number);
    writeln!(f, "{FLAG}operators {act} in {member}'s place, whatever it states itself, by their statement {number}:")?;
    write!(f, "{}", Matter(statement))?;
    writeln!(f, "  until {}", Moment(*until))?;
    writeln!(f, "  because: {}", reason.escape_debug())?;
    writeln!(f, "  its SHA-256 in records is {}", hex::encode(Sha256::digest(signed)))
}

/// The answer of a command.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    file: String,
    #[serde(rename = "override")]
    what: Text,
    /// Who has signed.
    keys: Tally,
    /// Whether it permits that now, if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<bool>,
    /// Why it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Report {
    /// Of an override in this file.
    pub(super) fn new(file: &Path, what: &Overriding, keys: Tally) -> Self {
        Self { file: file.display().to_string(), what: Text::of(what), keys, counts: None, reason: None }
    }

    /// With why the override permits nothing now; `None`: it does.
    pub(super) fn with_standing(self, reason: Option<String>) -> Self {
        Self { counts: Some(reason.is_none()), reason, ..self }
    }

    /// For people: this, who has signed, and whether it counts.
    pub(super) fn words(&self, head: impl fmt::Display) -> String {
        let standing = match (self.counts, &self.reason) {
            (None, _) => String::new(),
            (Some(_), None) => "  it counts now\n".to_owned(),
            (Some(_), Some(reason)) => format!("  it does not count now: {reason}\n"),
        };
        format!("{head}{}{standing}", self.keys)
    }
}

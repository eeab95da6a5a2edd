//! What a command says of a statement.

use std::{fmt, path::Path};

use serde::Serialize;
use theta_rpki::{attestation::Attestation, statements::Statement};

use super::{
    super::{moment::Moment, tally::Tally},
    text::Text,
};

/// What a statement says, in words.
pub(super) struct Words<'a>(pub(super) &'a Statement);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(statement) = self;
        let act = if statement.is_grant() { "grants" } else { "withdraws" };
        // A file may have anything in the place of a handle.
        writeln!(f, "{} {act}, by its statement {}:", statement.member.escape_debug(), statement.number)?;
        write!(f, "{}", Matter(statement))?;
        statement.until.map_or(Ok(()), |until| writeln!(f, "  until {}", Moment(until)))
    }
}

/// What it is about, and from when on, in lines below a first one.
pub(in super::super) struct Matter<'a>(pub(in super::super) &'a Statement);

impl fmt::Display for Matter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(statement) = self;
        match &statement.attestation {
            Attestation::Roa { asn, prefixes } => {
                writeln!(f, "  that AS{asn} announces (a ROA)")?;
                prefixes.iter().try_for_each(|prefix| match prefix.to_string().split_once('-') {
                    Some((prefix, longest)) => writeln!(f, "    {prefix}, and its parts of up to {longest} bits"),
                    None => writeln!(f, "    {prefix}"),
                })?;
            }
            Attestation::Aspa { customer, .. } if !statement.is_grant() => {
                writeln!(f, "  the providers of AS{customer}, whichever they are (an ASPA)")?;
            }
            Attestation::Aspa { customer, providers } => {
                writeln!(f, "  that these are the providers of AS{customer}, in the place of all others (an ASPA)")?;
                providers.iter().try_for_each(|provider| match provider {
                    0 => writeln!(f, "    AS0: it has none"),
                    provider => writeln!(f, "    AS{provider}"),
                })?;
            }
        }
        writeln!(f, "  from  {}", Moment(statement.from))
    }
}

/// The answer of a command.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    file: String,
    statement: Text,
    /// Who has signed, if the registry's data say who may.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Tally>,
    /// Whether it counts now, if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<bool>,
    /// Why it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Report {
    /// Of a statement in this file.
    pub(super) fn new(file: &Path, statement: &Statement, keys: Option<Tally>) -> Self {
        let (file, statement) = (file.display().to_string(), Text::of(statement));
        Self { file, statement, keys, counts: None, reason: None }
    }

    /// With why the statement does not count now; `None`: it counts.
    pub(super) fn with_standing(self, reason: Option<String>) -> Self {
        Self { counts: Some(reason.is_none()), reason, ..self }
    }

    /// For people: this, who has signed, and whether it counts.
    pub(super) fn words(&self, head: impl fmt::Display) -> String {
        let tally = self.keys.as_ref().map(ToString::to_string).unwrap_or_default();
        let standing = match (self.counts, &self.reason) {
            (None, _) => String::new(),
            (Some(_), None) => "  it counts now\n".to_owned(),
            (Some(_), Some(reason)) => format!("  it does not count now: {reason}\n"),
        };
        format!("{head}{tally}{standing}")
    }
}

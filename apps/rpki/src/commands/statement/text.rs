//! A statement's file as it is written, and as JSON shows it. It is read by the library alone.

use serde::Serialize;
use theta_rpki::{attestation::Attestation, statements::Statement};

use super::super::failure::Failure;

/// A statement without its signatures.
#[derive(Debug, Serialize)]
pub(super) struct Text {
    pub(super) rpki: String,
    pub(super) member: String,
    pub(super) number: u64,
    pub(super) act: &'static str,
    pub(super) from: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) roa: Option<RoaText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) aspa: Option<AspaText>,
}

/// A ROA.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(in super::super) struct RoaText {
    pub(in super::super) asn: u32,
    pub(in super::super) prefixes: Vec<String>,
}

/// An ASPA.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(in super::super) struct AspaText {
    pub(in super::super) customer: u32,
    pub(in super::super) providers: Vec<u32>,
}

/// Whichever of the two it is.
pub(in super::super) fn texts(attestation: &Attestation) -> (Option<RoaText>, Option<AspaText>) {
    match attestation {
        Attestation::Roa { asn, prefixes } => {
            (Some(RoaText { asn: *asn, prefixes: prefixes.iter().map(ToString::to_string).collect() }), None)
        }
        Attestation::Aspa { customer, providers } => {
            (None, Some(AspaText { customer: *customer, providers: providers.iter().copied().collect() }))
        }
    }
}

impl Text {
    /// What the file of a statement says.
    pub(super) fn of(statement: &Statement) -> Self {
        let (roa, aspa) = texts(&statement.attestation);
        Self {
            rpki: statement.rpki.clone(),
            member: statement.member.clone(),
            number: statement.number,
            act: if statement.is_grant() { "grant" } else { "withdraw" },
            from: statement.from,
            until: statement.until,
            roa,
            aspa,
        }
    }

    /// The file, to which signatures are added.
    pub(super) fn to_toml(&self) -> Result<String, Failure> {
        Ok(toml::to_string(self)?)
    }
}

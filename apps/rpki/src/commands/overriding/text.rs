//! An override's file as it is written, and as JSON shows it. It is read by the library alone.

use serde::Serialize;
use theta_rpki::{
    overrides::{Override, Overriding},
    statements::ByOperators,
};

use super::super::{
    failure::Failure,
    statement::{AspaText, RoaText, texts},
};

/// An override without its signatures.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(in super::super) enum Text {
    /// Of one object.
    Object { digest: String, key: String, reason: String, until: i64 },
    /// What operators state in a member's place.
    Statement {
        rpki: String,
        member: String,
        number: u64,
        act: &'static str,
        from: i64,
        until: i64,
        reason: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        roa: Option<RoaText>,
        #[serde(skip_serializing_if = "Option::is_none")]
        aspa: Option<AspaText>,
    },
}

/// A digest in hexadecimal digits.
pub(super) fn digest(digits: &str) -> Result<[u8; 32], String> {
    let mut digest = [0; 32];
    let read = hex::decode_to_slice(digits, &mut digest);
    read.map_err(|_| "a digest is SHA-256, in 64 hexadecimal digits".to_owned()).map(|()| digest)
}

impl Text {
    /// What the file of an override says.
    pub(in super::super) fn of(what: &Overriding) -> Self {
        match what {
            Overriding::Object(Override { digest, key, reason, until }) => {
                let (digest, key, reason) = (hex::encode(digest), key.clone(), reason.clone());
                Self::Object { digest, key, reason, until: *until }
            }
            Overriding::Statement(ByOperators { statement, until, reason }) => {
                let (roa, aspa) = texts(&statement.attestation);
                Self::Statement {
                    rpki: statement.rpki.clone(),
                    member: statement.member.clone(),
                    number: statement.number,
                    act: if statement.is_grant() { "grant" } else { "withdraw" },
                    from: statement.from,
                    until: *until,
                    reason: reason.clone(),
                    roa,
                    aspa,
                }
            }
        }
    }

    /// The file, to which signatures are added.
    pub(super) fn to_toml(&self) -> Result<String, Failure> {
        Ok(toml::to_string(self)?)
    }
}

//! Results for programs: a JSON object on each line. Fields and words are added, and do not change.

use rpki::repository::x509::Time;
use serde_json::{Value, json};
use theta_rpki_publication::{
    check::CheckError,
    due::{Due, Step},
    publication::{Outcome, PublicationError, Report},
};

/// What a run did.
pub(crate) fn run(run: &Result<Report, PublicationError>) -> Value {
    match run {
        Ok(report) => done(report),
        Err(error) => failed(error),
    }
}

fn done(report: &Report) -> Value {
    let warnings: Vec<Value> = report.warnings.iter().map(fault).collect();
    match report.outcome {
        Outcome::Unchanged => json!({ "outcome": "unchanged", "warnings": warnings }),
        Outcome::Completed => json!({ "outcome": "completed", "warnings": warnings }),
        Outcome::Published { session, serial, new, changed, gone } => json!({
            "outcome": "published",
            "session": session.to_string(),
            "serial": serial,
            "new": new,
            "changed": changed,
            "gone": gone,
            "warnings": warnings,
        }),
    }
}

fn failed(error: &PublicationError) -> Value {
    let (code, object) = match error {
        PublicationError::Check(error) => error.code(),
        PublicationError::Read(_) => ("unreadable", None),
        PublicationError::Base(_) => ("base", None),
        PublicationError::Output { .. } => ("output", None),
        PublicationError::State { .. } => ("state", None),
        PublicationError::Busy(_) => ("busy", None),
    };
    let object = object.map(ToString::to_string);
    json!({ "outcome": "failed", "code": code, "object": object, "reason": error.to_string() })
}

fn fault(error: &CheckError) -> Value {
    let (code, object) = error.code();
    json!({ "code": code, "object": object.map(ToString::to_string), "reason": error.to_string() })
}

/// What is due at a publication point. Times are in RFC 3339.
pub(crate) fn due(due: &Due) -> Value {
    let step = match due.step {
        Step::Expired => "expired",
        Step::Renew => "renew",
        Step::Wait => "wait",
    };
    json!({
        "step": step,
        "manifest": due.manifest.to_string(),
        "crl": due.crl.as_ref().map(ToString::to_string),
        "from": Time::from(due.from).to_rfc3339(),
        "expires": Time::from(due.expires).to_rfc3339(),
    })
}

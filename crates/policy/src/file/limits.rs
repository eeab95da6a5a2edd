//! From text to checked limits of clients.

use toml::Spanned;

use super::PolicyProblem;
use super::check::{Fault, fault};
use super::rules::rate;
use super::text::LimitsText;
use crate::policy::Limits;

/// The highest limit on a count.
pub(super) const MOST_COUNT: i64 = 1_000_000;
/// The highest limit on bytes.
pub(super) const MOST_BYTES: i64 = 1 << 40;

/// The limits of a table; fields that are absent have the values of `otherwise`.
pub(super) fn limits(raw: &LimitsText, otherwise: Limits) -> Result<Limits, Fault> {
    if let (None, Some(burst)) = (&raw.submissions, &raw.burst) {
        return fault(burst, PolicyProblem::BurstWithoutSubmissions);
    }
    let submissions = rate(raw.submissions.as_ref(), raw.burst.as_ref())?.unwrap_or(otherwise.submissions);
    Ok(Limits {
        instances: count("instances", raw.instances.as_ref(), MOST_COUNT)?.unwrap_or(otherwise.instances),
        statement_bytes: count("statement_bytes", raw.statement_bytes.as_ref(), MOST_BYTES)?
            .unwrap_or(otherwise.statement_bytes),
        submissions,
        streams: count("streams", raw.streams.as_ref(), MOST_COUNT)?.unwrap_or(otherwise.streams),
        result_bytes: count("result_bytes", raw.result_bytes.as_ref(), MOST_BYTES)?.unwrap_or(otherwise.result_bytes),
    })
}

fn count(field: &'static str, raw: Option<&Spanned<i64>>, most: i64) -> Result<Option<usize>, Fault> {
    let Some(raw) = raw else { return Ok(None) };
    let got = *raw.get_ref();
    match usize::try_from(got).ok().filter(|_| (0..=most).contains(&got)) {
        Some(count) => Ok(Some(count)),
        None => fault(raw, PolicyProblem::Limit { field, got, most }),
    }
}

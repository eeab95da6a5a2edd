//! Times as statements and overrides have them, and as people write them.

use std::{fmt, str::FromStr};

use theta_names::WallTime;
use theta_statements::{TimeError, UnixTime};

/// A moment, in seconds since 1970. Text form: RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) i64);

impl Moment {
    /// Now.
    pub(crate) fn now() -> Self {
        Self(i64::try_from(WallTime::now().seconds()).unwrap_or(i64::MAX))
    }

    /// So many days later.
    pub(crate) fn plus_days(self, days: u32) -> Self {
        Self(self.0.saturating_add(i64::from(days).saturating_mul(86_400)))
    }
}

impl FromStr for Moment {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let UnixTime(milliseconds) = text.parse()?;
        Ok(Self(i64::try_from(milliseconds / 1_000).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(seconds) = *self;
        let time = u64::try_from(seconds).ok().and_then(|seconds| seconds.checked_mul(1_000)).map(UnixTime);
        match time.filter(|time| *time <= UnixTime::LAST) {
            Some(time) => write!(f, "{time}"),
            None => write!(f, "{seconds} seconds since 1970"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_they_are_read() {
        let moment: Moment = "2026-11-21T09:30:00+01:00".parse().unwrap();
        assert_eq!((moment, moment.to_string().as_str()), (Moment(1_795_249_800), "2026-11-21T08:30:00Z"));
        assert_eq!(moment.plus_days(2), Moment(1_795_249_800 + 2 * 86_400));
        assert_eq!(Moment(-1).to_string(), "-1 seconds since 1970");
        assert_eq!(Moment(i64::MAX).plus_days(1).to_string(), format!("{} seconds since 1970", i64::MAX));
        assert!("2026-11-21".parse::<Moment>().is_err());
    }
}

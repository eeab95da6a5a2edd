//! Points in time as policies, statements and records have them. Whatever is decided by one is given it by the caller.

use core::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use theta_names::WallTime;

/// Milliseconds since 1970-01-01T00:00:00Z, without leap seconds. Text form: RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnixTime(pub u64);

const DAY: u64 = 86_400_000;
/// Days from 0000-03-01 to 1970-01-01 in the proleptic Gregorian calendar.
const DAYS_BEFORE_1970: u64 = 719_468;
const DAYS_IN_400_YEARS: u64 = 146_097;

impl UnixTime {
    /// The last millisecond of the year 9999, the last that RFC 3339 can write.
    pub const LAST: Self = Self(253_402_300_799_999);

    /// The time on this machine's clock.
    #[must_use]
    pub fn now() -> Self {
        Self(WallTime::now().milliseconds())
    }

    /// This much later.
    #[must_use]
    pub const fn plus(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }

    /// Milliseconds since `earlier`; 0 if that is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// From year, month, day: days since 1970. The year begins in March, so that the leap day is its last.
    fn days_of(year: u64, month: u64, day: u64) -> Option<u64> {
        let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
        let in_year = (153 * month + 2) / 5 + day - 1;
        (365 * year + year / 4 - year / 100 + year / 400 + in_year).checked_sub(DAYS_BEFORE_1970)
    }

    /// The inverse of [`UnixTime::days_of`].
    const fn date_of(days: u64) -> (u64, u64, u64) {
        let days = days + DAYS_BEFORE_1970;
        let (era, in_era) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
        let year = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
        let in_year = in_era - (365 * year + year / 4 - year / 100);
        let month = (5 * in_year + 2) / 153;
        let day = in_year - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        (era * 400 + year + next, month, day)
    }
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = Self::date_of(self.0 / DAY);
        let (seconds, millis) = (self.0 % DAY / 1_000, self.0 % 1_000);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if millis == 0 { f.write_str("Z") } else { write!(f, ".{millis:03}Z") }
    }
}

/// The text is not a point in time; at most 80 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a point in time between 1970 and 9999; write it as 2026-11-21T08:30:00Z or with an offset as 2026-11-21T09:30:00+01:00"
)]
pub struct TimeError(pub String);

impl FromStr for UnixTime {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        parse(text).ok_or_else(|| TimeError(text.chars().take(80).collect()))
    }
}

/// RFC 3339, section 5.6; fractions beyond milliseconds are cut off, leap seconds refused.
fn parse(text: &str) -> Option<UnixTime> {
    let mut reader = Reader(text);
    let (year, month, day) = (reader.digits(4, b'-')?, reader.digits(2, b'-')?, reader.digits(2, b'T')?);
    let (hour, minute, second) = (reader.digits(2, b':')?, reader.digits(2, b':')?, reader.number(2)?);
    let millis = reader.fraction()?;
    let offset = reader.offset()?;
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days_in_month = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days_in_month).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = UnixTime::days_of(year, month, day)?;
    let local = days * DAY + ((hour * 60 + minute) * 60 + second) * 1_000 + millis;
    local.checked_add_signed(-offset * 60_000).map(UnixTime).filter(|time| *time <= UnixTime::LAST)
}

struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn number(&mut self, digits: usize) -> Option<u64> {
        let (head, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        head.bytes().all(|byte| byte.is_ascii_digit()).then(|| head.parse().ok())?
    }

    fn digits(&mut self, digits: usize, then: u8) -> Option<u64> {
        let number = self.number(digits)?;
        self.0 = self.0.strip_prefix(char::from(then))?;
        Some(number)
    }

    /// Milliseconds of `.123456`, 0 without it.
    fn fraction(&mut self) -> Option<u64> {
        let Some(rest) = self.0.strip_prefix('.') else { return Some(0) };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = rest.split_at_checked(digits).filter(|(digits, _)| (1..=9).contains(&digits.len()))?;
        self.0 = rest;
        digits.bytes().chain(*b"00").take(3).try_fold(0_u64, |sum, digit| Some(sum * 10 + u64::from(digit - b'0')))
    }

    /// Minutes east of Greenwich, to the end of the text.
    fn offset(&mut self) -> Option<i64> {
        if self.0 == "Z" {
            return Some(0);
        }
        let (sign, rest) = match self.0.strip_prefix('+') {
            Some(rest) => (1, rest),
            None => (-1, self.0.strip_prefix('-')?),
        };
        self.0 = rest;
        let (hours, minutes) = (self.digits(2, b':')?, self.number(2)?);
        let minutes = (hours < 24 && minutes < 60 && self.0.is_empty()).then_some(hours * 60 + minutes)?;
        i64::try_from(minutes).ok().map(|minutes| sign * minutes)
    }
}

impl Serialize for UnixTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UnixTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A half-open interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Validity {
    /// The first moment.
    pub from: UnixTime,
    /// The first moment after the last.
    pub until: UnixTime,
}

/// Why something is not valid at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The moment is before the first.
    #[error("it is valid only from {0}")]
    NotYet(UnixTime),
    /// The moment is after the last.
    #[error("it was valid until {0}")]
    Expired(UnixTime),
    /// The interval is empty, or longer than allowed.
    #[error("it is valid for {got} ms, which is not between 1 and {most}")]
    Lifetime {
        /// Its length, in milliseconds.
        got: u64,
        /// The longest that is allowed, in milliseconds.
        most: u64,
    },
}

impl Validity {
    /// Always.
    pub const ALWAYS: Self = Self { from: UnixTime(0), until: UnixTime(u64::MAX) };

    /// Checks that `now` is in the interval.
    ///
    /// # Errors
    /// [`Invalid::NotYet`] or [`Invalid::Expired`].
    pub fn check(&self, now: UnixTime) -> Result<(), Invalid> {
        if now < self.from {
            Err(Invalid::NotYet(self.from))
        } else if now >= self.until {
            Err(Invalid::Expired(self.until))
        } else {
            Ok(())
        }
    }

    /// As [`Validity::check`], and checks that the interval is not empty and at most `most` milliseconds long.
    ///
    /// # Errors
    /// Any [`Invalid`].
    pub fn check_bounded(&self, now: UnixTime, most: u64) -> Result<(), Invalid> {
        let got = self.until.since(self.from);
        if got == 0 || got > most { Err(Invalid::Lifetime { got, most }) } else { self.check(now) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_moments() {
        // From `date -u -d TEXT +%s` of GNU coreutils.
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0_u64),
            ("1970-03-01T00:00:00Z", 59 * 86_400),
            ("2000-02-29T00:00:00Z", 11_016 * 86_400),
            ("2000-02-29T12:34:56Z", 951_827_696),
            ("2026-11-21T08:30:00Z", 1_795_249_800),
            ("2026-11-25T00:00:00Z", 20_782 * 86_400),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            assert_eq!(text.parse(), Ok(UnixTime(seconds * 1_000)), "{text}");
            assert_eq!(UnixTime(seconds * 1_000).to_string(), text);
        }
        assert_eq!("2026-11-21T09:30:00.25+01:00".parse(), Ok(UnixTime(1_795_249_800_250)));
        assert_eq!("2026-11-21T00:30:00.0019-08:00".parse(), Ok(UnixTime(1_795_249_800_001)));
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            "",
            "2026-11-21",
            "2026-11-21T08:30:00",
            "2026-11-21 08:30:00Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:60Z",
            "1969-12-31T23:59:59Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00Zx",
            "1970-01-01T00:00:00+01:00",
            "+026-01-01T00:00:00Z",
            "9999-12-31T23:59:59-00:01",
        ] {
            assert!(bad.parse::<UnixTime>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn validity_begins_and_ends_exactly() {
        let validity = Validity { from: UnixTime(10), until: UnixTime(20) };
        assert_eq!(validity.check(UnixTime(9)), Err(Invalid::NotYet(UnixTime(10))));
        assert_eq!((validity.check(UnixTime(10)), validity.check(UnixTime(19))), (Ok(()), Ok(())));
        assert_eq!(validity.check(UnixTime(20)), Err(Invalid::Expired(UnixTime(20))));
        assert_eq!(validity.check_bounded(UnixTime(10), 10), Ok(()));
        assert_eq!(validity.check_bounded(UnixTime(10), 9), Err(Invalid::Lifetime { got: 10, most: 9 }));
        let never = Validity { from: UnixTime(10), until: UnixTime(10) };
        assert!(matches!(never.check_bounded(UnixTime(10), 9), Err(Invalid::Lifetime { got: 0, .. })));
    }

    proptest! {
        #[test]
        fn text_round_trips(millis in 0..=UnixTime::LAST.0) {
            prop_assert_eq!(UnixTime(millis).to_string().parse(), Ok(UnixTime(millis)));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}|[0-9TZ:.+-]{0,40}") {
            let _ = text.parse::<UnixTime>();
        }
    }
}

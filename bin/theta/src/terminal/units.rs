//! Sizes and durations as people write and read them.

use std::{fmt, str::FromStr, time::Duration};

/// A number of bytes: `300`, `1KiB`, `2.5 MB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

const SIZES: [(&str, u64); 7] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("b", 1),
];

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || format!("{text:?} is not a size: write for example 500, 1KiB or 16MiB");
        let lower = text.trim().to_ascii_lowercase();
        let (number, unit) = SIZES
            .into_iter()
            .find_map(|(suffix, unit)| lower.strip_suffix(suffix).map(|number| (number, unit)))
            .unwrap_or((&lower, 1));
        let count: u64 = number.trim().parse().map_err(|_| error())?;
        count.checked_mul(unit).map(Self).ok_or_else(error)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, unit) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
            if self.0 >= unit {
                let (whole, tenths) = (self.0 / unit, self.0 % unit * 10 / unit);
                return f.pad(&if tenths == 0 {
                    format!("{whole} {name}")
                } else {
                    format!("{whole}.{tenths} {name}")
                });
            }
        }
        f.pad(&format!("{} B", self.0))
    }
}

/// Parses `10s`, `500ms`, `2m`, `1h` or `7d`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let error = || format!("{text:?} is not a duration: write for example 500ms, 10s or 2m");
    let text = text.trim();
    let (number, milliseconds) = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)]
        .into_iter()
        .find_map(|(suffix, unit)| text.strip_suffix(suffix).map(|number| (number, unit)))
        .ok_or_else(error)?;
    let count: u64 = number.trim().parse().map_err(|_| error())?;
    match count.checked_mul(milliseconds) {
        Some(total @ 1..) => Ok(Duration::from_millis(total)),
        _ => Err(error()),
    }
}

/// A duration in the unit that fits: `850 us`, `12.3 ms`, `2.04 s`.
pub fn human(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1e-3 {
        format!("{:.0} us", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        assert_eq!("1KiB".parse(), Ok(Bytes(1024)));
        assert_eq!("16 MB".parse(), Ok(Bytes(16_000_000)));
        assert_eq!("7".parse(), Ok(Bytes(7)));
        for bad in ["", "KiB", "-1", "1.5", "1 parsec", "99999999999999999999", "18446744073709551615GiB"] {
            assert!(bad.parse::<Bytes>().is_err(), "{bad}");
        }
        assert_eq!(Bytes(1536).to_string(), "1.5 KiB");
        assert_eq!(Bytes(12).to_string(), "12 B");
    }

    #[test]
    fn durations_are_read_and_written() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_duration("7d"), Ok(Duration::from_secs(604_800)));
        for bad in ["", "10", "0s", "s", "-1s", "1.5s", "99999999999999999999s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        assert_eq!(human(Duration::from_micros(1_234)), "1.2 ms");
    }
}

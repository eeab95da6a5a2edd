//! The machine on which the figures were measured.

use std::fs;

use serde::Serialize;

/// What one has to know to compare figures.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    cpu: String,
    cores: usize,
    memory: String,
    load: String,
    system: String,
    theta: &'static str,
    rustc: &'static str,
    build: &'static str,
    commit: &'static str,
    heap: &'static str,
    /// The date in UTC, in the form `2026-11-21 05:34:41 UTC`.
    pub(crate) date: String,
}

impl Machine {
    /// Reads the properties of this machine.
    pub(crate) fn look() -> Self {
        let unknown = || "unknown".to_owned();
        let field = |file: &str, name: &str| {
            let text = fs::read_to_string(file).ok()?;
            let line = text.lines().find(|line| line.starts_with(name))?;
            line.split_once(':').map(|(_, value)| value.trim().to_owned())
        };
        Self {
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory: field("/proc/meminfo", "MemTotal").unwrap_or_else(unknown),
            load: fs::read_to_string("/proc/loadavg").map_or_else(|_| unknown(), |text| text.trim().to_owned()),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            theta: env!("CARGO_PKG_VERSION"),
            rustc: env!("THETA_RUSTC"),
            build: if cfg!(debug_assertions) { "debug: too slow to mean anything" } else { "release" },
            commit: env!("THETA_COMMIT"),
            heap: if cfg!(feature = "micro") { "counted" } else { "not counted: build with --features micro" },
            date: date(),
        }
    }

    /// The processor.
    pub(crate) fn cpu(&self) -> &str {
        &self.cpu
    }

    /// How many processors there are.
    pub(crate) const fn cores(&self) -> usize {
        self.cores
    }

    /// The commit that the program was built from, as far as the build knew it.
    pub(crate) const fn commit(&self) -> &'static str {
        self.commit
    }

    /// The load averages at the beginning, as the system shows them.
    pub(crate) fn load(&self) -> &str {
        &self.load
    }

    /// `release` or `debug`.
    pub(crate) const fn build(&self) -> &'static str {
        if cfg!(debug_assertions) { "debug" } else { "release" }
    }

    /// Names and values, for display.
    pub(crate) fn lines(&self) -> [(&'static str, String); 11] {
        [
            ("date", self.date.clone()),
            ("cpu", self.cpu.clone()),
            ("cores", self.cores.to_string()),
            ("memory", self.memory.clone()),
            ("load at the beginning", self.load.clone()),
            ("system", self.system.clone()),
            ("theta", self.theta.to_owned()),
            ("rustc", self.rustc.to_owned()),
            ("build", self.build.to_owned()),
            ("commit", self.commit.to_owned()),
            ("heap", self.heap.to_owned()),
        ]
    }

    /// The text of `machine.txt`.
    pub(crate) fn text(&self) -> String {
        self.lines().iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    }
}

/// The present time, in the form `2026-11-21 05:34:41 UTC`.
fn date() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = civil(now / 86_400);
    let (hour, minute, second) = (now / 3600 % 24, now / 60 % 60, now % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// The date (year, month, day) of a number of days since 1970.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_778, (2026, 11, 21)),
            (20_818, (2026, 12, 31)),
        ] {
            assert_eq!(civil(days), date);
        }
    }
}

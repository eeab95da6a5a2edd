//! What the module has to say: PKCS#11 tells hosts a number, and people need the reason.

use std::{
    fmt,
    fs::OpenOptions,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
    process, thread,
    time::{SystemTime, UNIX_EPOCH},
};

pub(crate) use signals::shielded;
use theta_keypool::LogTo;

mod signals;

/// The longest line in characters.
const MOST: usize = 2000;

/// Where lines go. A file is opened for each line, so that it can be moved away.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(pub(crate) LogTo);

impl Log {
    /// Writes one line. What cannot be written is lost: a host must not fail for it. A thread writes that takes no signals, since
    /// the host may be killed by that of a closed pipe.
    pub(crate) fn say(&self, what: impl fmt::Display) {
        if matches!(self.0, LogTo::Off) {
            return;
        }
        let line = format!("{} theta-pkcs11[{}]: {}\n", now(), process::id(), one_line(&what.to_string()));
        thread::scope(|scope| {
            let write = || match &self.0 {
                LogTo::Off => Ok(()),
                LogTo::Stderr => write_to_stderr(line.as_bytes()),
                LogTo::File(path) => append(path, &line),
            };
            // The scope waits for it.
            let _ = shielded(|| thread::Builder::new().spawn_scoped(scope, write));
        });
    }
}

/// Past the lock of the standard library, which another thread may have held when this process was forked.
fn write_to_stderr(mut line: &[u8]) -> std::io::Result<()> {
    while !line.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(rustix::stdio::stderr(), line))?;
        line = line.get(written..).unwrap_or_default();
    }
    Ok(())
}

fn append(path: &PathBuf, line: &str) -> std::io::Result<()> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)?.write_all(line.as_bytes())
}

/// Errors of the client have a line for each node.
fn one_line(text: &str) -> String {
    let words = text.replace("\n  ", "; ");
    words.chars().take(MOST).map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// The time in UTC, to the second, as RFC 3339 writes it.
fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The date of a day, counted from 1 January 1970, in the Gregorian calendar. Years are counted from March, so that leap days end them.
const fn civil(days: u64) -> (u64, u64, u64) {
    // 1 March of the year 0 is 719468 days before; 400 years have 146097.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_782, (2026, 11, 25)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(civil(days), date, "{days}");
        }
    }

    #[test]
    fn a_line_is_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let log = Log(LogTo::File(path.clone()));
        log.say("no node gave a good answer\n  node 1: gone\r\u{1b}[31m");
        log.say("second");
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("answer; node 1: gone  [31m"), "{text}");
    }
}

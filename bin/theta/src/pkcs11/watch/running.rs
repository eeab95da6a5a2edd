//! One run of the operator's command.

use std::{
    ffi::OsString,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::exit::reason;

/// How often it is looked whether the command has ended.
const GLANCE: Duration = Duration::from_millis(50);

/// How a command has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// With exit code 0.
    Well,
    /// Otherwise, in words.
    Ill(String),
}

/// Runs a command with these words, of which no shell reads any, and waits for its end; it is killed when that takes longer than this. What it says
/// goes where this program's own words go; it is asked nothing.
pub(super) fn run(words: &[OsString], patience: Duration) -> Ended {
    let Some((program, arguments)) = words.split_first() else { return Ended::Ill("it has no words".to_owned()) };
    let started = Command::new(program).args(arguments).stdin(Stdio::null()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => return Ended::Ill(format!("{} does not start: {}", program.to_string_lossy(), reason(&error))),
    };
    let deadline = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ended::Well,
            Ok(Some(status)) => return Ended::Ill(status.to_string()),
            Ok(None) if Instant::now() < deadline => thread::sleep(GLANCE),
            waiting => {
                // One that has just ended is not killed.
                let _ = child.kill();
                let _ = child.wait();
                return Ended::Ill(match waiting {
                    Err(error) => reason(&error),
                    Ok(_) => format!("it was killed after {patience:?}"),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(words: &[&str], patience: Duration) -> Ended {
        run(&words.iter().map(OsString::from).collect::<Vec<_>>(), patience)
    }

    #[test]
    fn words_are_words_and_ends_are_told() {
        let minute = Duration::from_secs(60);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a b; $(c)").to_string_lossy().into_owned();
        assert_eq!(ended(&["touch", &file], minute), Ended::Well);
        assert!(std::path::Path::new(&file).exists(), "no shell has read the words");
        assert_eq!(ended(&["sh", "-c", "exit 3"], minute), Ended::Ill("exit status: 3".to_owned()));
        let begun = Instant::now();
        let killed = ended(&["sleep", "60"], Duration::from_millis(100));
        assert_eq!(killed, Ended::Ill("it was killed after 100ms".to_owned()));
        assert!(begun.elapsed() < Duration::from_secs(30));
        let absent = ended(&["/absent/program"], minute);
        assert!(
            matches!(&absent, Ended::Ill(words) if words.starts_with("/absent/program does not start: ")),
            "{absent:?}"
        );
    }
}

//! What the module has to say: PKCS#11 tells hosts a number, and people need the reason.

use std::{fmt, fs::OpenOptions, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::PathBuf, process, thread};

pub(crate) use signals::shielded;
use theta_client::{Answer, UnixTime, is_shown};
use theta_keypool::LogTo;
use theta_names::WallTime;

mod signals;

/// The longest line in characters.
const MOST: usize = 2000;
/// How many nodes that misbehaved are told of for one signature.
const MOST_CULPRITS: usize = 16;

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

    /// Names the nodes that misbehaved for an answer.
    pub(crate) fn tell_of_liars<T>(&self, answer: &Answer<T>) {
        for problem in answer.bad_answers.iter().take(MOST_CULPRITS) {
            self.say(problem);
        }
        for culprit in answer.culprits.iter().take(MOST_CULPRITS) {
            self.say(format_args!("node {} misbehaved: {}", culprit.node, culprit.misbehaviour));
        }
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
    words.chars().take(MOST).map(|character| if is_shown(character) { character } else { ' ' }).collect()
}

/// The time, to the second.
fn now() -> UnixTime {
    UnixTime(WallTime::now().seconds().saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

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

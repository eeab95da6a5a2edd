//! What an operator's key has signed, beside the key: no second signature may contradict the first one.
//!
//! A file of lines, each a JSON object; the first says whose memory it is. It is written, and on the disk, before the signature leaves.

use std::{
    ffi::OsString,
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use theta_ledger::{Action, LedgerId, MemberChange, OperatorId, SignedWarrant, Warrant};
use theta_names::WallTime;

use crate::{
    exit::Failure,
    files::{Source, Target},
};

/// What the file's name is beside that of the key.
const ENDING: &str = ".signed";
/// The only format that there is.
const FORMAT: u64 = 1;
/// The longest file in bytes: hundreds of warrants for 16 machines.
const MOST: usize = 16 << 20;
/// For how long a command waits until another one has signed with the same key.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it looks meanwhile.
const AGAIN: Duration = Duration::from_millis(50);
const ABOUT: &str =
    "What this operator's key has signed. Keep it with the key, and take it along to wherever the key is used.";

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: u64,
    operator: String,
    about: String,
}

/// One signature.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Line {
    /// When, in milliseconds since 1970.
    time: u64,
    /// What, for people.
    what: String,
    /// The height of the ledger that it was signed by.
    height: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warrant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replacement: Option<ReplacementLine>,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ReplacementLine {
    ledger: String,
    change: String,
}

/// A replacement of its own machine that an operator has signed.
pub(super) struct SignedReplacement {
    pub(super) ledger: LedgerId,
    pub(super) change: MemberChange,
}

/// The memory of one operator's key, which nobody else writes meanwhile.
pub(super) struct Memory {
    file: PathBuf,
    operator: String,
    lines: Vec<Line>,
    warrants: Vec<SignedWarrant>,
    replacements: Vec<SignedReplacement>,
    _locked: File,
}

/// Where the memory of a key is.
fn beside(key: &Path) -> PathBuf {
    let mut name = OsString::from(key);
    name.push(ENDING);
    PathBuf::from(name)
}

/// The key's file, which nobody else has locked.
fn locked(key: &Path, patience: Duration) -> Result<File, Failure> {
    let file = File::open(key).map_err(|error| Failure::reading(key, &error))?;
    let deadline = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(AGAIN),
            Err(TryLockError::WouldBlock) => {
                let key = key.display();
                return Err(Failure::Failed(format!(
                    "another program holds the lock of {key}, as one does that signs with it: try again when it is done; `fuser -v {key}` shows which \
                     it is"
                )));
            }
            Err(TryLockError::Error(error)) => return Err(Failure::reading(key, &error)),
        }
    }
}

impl Memory {
    /// Reads what the key in this file has signed. Whoever else signs with it waits until this is dropped, and not for ever: whoever may read
    /// the key's file can lock it. Where nothing is remembered, a
    /// person has to say that this is the key's first use.
    pub(super) fn open(key: &Path, operator: &OperatorId, first_use: bool) -> Result<Self, Failure> {
        let locked = locked(key, PATIENCE)?;
        let (file, operator) = (beside(key), hex::encode(operator.as_bytes()));
        let mut memory =
            Self { file, operator, lines: Vec::new(), warrants: Vec::new(), replacements: Vec::new(), _locked: locked };
        if memory.file.symlink_metadata().is_ok() {
            memory.read()?;
        } else if !first_use {
            return Err(Failure::Usage(format!(
                "{} is not there, in which it is remembered what this key has signed: bring it from where the key was used before, or say with \
                 --first-use that it has signed nothing yet",
                memory.file.display()
            )));
        }
        Ok(memory)
    }

    fn read(&mut self) -> Result<(), Failure> {
        // What cannot be read might forbid what is about to be signed.
        let wrong = |line: usize, why: &dyn core::fmt::Display| {
            Failure::Usage(format!(
                "{}:{line}: {why}; it says what this key has signed, and nothing is signed without it",
                self.file.display()
            ))
        };
        let bytes = Source::open(&self.file)?.read_all(MOST, "this is not what an operator's key has signed")?;
        let mut lines = (1..).zip(bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()));
        let (_, first) = lines.next().ok_or_else(|| wrong(1, &"the file is empty"))?;
        let head: Head = serde_json::from_slice(first).map_err(|error| wrong(1, &error))?;
        if head.format != FORMAT || head.operator != self.operator {
            return Err(wrong(1, &"it is of another key, or of another release"));
        }
        let (mut read, mut warrants, mut replacements) = (Vec::new(), Vec::new(), Vec::new());
        for (number, bytes) in lines {
            let line: Line = serde_json::from_slice(bytes).map_err(|error| wrong(number, &error))?;
            let damaged = || wrong(number, &"the line is damaged");
            match (&line.warrant, &line.replacement) {
                (Some(warrant), None) => {
                    let warrant = hex::decode(warrant).ok().and_then(|bytes| Warrant::decode(&bytes).ok());
                    warrants.push(SignedWarrant { height: line.height, warrant: warrant.ok_or_else(damaged)? });
                }
                (None, Some(replacement)) => {
                    replacements.push(replacement.signed().ok_or_else(damaged)?);
                }
                _ => return Err(damaged()),
            }
            read.push(line);
        }
        (self.lines, self.warrants, self.replacements) = (read, warrants, replacements);
        Ok(())
    }

    /// The warrants that the key has signed.
    pub(super) fn warrants(&self) -> &[SignedWarrant] {
        &self.warrants
    }

    /// The replacements that it has signed.
    pub(super) fn replacements(&self) -> &[SignedReplacement] {
        &self.replacements
    }

    /// Makes durable that a warrant is signed by a ledger of this height.
    pub(super) fn remember_warrant(&mut self, warrant: &Warrant, height: u64, what: String) -> Result<(), Failure> {
        if self.warrants.iter().any(|signed| signed.warrant.is_same(warrant)) {
            return Ok(());
        }
        let warrant = Some(hex::encode(warrant.encode()));
        self.remember(Line { time: WallTime::now().milliseconds(), what, height, warrant, replacement: None })
    }

    /// Makes durable that a replacement of the operator's own machine is signed.
    pub(super) fn remember_replacement(
        &mut self,
        ledger: &LedgerId,
        change: &MemberChange,
        height: u64,
        what: String,
    ) -> Result<(), Failure> {
        if self.replacements.iter().any(|signed| signed.ledger == *ledger && signed.change == *change) {
            return Ok(());
        }
        let change = hex::encode(Action::Members(change.clone()).encode());
        let replacement = Some(ReplacementLine { ledger: ledger.to_string(), change });
        self.remember(Line { time: WallTime::now().milliseconds(), what, height, warrant: None, replacement })
    }

    fn remember(&mut self, line: Line) -> Result<(), Failure> {
        let head = Head { format: FORMAT, operator: self.operator.clone(), about: ABOUT.to_owned() };
        let mut text = serde_json::to_string(&head).map_err(Failure::internal)? + "\n";
        for line in self.lines.iter().chain([&line]) {
            text.push_str(&serde_json::to_string(line).map_err(Failure::internal)?);
            text.push('\n');
        }
        // Whole or not at all, and on the disk before this returns.
        let mut draft = Target::File(self.file.clone()).draft(true)?;
        let written = std::io::Write::write_all(draft.file(), text.as_bytes());
        written.map_err(|error| Failure::writing(&self.file, &error))?;
        draft.commit()?;
        self.lines.push(line);
        Ok(())
    }
}

impl ReplacementLine {
    fn signed(&self) -> Option<SignedReplacement> {
        let ledger = LedgerId::from_bytes(hex::decode(&self.ledger).ok()?.try_into().ok()?);
        match Action::decode(&hex::decode(&self.change).ok()?).ok()? {
            Action::Members(change) => Some(SignedReplacement { ledger, change }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_others_lock_is_waited_for_and_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("operator.pem");
        std::fs::write(&key, "").unwrap();
        let other = locked(&key, Duration::ZERO).unwrap();
        let refused = locked(&key, Duration::from_millis(200)).unwrap_err();
        assert!(refused.code() == 1 && refused.to_string().contains("fuser -v"), "{refused}");
        let moment = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            drop(other);
        });
        locked(&key, Duration::from_secs(60)).unwrap();
        moment.join().unwrap();
    }
}

//! The file of a memory: a line for each thing that was agreed to, or that has counted, on the disk before anybody hears of it.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use crate::memory::{Entry, Memory};

/// The first line, by which a memory that holds nothing yet is told from one that was lost.
const FIRST: &str = "memory v3";

/// Why a memory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// There is none, and one that was lost is not begun anew in silence.
    #[error(
        "there is no {}: bring it back from where it is; only where this registry's agent has never agreed to anything, or what it knew is lost for good, begin a new one (--new-memory)",
        .0.display()
    )]
    Missing(PathBuf),
    /// A new one was to be begun in the place of another.
    #[error("there is a {} already: it goes on without --new-memory", .0.display())]
    Exists(PathBuf),
    /// Another agent has it.
    #[error("another agent uses {}", .0.display())]
    Busy(PathBuf),
    /// The file cannot be read or written.
    #[error("cannot use {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// It could not be written before, so that what is in it is not known.
    #[error("{} could not be written before: nothing is agreed to until the agent is started again", .0.display())]
    Spoiled(PathBuf),
    /// A line is none.
    #[error("{}: line {line} is nothing that an agent writes", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
}

/// A memory with its file, which no other agent has meanwhile.
#[derive(Debug)]
pub struct Kept {
    memory: Memory,
    file: File,
    /// How long the file is.
    length: u64,
    /// Whether it could not be written once.
    is_spoiled: bool,
    path: PathBuf,
}

fn lock(file: &File, path: &Path) -> Result<(), MemoryError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(MemoryError::Busy(path.to_owned())),
        Err(TryLockError::Error(reason)) => Err(MemoryError::File { path: path.to_owned(), reason }),
    }
}

/// What whole lines say, and how many bytes they are.
///
/// # Errors
/// The number of a line that is none.
fn learnt(text: &str) -> Result<(Memory, usize), usize> {
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut lines = text.get(..whole).unwrap_or_default().lines();
    if lines.next() != Some(FIRST) {
        return Err(1);
    }
    let mut memory = Memory::default();
    for (line, number) in lines.zip(2_usize..) {
        memory.learn(line.parse::<Entry>().map_err(|()| number)?);
    }
    Ok((memory, whole))
}

/// What is in the file of a memory, or in a copy of it, which an agent may go on writing meanwhile.
///
/// # Errors
/// [`MemoryError`].
pub fn look(path: &Path) -> Result<Memory, MemoryError> {
    let text = fs::read_to_string(path).map_err(|reason| MemoryError::File { path: path.to_owned(), reason })?;
    learnt(&text).map(|(memory, _)| memory).map_err(|line| MemoryError::Line { path: path.to_owned(), line })
}

impl Kept {
    /// Begins a memory, where there is none.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn begin(path: &Path) -> Result<Self, MemoryError> {
        let failed = |reason: io::Error| match reason.kind() {
            io::ErrorKind::AlreadyExists => MemoryError::Exists(path.to_owned()),
            _ => MemoryError::File { path: path.to_owned(), reason },
        };
        // It gets its name when its first line is on the disk: after a crash there is a memory, or none.
        let mut draft = path.as_os_str().to_owned();
        draft.push(".new");
        let draft = Path::new(&draft);
        match fs::remove_file(draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let mut file = File::options().read(true).append(true).create_new(true).open(draft).map_err(failed)?;
        lock(&file, path)?;
        let text = format!("{FIRST}\n");
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        // Unlike renaming, this fails where there is one.
        let named = fs::hard_link(draft, path);
        fs::remove_file(draft).and(named).map_err(failed)?;
        // Its name is on the disk only with its folder.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        Ok(Self { memory: Memory::default(), file, length, is_spoiled: false, path: path.to_owned() })
    }

    /// Opens a memory. What a crash has left of a last line is taken away: the node has not heard of it.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn open(path: &Path) -> Result<Self, MemoryError> {
        let failed = |reason: io::Error| match reason.kind() {
            io::ErrorKind::NotFound => MemoryError::Missing(path.to_owned()),
            _ => MemoryError::File { path: path.to_owned(), reason },
        };
        let mut file = File::options().read(true).append(true).open(path).map_err(failed)?;
        lock(&file, path)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let (memory, whole) = learnt(&text).map_err(|line| MemoryError::Line { path: path.to_owned(), line })?;
        let length = u64::try_from(whole).unwrap_or(u64::MAX);
        // What was left of a line would spoil the next one. What was read may not be on the disk yet, if whoever wrote it was killed.
        file.set_len(length).and_then(|()| file.sync_all()).map_err(failed)?;
        Ok(Self { memory, file, length, is_spoiled: false, path: path.to_owned() })
    }

    /// What is known.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Writes what is new of these, and returns when it is on the disk.
    ///
    /// # Errors
    /// [`MemoryError::File`]; nothing is known then that was not before. [`MemoryError::Spoiled`] from then on: after a failure nobody knows what
    /// is on the disk until it is read again.
    pub fn remember(&mut self, entries: &[Entry]) -> Result<(), MemoryError> {
        if self.is_spoiled {
            return Err(MemoryError::Spoiled(self.path.clone()));
        }
        let new: Vec<_> = entries.iter().filter(|entry| !self.memory.knows(entry)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let text: String = new.iter().map(|entry| format!("{entry}\n")).collect();
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(reason) = written {
            self.is_spoiled = true;
            // So that whoever opens it next finds no more than was agreed to; if that fails as well, it knows of more, which does no harm.
            let _ = self.file.set_len(self.length);
            return Err(MemoryError::File { path: self.path.clone(), reason });
        }
        self.length = self.length.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        new.into_iter().for_each(|entry| self.memory.learn(entry.clone()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(key: u8) -> Entry {
        Entry::Content { key: [key; 20], digest: [8; 32], authority: "acme".to_owned(), from: 0 }
    }

    #[test]
    fn a_lost_memory_is_not_begun_anew_in_silence() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory");
        assert!(matches!(Kept::open(&path), Err(MemoryError::Missing(_))));
        assert!(!path.exists());
        // What a crash has left of one that was begun.
        fs::write(folder.path().join("memory.new"), "mem").unwrap();
        drop(Kept::begin(&path).unwrap());
        assert!(matches!(Kept::begin(&path), Err(MemoryError::Exists(_))), "what is known is not thrown away either");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        drop(Kept::open(&path).unwrap());
        fs::write(&path, "").unwrap();
        assert!(matches!(Kept::open(&path), Err(MemoryError::Line { line: 1, .. })), "emptied");
    }

    #[test]
    fn one_agent_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory");
        let first = Kept::begin(&path).unwrap();
        assert!(matches!(Kept::open(&path), Err(MemoryError::Busy(_))));
        drop(first);
        Kept::open(&path).unwrap();
    }

    #[test]
    fn what_was_agreed_to_is_known_after_a_crash() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory");
        let mut kept = Kept::begin(&path).unwrap();
        kept.remember(&[content(1), content(2)]).unwrap();
        kept.remember(&[content(1), content(2)]).unwrap();
        drop(kept);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 3, "each once, after the first line");
        fs::write(&path, format!("{text}list acme 00")).unwrap();
        assert!(look(&path).unwrap().knows(&content(2)), "while it is written");
        let mut kept = Kept::open(&path).unwrap();
        assert!([content(1), content(2)].iter().all(|entry| kept.memory().knows(entry)));
        kept.remember(&[content(3)]).unwrap();
        drop(kept);
        assert!(Kept::open(&path).unwrap().memory().knows(&content(3)), "written after what was left of a line");
        fs::write(&path, format!("{text}list acme 00\n")).unwrap();
        assert!(matches!(Kept::open(&path), Err(MemoryError::Line { line: 4, .. })));
    }

    #[test]
    fn after_a_failure_nothing_is_remembered_until_it_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory");
        let mut kept = Kept::begin(&path).unwrap();
        kept.remember(&[content(1)]).unwrap();
        let good = kept.file.try_clone().unwrap();
        // A file that is open for reading alone is one that can be neither written nor cut.
        kept.file = File::open(&path).unwrap();
        assert!(matches!(kept.remember(&[content(2)]), Err(MemoryError::File { .. })));
        kept.file = good;
        for entry in [content(1), content(2)] {
            assert!(matches!(kept.remember(&[entry]), Err(MemoryError::Spoiled(_))));
        }
        drop(kept);
        let mut kept = Kept::open(&path).unwrap();
        assert!(kept.memory().knows(&content(1)) && !kept.memory().knows(&content(2)));
        kept.remember(&[content(2)]).unwrap();
    }
}

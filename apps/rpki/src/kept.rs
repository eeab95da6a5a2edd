//! The file of a memory: a line for each thing that was agreed to, or that has counted, on the disk before anybody hears of it.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use crate::memory::{Entry, Memory, compact};

/// The first line, by which a memory that holds nothing yet is told from one that was lost.
const FIRST: &str = "memory v3";

/// With fewer lines nothing is taken out.
const MOST_LINES: usize = 10_000;

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
fn read(text: &str) -> Result<(Vec<Entry>, usize), usize> {
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut lines = text.get(..whole).unwrap_or_default().lines();
    if lines.next() != Some(FIRST) {
        return Err(1);
    }
    let entries: Result<_, usize> = lines.zip(2..).map(|(line, number)| line.parse().map_err(|()| number)).collect();
    Ok((entries?, whole))
}

fn learnt(entries: impl IntoIterator<Item = Entry>) -> Memory {
    let mut memory = Memory::default();
    entries.into_iter().for_each(|entry| memory.learn(entry));
    memory
}

/// What is in the file of a memory, or in a copy of it, which an agent may go on writing meanwhile.
///
/// # Errors
/// [`MemoryError`].
pub fn look(path: &Path) -> Result<Memory, MemoryError> {
    let text = fs::read_to_string(path).map_err(|reason| MemoryError::File { path: path.to_owned(), reason })?;
    let read = read(&text).map_err(|line| MemoryError::Line { path: path.to_owned(), line });
    read.map(|(entries, _)| learnt(entries))
}

/// A file with these lines, on the disk, that has no name yet but that of a draft; its length.
fn draft(path: &Path, entries: &[Entry]) -> io::Result<(File, u64, PathBuf)> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let draft = PathBuf::from(draft);
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().read(true).append(true).create_new(true).open(&draft)?;
    let text: String =
        [format!("{FIRST}\n")].into_iter().chain(entries.iter().map(|entry| format!("{entry}\n"))).collect();
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok((file, u64::try_from(text.len()).unwrap_or(u64::MAX), draft))
}

/// A name is on the disk only with its folder.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    File::open(folder)?.sync_all()
}

/// Whether a file still has this name: another agent may have put a shorter one in its place before it was locked here.
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let (own, named) = (file.metadata()?, fs::metadata(path)?);
    Ok((own.dev(), own.ino()) == (named.dev(), named.ino()))
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
        let (file, length, draft) = draft(path, &[]).map_err(failed)?;
        lock(&file, path)?;
        // Unlike renaming, this fails where there is one.
        let named = fs::hard_link(&draft, path);
        fs::remove_file(draft).and(named).and_then(|()| sync_folder(path)).map_err(failed)?;
        Ok(Self { memory: Memory::default(), file, length, is_spoiled: false, path: path.to_owned() })
    }

    /// Opens a memory. What a crash has left of a last line is taken away: the node has not heard of it. Where most of it is over, it is written anew without that.
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
        if !is_named(&file, path).map_err(failed)? {
            return Err(MemoryError::Busy(path.to_owned()));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let (entries, whole) = read(&text).map_err(|line| MemoryError::Line { path: path.to_owned(), line })?;
        let lines = entries.len();
        let (memory, short) = if lines > MOST_LINES {
            let memory = learnt(entries.iter().cloned());
            let short = compact(entries, &memory);
            (memory, Some(short).filter(|short| short.len() < lines / 2))
        } else {
            (learnt(entries), None)
        };
        if let Some(short) = short {
            let (file, length, draft) = draft(path, &short).map_err(failed)?;
            lock(&file, path)?;
            fs::rename(draft, path).and_then(|()| sync_folder(path)).map_err(failed)?;
            tracing::info!("{}: {} of {lines} lines are kept, the others are over", path.display(), short.len());
            return Ok(Self { memory: learnt(short), file, length, is_spoiled: false, path: path.to_owned() });
        }
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

    /// Years after, most is over; a crash while it is written anew leaves what there was.
    #[test]
    fn what_is_over_is_taken_out_when_it_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory");
        let mut kept = Kept::begin(&path).unwrap();
        let list = |number: u32| {
            let [a, b, c, d] = number.to_be_bytes();
            let mut digits = [0; 20];
            digits[..4].copy_from_slice(&[a, b, c, d]);
            Entry::List { authority: "acme".to_owned(), number: digits, digest: [1; 32], from: i64::from(number) }
        };
        kept.remember(&[content(7)]).unwrap();
        (1..=12_000).collect::<Vec<_>>().chunks(500).for_each(|some| {
            let lists: Vec<_> = some.iter().map(|number| list(*number)).collect();
            kept.remember(&lists).unwrap();
        });
        drop(kept);
        fs::write(folder.path().join("memory.new"), "mem").unwrap();
        let long = fs::metadata(&path).unwrap().len();
        let mut kept = Kept::open(&path).unwrap();
        assert!(fs::metadata(&path).unwrap().len() * 100 < long);
        assert!(kept.memory().knows(&content(7)) && kept.memory().knows(&list(12_000)));
        assert!(matches!(Kept::open(&path), Err(MemoryError::Busy(_))), "the new file is locked as well");
        kept.remember(&[content(8)]).unwrap();
        drop(kept);
        let kept = Kept::open(&path).unwrap();
        assert!(kept.memory().knows(&content(8)) && kept.memory().knows(&list(12_000)));
    }
}

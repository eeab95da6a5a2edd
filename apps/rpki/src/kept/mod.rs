//! The file of a memory: a line for each thing that was agreed to, or that has counted, on the disk before anybody hears of it.

mod lines;

use std::{
    fs::{self, File, TryLockError},
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
};

use self::lines::Lines;
use crate::memory::{Entry, Memory, Sieve};

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
    /// What is in the file.
    lines: Lines,
    /// So many of its lines were needed when that was looked at last.
    needed: usize,
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

/// What is in the file of a memory, or in a copy of it, which an agent may go on writing meanwhile.
///
/// # Errors
/// [`MemoryError`].
pub fn look(path: &Path) -> Result<Memory, MemoryError> {
    let file = File::open(path).map_err(|reason| MemoryError::File { path: path.to_owned(), reason })?;
    learnt(&file, path).map(|(memory, _)| memory)
}

fn learnt(file: &File, path: &Path) -> Result<(Memory, Lines), MemoryError> {
    let mut memory = Memory::default();
    let lines = lines::each(file, path, |entry| {
        memory.learn(entry);
        Ok(())
    })?;
    Ok((memory, lines))
}

/// A file with the first line alone, that has no name yet but that of a draft.
fn draft(path: &Path) -> io::Result<(File, PathBuf)> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let draft = PathBuf::from(draft);
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().read(true).append(true).create_new(true).open(&draft)?;
    writeln!(file, "{FIRST}")?;
    file.sync_all()?;
    Ok((file, draft))
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

/// A memory without what is over, in a file that has not its name yet.
struct Short {
    memory: Memory,
    file: File,
    draft: PathBuf,
    lines: Lines,
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
        let (file, draft) = draft(path).map_err(failed)?;
        lock(&file, path)?;
        let length = file.metadata().map_err(failed)?.len();
        // Unlike renaming, this fails where there is one.
        let named = fs::hard_link(&draft, path);
        fs::remove_file(draft).and(named).and_then(|()| sync_folder(path)).map_err(failed)?;
        Ok(Self::new(Memory::default(), file, Lines { count: 0, length }, path))
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
        let file = File::options().read(true).append(true).open(path).map_err(failed)?;
        lock(&file, path)?;
        if !is_named(&file, path).map_err(failed)? {
            return Err(MemoryError::Busy(path.to_owned()));
        }
        let (memory, lines) = learnt(&file, path)?;
        // What was left of a line would spoil the next one. What was read may not be on the disk yet, if whoever wrote it was killed.
        file.set_len(lines.length).and_then(|()| file.sync_all()).map_err(failed)?;
        let mut kept = Self::new(memory, file, lines, path);
        kept.shorten()?;
        Ok(kept)
    }

    fn new(memory: Memory, file: File, lines: Lines, path: &Path) -> Self {
        Self { memory, file, lines, needed: 0, is_spoiled: false, path: path.to_owned() }
    }

    /// What is known.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Writes what is new of these, and returns when it is on the disk. Where most of the file is over then, it is written anew without that.
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
            let _ = self.file.set_len(self.lines.length);
            return Err(MemoryError::File { path: self.path.clone(), reason });
        }
        self.lines.length = self.lines.length.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        self.lines.count = self.lines.count.saturating_add(new.len());
        new.into_iter().for_each(|entry| self.memory.learn(entry.clone()));
        self.shorten()
    }

    /// Writes the file anew without what is over, once it has twice the lines that were needed the last time. So it is never much longer than it has to be,
    /// however long an agent runs and whatever it is asked for. Where that fails, the file goes on as it is.
    fn shorten(&mut self) -> Result<(), MemoryError> {
        let before = self.lines.count;
        if before <= MOST_LINES.max(self.needed.saturating_mul(2)) {
            return Ok(());
        }
        self.needed = before;
        let Short { memory, file, draft, lines } = match self.short() {
            Ok(short) => short,
            Err(error) => {
                tracing::warn!("{error}; the memory is not shortened for now");
                return Ok(());
            }
        };
        self.needed = lines.count;
        if lines.count.saturating_mul(2) > before {
            let _ = fs::remove_file(draft);
            return Ok(());
        }
        if let Err(error) = fs::rename(&draft, &self.path) {
            tracing::warn!("cannot rename {}: {error}; the memory is not shortened for now", draft.display());
            self.needed = before;
            return Ok(());
        }
        (self.memory, self.file, self.lines) = (memory, file, lines);
        if let Err(reason) = sync_folder(&self.path) {
            // After a crash there may be the longer file, without what would be written to this one.
            self.is_spoiled = true;
            return Err(MemoryError::File { path: self.path.clone(), reason });
        }
        tracing::info!("{}: {} of {before} lines are kept, the others are over", self.path.display(), self.lines.count);
        Ok(())
    }

    fn short(&self) -> Result<Short, MemoryError> {
        let failed = |reason| MemoryError::File { path: self.path.clone(), reason };
        let mut sieve = Sieve::new(&self.memory);
        lines::each(&self.file, &self.path, |entry| {
            sieve.look(&entry);
            Ok(())
        })?;
        let (file, draft) = draft(&self.path).map_err(failed)?;
        let (mut memory, mut count, mut writer) = (Memory::default(), 0_usize, BufWriter::new(&file));
        lines::each(&self.file, &self.path, |entry| {
            if sieve.keeps(&entry) {
                writeln!(writer, "{entry}")?;
                memory.learn(entry);
                count = count.saturating_add(1);
            }
            Ok(())
        })?;
        writer.flush().and_then(|()| file.sync_all()).map_err(failed)?;
        drop(writer);
        lock(&file, &self.path)?;
        let length = file.metadata().map_err(failed)?.len();
        Ok(Short { memory, file, draft, lines: Lines { count, length } })
    }
}

#[cfg(test)]
mod tests;

//! The lines of a memory's file, one after the other: the file may be longer than what there is room for.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
    path::Path,
    str,
};

use super::{FIRST, MemoryError};
use crate::memory::Entry;

/// No line is longer, in bytes.
const MOST_LINE: u64 = 4_096;

/// What is in a file, to the end of its last whole line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    /// How many lines there are after the first one.
    pub(super) count: usize,
    /// How many bytes all of them have.
    pub(super) length: u64,
}

/// Reads a file from its beginning. What a crash, or whoever is writing, has left of a last line is passed over.
///
/// # Errors
/// [`MemoryError::File`], also of what takes the lines; [`MemoryError::Line`].
pub(super) fn each(
    mut file: &File,
    path: &Path,
    mut take: impl FnMut(Entry) -> io::Result<()>,
) -> Result<Lines, MemoryError> {
    let failed = |reason| MemoryError::File { path: path.to_owned(), reason };
    let wrong = |line| MemoryError::Line { path: path.to_owned(), line };
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut reader = BufReader::new(file);
    let (mut line, mut length, mut bytes) = (0_usize, 0_u64, Vec::new());
    loop {
        bytes.clear();
        let read = reader.by_ref().take(MOST_LINE).read_until(b'\n', &mut bytes).map_err(failed)?;
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        let next = line.saturating_add(1);
        let Some(whole) = bytes.strip_suffix(b"\n") else {
            if line == 0 || read == MOST_LINE {
                return Err(wrong(next));
            }
            return Ok(Lines { count: line.saturating_sub(1), length });
        };
        (line, length) = (next, length.saturating_add(read));
        let whole = str::from_utf8(whole).map_err(|_| wrong(line))?;
        match line {
            1 if whole == FIRST => {}
            1 => return Err(wrong(1)),
            _ => take(whole.parse().map_err(|()| wrong(line))?).map_err(failed)?,
        }
    }
}

//! What both kinds of files have in common: the number of their format, and errors that name a line.

use serde::Deserialize;

use crate::KeyFileError;

/// The format that this build writes and reads.
pub(crate) const FORMAT: u64 = 1;

/// Reads the fields of a public file; the error names the line.
pub(crate) fn fields<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, KeyFileError> {
    toml::from_str(text)
        .map_err(|error| KeyFileError::Syntax { line: line_of(text, error.span()), problem: one_line(error.message()) })
}

/// Refuses the format of another release.
pub(crate) const fn check_format(format: u64) -> Result<(), KeyFileError> {
    if format == FORMAT { Ok(()) } else { Err(KeyFileError::Format(format)) }
}

/// The line of a byte range, counted from 1.
pub(crate) fn line_of(text: &str, span: Option<core::ops::Range<usize>>) -> usize {
    let end = span.map_or(0, |span| span.start);
    1 + text.bytes().take(end).filter(|byte| *byte == b'\n').count()
}

/// Text from a file or library, cut and cleaned of control characters for an error of one line.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().take(120).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

//! Output: results on standard output, everything else on standard error.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::exit::Failure;

/// Emphasis for headings.
pub const HEADING: Style = Style::new().bold();
/// The style of good results.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// The style of bad results.
pub const BAD: Style = AnsiColor::Red.on_default();
/// The style of remarks.
pub const FAINT: Style = Style::new().dimmed();

/// The form of results.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    json: bool,
}

impl Output {
    /// With JSON, or for people.
    pub const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether results are JSON.
    pub const fn json(self) -> bool {
        self.json
    }

    /// Writes a command's result: one line of JSON, or what `human` writes. Colours are stripped unless standard output
    /// is a terminal and `NO_COLOR` is not set.
    pub fn result(
        self,
        value: &impl Serialize,
        human: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut stdout = anstream::stdout().lock();
        let written = if self.json {
            let line = serde_json::to_string(value).map_err(Failure::internal)?;
            writeln!(stdout, "{line}")
        } else {
            human(&mut stdout)
        };
        written.and_then(|()| stdout.flush()).map_err(|error| Failure::stdout(&error))
    }

    /// Prints a remark on a result that is a file: for people on standard error, with JSON on standard output.
    pub fn remark(self, value: &impl Serialize, human: &str) -> Result<(), Failure> {
        if self.json {
            self.result(value, |_| Ok(()))
        } else {
            note(human);
            Ok(())
        }
    }
}

/// A line for people on standard error. Where diagnostics are JSON, it is one of them: whoever reads them reads every line so.
pub fn note(line: impl Display) {
    if is_json() {
        diagnose("note", &line.to_string(), None);
    } else {
        write_line(line);
    }
}

fn write_line(line: impl Display) {
    // If standard error is closed, the line is lost.
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// The name of the program in diagnostics.
static PROGRAM: OnceLock<&str> = OnceLock::new();

/// Sets the name of the program in diagnostics. Only the first call counts.
pub(crate) fn call_program(name: &'static str) {
    PROGRAM.get_or_init(|| name);
}

/// Whether diagnostics are JSON, as results are.
static JSON: AtomicBool = AtomicBool::new(false);

/// Makes diagnostics JSON from now on.
pub(crate) fn diagnose_in_json() {
    JSON.store(true, Ordering::Relaxed);
}

/// Whether programs read the diagnostics.
pub(crate) fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// A diagnostic for programs: one object in one line of standard error.
#[derive(Serialize)]
struct Diagnostic<'a> {
    level: &'a str,
    message: &'a str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    ending: Option<Ending>,
}

/// How a failed command ends.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Ending {
    /// The stable name of the exit code.
    pub(crate) kind: &'static str,
    /// The exit code.
    pub(crate) exit_code: u8,
}

/// `theta: error: what, where, what would be right`.
pub fn diagnostic(level: &str, line: &str) {
    diagnose(level, line, None);
}

/// The same for the diagnostic that ends a command.
pub(crate) fn diagnose(level: &str, line: &str, ending: Option<Ending>) {
    let line = &crate::terminal::pasted::pasteable(line);
    if JSON.load(Ordering::Relaxed)
        && let Ok(object) = serde_json::to_string(&Diagnostic { level, message: line, ending })
    {
        return write_line(object);
    }
    let style = if level == "error" { BAD.bold() } else { AnsiColor::Yellow.on_default() };
    let program = PROGRAM.get().unwrap_or(&"theta");
    write_line(format_args!("{program}: {style}{level}{style:#}: {line}"));
}

/// Whether somebody watches standard error.
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Rows in aligned columns. `right` lists the columns that are aligned right, such as numbers.
pub struct Table {
    rows: Vec<Vec<String>>,
    right: &'static [usize],
}

impl Table {
    /// A table with these column names.
    pub fn new(headers: &[&str], right: &'static [usize]) -> Self {
        Self { rows: vec![headers.iter().map(ToString::to_string).collect()], right }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Writes the table; the headers are emphasised on a terminal.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row: &Vec<String>| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column == 0 { "" } else { "  " };
                line.push_str(&if self.right.contains(&column) {
                    format!("{gap}{cell:>width$}")
                } else {
                    format!("{gap}{cell:<width$}")
                });
            }
            let line = line.trim_end();
            if number == 0 { writeln!(out, "{HEADING}{line}{HEADING:#}")? } else { writeln!(out, "{line}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_align() {
        let mut table = Table::new(&["name", "n"], &[1]);
        table.row(["a".into(), "7".into()]);
        table.row(["longer".into(), "12".into()]);
        let mut out = anstream::StripStream::new(Vec::new());
        table.write(&mut out).unwrap();
        assert_eq!(String::from_utf8(out.into_inner()).unwrap(), "name     n\na        7\nlonger  12\n");
    }
}

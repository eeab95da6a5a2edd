//! What the program says: results on standard output, everything else on standard error.

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
/// Good news.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Bad news.
pub const BAD: Style = AnsiColor::Red.on_default();
/// Side remarks.
pub const FAINT: Style = Style::new().dimmed();

/// Where results go, and in which form.
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

    /// A result whose human form is a remark: the command's real product is a file, so standard output stays clean for it.
    pub fn remark(self, value: &impl Serialize, human: &str) -> Result<(), Failure> {
        if self.json {
            self.result(value, |_| Ok(()))
        } else {
            note(human);
            Ok(())
        }
    }
}

/// A line for people on standard error.
pub fn note(line: impl Display) {
    // Nothing can be done about a standard error that is closed.
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// What diagnostics call the program.
static PROGRAM: OnceLock<&str> = OnceLock::new();

/// From now on diagnostics call the program so. The first call counts.
pub(crate) fn call_program(name: &'static str) {
    PROGRAM.get_or_init(|| name);
}

/// Whether diagnostics are JSON, as results are.
static JSON: AtomicBool = AtomicBool::new(false);

/// From now on diagnostics are JSON.
pub(crate) fn diagnose_in_json() {
    JSON.store(true, Ordering::Relaxed);
}

/// A diagnostic for programs: one object on one line of standard error.
#[derive(Serialize)]
struct Diagnostic<'a> {
    level: &'a str,
    message: &'a str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    ending: Option<Ending>,
}

/// How a command that failed ends.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Ending {
    /// The name of the exit code, which never changes.
    pub(crate) kind: &'static str,
    /// The exit code.
    pub(crate) exit_code: u8,
}

/// `theta: error: what, where, what would be right`.
pub fn diagnostic(level: &str, line: &str) {
    diagnose(level, line, None);
}

/// The same, for what ends the command.
pub(crate) fn diagnose(level: &str, line: &str, ending: Option<Ending>) {
    if JSON.load(Ordering::Relaxed)
        && let Ok(object) = serde_json::to_string(&Diagnostic { level, message: line, ending })
    {
        return note(object);
    }
    let style = if level == "error" { BAD.bold() } else { AnsiColor::Yellow.on_default() };
    let program = PROGRAM.get().unwrap_or(&"theta");
    note(format_args!("{program}: {style}{level}{style:#}: {line}"));
}

/// Whether somebody watches standard error.
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Rows in aligned columns. Numbers look best on the right: `right` names those columns.
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

    /// Writes it; the first row stands out on a terminal.
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

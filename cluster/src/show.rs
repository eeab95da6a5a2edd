//! What the audience of a demonstration sees.

use std::{cell::Cell, fmt::Display, io::Write as _};

use theta::output::{self, FAINT, GOOD, HEADING, Output};

/// Tells a story: on standard output, or on standard error when that is for JSON.
#[derive(Debug)]
pub struct Show {
    output: Output,
    acts: Cell<u32>,
}

impl Show {
    /// For this kind of output.
    pub const fn new(output: Output) -> Self {
        Self { output, acts: Cell::new(0) }
    }

    /// Where results go, such as the table at the end.
    pub const fn output(&self) -> Output {
        self.output
    }

    /// A heading.
    pub fn act(&self, title: impl Display) {
        let number = self.acts.get().saturating_add(1);
        self.acts.set(number);
        self.line(format_args!("\n{HEADING}{number}. {title}{HEADING:#}"));
    }

    /// What happened.
    pub fn say(&self, line: impl Display) {
        self.line(format_args!("   {line}"));
    }

    /// What happened and was checked.
    pub fn good(&self, line: impl Display) {
        self.line(format_args!("   {GOOD}ok{GOOD:#} {line}"));
    }

    /// Something about it.
    pub fn aside(&self, line: impl Display) {
        self.line(format_args!("   {FAINT}{line}{FAINT:#}"));
    }

    /// A line as it is.
    pub fn line(&self, line: impl Display) {
        if self.output.json() {
            output::note(line);
        } else {
            // Whoever does not listen any more will not miss it; the table's error is reported.
            let _ = writeln!(anstream::stdout(), "{line}");
        }
    }
}

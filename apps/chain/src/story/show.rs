//! What the audience sees.

use std::{cell::Cell, fmt::Display, io::Write as _};

use serde::Serialize;
use theta::{
    exit::Failure,
    output::{self, FAINT, GOOD, HEADING, Output, Table},
};

/// Tells the story: on standard output, or on standard error when that is for JSON.
pub(super) struct Show {
    output: Output,
    acts: Cell<u32>,
}

/// One line of the final table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// When.
    pub(super) act: &'static str,
    /// How many orders ended.
    pub(super) orders: u64,
    /// What the buyers lost by trades that somebody put before theirs, in units of gold.
    pub(super) lost: u64,
    /// What the front-runner gained, in units of coin.
    pub(super) gained: i64,
    /// From the moment at which an order was sent until it was executed: the median, in milliseconds.
    pub(super) p50_ms: u64,
}

impl Show {
    pub(super) const fn new(output: Output) -> Self {
        Self { output, acts: Cell::new(0) }
    }

    /// A heading.
    pub(super) fn act(&self, title: impl Display) {
        let number = self.acts.get().saturating_add(1);
        self.acts.set(number);
        self.line(format_args!("\n{HEADING}{number}. {title}{HEADING:#}"));
    }

    /// What happened.
    pub(super) fn say(&self, line: impl Display) {
        self.line(format_args!("   {line}"));
    }

    /// What happened and was checked.
    pub(super) fn good(&self, line: impl Display) {
        self.line(format_args!("   {GOOD}ok{GOOD:#} {line}"));
    }

    /// Something about it.
    pub(super) fn aside(&self, line: impl Display) {
        self.line(format_args!("   {FAINT}{line}{FAINT:#}"));
    }

    /// The table at the end.
    pub(super) fn table(&self, rows: &[Row]) -> Result<(), Failure> {
        self.output.result(&rows, |out| {
            writeln!(out)?;
            let columns = [
                "when",
                "orders executed",
                "buyers lost (gold)",
                "front-runner gained (coin)",
                "sent to executed, p50",
            ];
            let mut table = Table::new(&columns, &[1, 2, 3, 4]);
            for Row { act, orders, lost, gained, p50_ms } in rows {
                let numbers = [orders.to_string(), lost.to_string(), gained.to_string(), format!("{p50_ms} ms")];
                let [orders, lost, gained, latency] = numbers;
                table.row([(*act).to_owned(), orders, lost, gained, latency]);
            }
            table.write(out)
        })
    }

    fn line(&self, line: impl Display) {
        if self.output.json() {
            output::note(line);
        } else {
            // Whoever does not listen any more will not miss it; the table's error is reported.
            let _ = writeln!(anstream::stdout(), "{line}");
        }
    }
}

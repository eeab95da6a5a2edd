//! What the audience sees.

use std::{
    cell::Cell,
    fmt::Display,
    io::{self, Write},
    path::Path,
    time::Duration,
};

use serde::Serialize;
use theta::{
    connect,
    exit::Failure,
    output::{self, FAINT, GOOD, HEADING, Output, Table},
    units,
};
use theta_cluster::Latencies;

/// Tells the story: on standard output, or on standard error when that is for JSON.
pub(crate) struct Show {
    output: Output,
    acts: Cell<u32>,
}

/// One line of the final table.
#[derive(Serialize)]
pub(crate) struct Row {
    /// When.
    pub(crate) act: &'static str,
    /// What.
    pub(crate) operation: &'static str,
    /// How.
    pub(crate) scheme: String,
    /// How many went well.
    pub(crate) good: usize,
    /// Of how many.
    pub(crate) of: usize,
    /// Half of them took at most this, in milliseconds.
    pub(crate) p50_ms: f64,
    /// 95 in 100 took at most this.
    pub(crate) p95_ms: f64,
    /// The nodes that gave the first good answers.
    pub(crate) answered: Vec<u16>,
    /// The nodes whose shares are in the results.
    pub(crate) shares_from: Vec<u16>,
    /// The nodes that were caught.
    pub(crate) culprits: Vec<u16>,
}

impl Row {
    /// Sets the latencies.
    pub(crate) fn with_latencies(mut self, latencies: &Latencies) -> Self {
        let percentiles = latencies.percentiles();
        (self.p50_ms, self.p95_ms) = (percentiles.p50, percentiles.p95);
        self
    }
}

impl Show {
    /// For this kind of output.
    pub(crate) const fn new(output: Output) -> Self {
        Self { output, acts: Cell::new(0) }
    }

    /// A heading.
    pub(crate) fn act(&self, title: impl Display) {
        let number = self.acts.get() + 1;
        self.acts.set(number);
        self.line(format_args!("\n{HEADING}{number}. {title}{HEADING:#}"));
    }

    /// What happened.
    pub(crate) fn say(&self, line: impl Display) {
        self.line(format_args!("   {line}"));
    }

    /// What happened and was checked.
    pub(crate) fn good(&self, line: impl Display) {
        self.line(format_args!("   {GOOD}ok{GOOD:#} {line}"));
    }

    /// Something about it.
    pub(crate) fn aside(&self, line: impl Display) {
        self.line(format_args!("   {FAINT}{line}{FAINT:#}"));
    }

    /// The table at the end.
    pub(crate) fn table(&self, rows: &[Row]) -> Result<(), Failure> {
        self.output.result(&rows, |out| {
            writeln!(out)?;
            write_table(rows, out)
        })
    }

    /// What to try next.
    pub(crate) fn next(&self, group: &Path, pids: Option<&[(u16, u32)]>) {
        let Some(pids) = pids else {
            self.line("\nThe nodes have ended and their keys are gone. Next:");
            self.line("  cargo run --release -- demo --keep    the same, and the network stays for you to try");
            self.line("  cargo build --release                 makes target/release/theta, the product: then");
            self.line("  theta group init                      a network of your own");
            self.line("  theta --help                          everything else");
            return;
        };
        let client = group.join("client");
        let pids: Vec<String> = pids.iter().map(|(_, pid)| pid.to_string()).collect();
        self.line("\nThe network runs on. Talk to it (cargo build --release makes target/release/theta):");
        self.line(format_args!("  export THETA_CLIENT={}", client.display()));
        self.line("  theta status");
        self.line("  theta encrypt FILE && theta decrypt FILE.theta -o -");
        self.line("  theta coin 'heads or tails'");
        self.line("Stop it and remove its keys:");
        self.line(format_args!("  kill {} && rm -r {}", pids.join(" "), group.display()));
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

fn write_table(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    let mut table =
        Table::new(&["when", "operation", "scheme", "result", "p50", "p95", "answered first", "caught"], &[4, 5]);
    let milliseconds = |value: f64| units::human(Duration::from_secs_f64(value / 1e3));
    for row in rows {
        table.row([
            row.act.to_owned(),
            row.operation.to_owned(),
            row.scheme.clone(),
            format!("{} of {} good", row.good, row.of),
            milliseconds(row.p50_ms),
            milliseconds(row.p95_ms),
            connect::nodes(&row.answered),
            if row.culprits.is_empty() { "-".to_owned() } else { connect::nodes(&row.culprits) },
        ]);
    }
    table.write(out)
}

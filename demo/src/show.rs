//! What the audience sees.

use std::{
    io::{self, Write},
    path::Path,
    time::Duration,
};

use serde::Serialize;
use theta::{connect, exit::Failure, output::Table, units};
use theta_cluster::{Latencies, Show};

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

/// The table at the end.
pub(crate) fn table(show: &Show, rows: &[Row]) -> Result<(), Failure> {
    show.output().result(&rows, |out| {
        writeln!(out)?;
        write_table(rows, out)
    })
}

/// What to try next.
pub(crate) fn next(show: &Show, group: &Path, pids: Option<&[(u16, u32)]>) {
    let Some(pids) = pids else {
        show.line("\nThe nodes have ended and their keys are gone. Next:");
        show.line("  cargo run --release -- demo --keep    the same, and the network stays for you to try");
        show.line("  cargo build --release                 makes target/release/theta, the product: then");
        show.line("  theta group init                      a network of your own");
        show.line("  theta --help                          everything else");
        return;
    };
    let client = group.join("client");
    let pids: Vec<String> = pids.iter().map(|(_, pid)| pid.to_string()).collect();
    show.line("\nThe network runs on. Talk to it (cargo build --release makes target/release/theta):");
    show.line(format_args!("  export THETA_CLIENT={}", client.display()));
    show.line("  theta status");
    show.line("  theta encrypt FILE && theta decrypt FILE.theta -o -");
    show.line("  theta coin 'heads or tails'");
    show.line("Stop it and remove its keys:");
    show.line(format_args!("  kill {} && rm -r {}", pids.join(" "), group.display()));
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

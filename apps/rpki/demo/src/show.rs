//! The table at the end.

use serde::Serialize;
use theta::{connect, exit::Failure, output::Table};
use theta_cluster::Show;

/// One line of it: what was to be published, and what became of it.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// When.
    pub(crate) act: &'static str,
    /// What was to happen.
    pub(crate) change: String,
    /// The nodes that refused to sign something for it.
    pub(crate) refused: Vec<u16>,
    /// Whether it was signed.
    pub(crate) signed: bool,
    /// What a router is told afterwards.
    pub(crate) told: Vec<String>,
    /// How long the issuer took, in milliseconds.
    pub(crate) took_ms: u64,
}

/// Prints it.
pub(crate) fn table(show: &Show, rows: &[Row]) -> Result<(), Failure> {
    show.output().result(&rows, |out| {
        writeln!(out)?;
        let columns = ["when", "what was to be", "refused by", "signed", "what a router is told", "took"];
        let mut table = Table::new(&columns, &[5]);
        let nodes = |numbers: &[u16]| if numbers.is_empty() { "-".to_owned() } else { connect::nodes(numbers) };
        for Row { act, change, refused, signed, told, took_ms } in rows {
            table.row([
                (*act).to_owned(),
                change.clone(),
                nodes(refused),
                if *signed { "yes" } else { "no" }.to_owned(),
                told.join(", "),
                format!("{took_ms} ms"),
            ]);
        }
        table.write(out)
    })
}

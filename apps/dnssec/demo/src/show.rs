//! The table at the end.

use serde::Serialize;
use theta::{connect, exit::Failure, output::Table};
use theta_cluster::Show;

/// One line of it: a change of the zone, and what became of it.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// When.
    pub(crate) act: &'static str,
    /// What was to be changed.
    pub(crate) change: String,
    /// The operators in whose copies of the zone it was.
    pub(crate) copies: Vec<u16>,
    /// The nodes that refused to sign something for it.
    pub(crate) refused: Vec<u16>,
    /// Those of which these say that they took part in it.
    pub(crate) named: Vec<u16>,
    /// Whether it was signed.
    pub(crate) signed: bool,
    /// The address that the name server gave afterwards.
    pub(crate) served: String,
    /// How long Knot took to sign it, or to give up, in milliseconds.
    pub(crate) took_ms: u64,
}

/// Prints it.
pub(crate) fn table(show: &Show, rows: &[Row]) -> Result<(), Failure> {
    show.output().result(&rows, |out| {
        writeln!(out)?;
        let columns = ["when", "change", "in the copies of", "refused by", "named", "signed", "served", "took"];
        let mut table = Table::new(&columns, &[7]);
        let nodes = |numbers: &[u16]| if numbers.is_empty() { "-".to_owned() } else { connect::nodes(numbers) };
        for Row { act, change, copies, refused, named, signed, served, took_ms } in rows {
            table.row([
                (*act).to_owned(),
                change.clone(),
                copies.iter().map(u16::to_string).collect::<Vec<_>>().join(", "),
                nodes(refused),
                nodes(named),
                if *signed { "yes" } else { "no" }.to_owned(),
                served.clone(),
                format!("{took_ms} ms"),
            ]);
        }
        table.write(out)
    })
}

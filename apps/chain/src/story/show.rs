//! What the audience sees.

use serde::Serialize;
use theta::{exit::Failure, output::Table};
use theta_cluster::Show;

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

/// The table at the end.
pub(super) fn table(show: &Show, rows: &[Row]) -> Result<(), Failure> {
    show.output().result(&rows, |out| {
        writeln!(out)?;
        let columns =
            ["when", "orders executed", "buyers lost (gold)", "front-runner gained (coin)", "sent to executed, p50"];
        let mut table = Table::new(&columns, &[1, 2, 3, 4]);
        for Row { act, orders, lost, gained, p50_ms } in rows {
            let numbers = [orders.to_string(), lost.to_string(), gained.to_string(), format!("{p50_ms} ms")];
            let [orders, lost, gained, latency] = numbers;
            table.row([(*act).to_owned(), orders, lost, gained, latency]);
        }
        table.write(out)
    })
}

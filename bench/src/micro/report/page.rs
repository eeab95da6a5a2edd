//! The report as one self-contained HTML file.

use super::{
    super::record::{Row, microseconds},
    charts::Chart,
};
use crate::{machine::Machine, svg::escape};

const PAGE: &str = include_str!("page.html");
/// Only SVG in a file of its own needs it.
const NAMESPACE: &str = " xmlns=\"http://www.w3.org/2000/svg\"";

/// The columns, and whether they hold numbers.
const COLUMNS: [(&str, bool); 14] = [
    ("suite", false),
    ("group", false),
    ("operation", false),
    ("k", true),
    ("n", true),
    ("message B", true),
    ("samples", true),
    ("min us", true),
    ("median us", true),
    ("p95 us", true),
    ("output B", true),
    ("heap B", true),
    ("raw us", true),
    ("overhead", true),
];

/// The whole page.
pub(super) fn page(summary: &str, machine: &Machine, charts: &[Chart], rows: &[Row]) -> String {
    let facts: String = machine
        .lines()
        .iter()
        .map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>", escape(name), escape(value)))
        .collect();
    let plots: String =
        charts.iter().map(|chart| format!("<figure>{}</figure>\n", chart.svg.replacen(NAMESPACE, "", 1))).collect();
    let head: String = COLUMNS
        .iter()
        .map(|(name, number)| {
            let class = if *number { " class=\"n\"" } else { "" };
            format!("<th{class}><button>{name}</button></th>")
        })
        .collect();
    let table: String = rows.iter().map(table_row).collect();
    // The table is filled in last, so that nothing in it is mistaken for a placeholder.
    PAGE.replacen("%SUMMARY%", &escape(summary), 1)
        .replacen("%MACHINE%", &facts, 1)
        .replacen("%HEAD%", &head, 1)
        .replacen("%PLOTS%", &plots, 1)
        .replacen("%ROWS%", &table, 1)
}

fn table_row(row: &Row) -> String {
    fn optional(value: Option<impl ToString>) -> String {
        value.map(|value| value.to_string()).unwrap_or_default()
    }
    let too_much = row.overhead.is_some_and(|overhead| overhead > 1.2);
    let timing = &row.timing;
    let cells = [
        row.suite.clone(),
        row.group.clone(),
        row.operation.clone(),
        row.k.to_string(),
        optional((row.n > 0).then_some(row.n)),
        optional(row.message_bytes),
        timing.samples.to_string(),
        digits(timing.min_us),
        digits(timing.median_us),
        digits(timing.p95_us),
        optional((row.output_bytes > 0).then_some(row.output_bytes)),
        optional(timing.heap_bytes),
        optional(row.raw_us.map(digits)),
        optional(row.overhead.map(|overhead| format!("{overhead:.2}"))),
    ];
    let cells: String = cells
        .iter()
        .zip(COLUMNS)
        .map(|(cell, (name, number))| {
            let class = match (number, name == "overhead" && too_much) {
                (_, true) => " class=\"n bad\"",
                (true, _) => " class=\"n\"",
                _ => "",
            };
            format!("<td{class}>{}</td>", escape(cell))
        })
        .collect();
    format!("<tr>{cells}</tr>\n")
}

fn digits(value: f64) -> String {
    if value < 1.0 { format!("{value:.3}") } else { microseconds(value) }
}

//! The tables of a report, for the terminal and for the page.

use std::io::{self, Write};

use theta::output::{HEADING, Table};

use super::{
    super::{
        folder::Folder,
        row::{Kind, Row},
        scenario::Scenario,
    },
    published,
    summary::{Capacity, ladders, of_kind},
    words::{bytes, digits, key, memory, or_dash, setting},
};
use crate::svg::escape;

/// A table: its columns, those of numbers marked, and its rows.
pub(super) struct Sheet {
    pub(super) title: &'static str,
    columns: Vec<(&'static str, bool)>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Sheet {
    fn new(title: &'static str, names: &[&'static str], numbers: &[&'static str]) -> Self {
        let columns = names.iter().map(|name| (*name, false)).chain(numbers.iter().map(|name| (*name, true))).collect();
        Self { title, columns, rows: Vec::new() }
    }

    /// As HTML.
    pub(super) fn html(&self) -> String {
        let class = |number: bool| if number { " class=\"n\"" } else { "" };
        let head: String =
            self.columns.iter().map(|(name, number)| format!("<th{}>{}</th>", class(*number), escape(name))).collect();
        let row = |cells: &Vec<String>| {
            let cells = cells.iter().zip(&self.columns);
            let cells: String =
                cells.map(|(cell, (_, number))| format!("<td{}>{}</td>", class(*number), escape(cell))).collect();
            format!("<tr>{cells}</tr>\n")
        };
        let body: String = self.rows.iter().map(row).collect();
        format!("<div class=\"table\"><table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>\n")
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let headers: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        // The names come first, the numbers behind them.
        let names = self.columns.iter().filter(|(_, number)| !number).count();
        let mut table = Table::new(&headers, if names == 1 { &RIGHT_OF_ONE } else { &RIGHT_OF_TWO });
        self.rows.iter().for_each(|row| table.row(row.iter().cloned()));
        writeln!(out, "{HEADING}{}{HEADING:#}", self.title)?;
        table.write(out)
    }
}

/// The columns behind the first one, or the first two.
const RIGHT_OF_ONE: [usize; 15] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const RIGHT_OF_TWO: [usize; 15] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

/// Those that have rows.
pub(super) fn all(folder: &Folder, scenario: &Scenario) -> Vec<Sheet> {
    let rows = &folder.rows;
    let sheets =
        [capacity(rows, scenario), usage(rows, scenario), steady(rows), payload(rows), pings(rows), starts(rows)];
    sheets.into_iter().filter(|sheet| !sheet.rows.is_empty()).collect()
}

/// Writes them for people.
pub(crate) fn write(folder: &Folder, scenario: &Scenario, out: &mut dyn Write) -> io::Result<()> {
    for (number, sheet) in all(folder, scenario).iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        sheet.write(out)?;
    }
    Ok(())
}

fn capacities<'a>(rows: &'a [Row], scenario: &Scenario) -> Vec<Capacity<'a>> {
    ladders(rows).iter().filter_map(|ladder| Capacity::of(ladder, &scenario.ladder)).collect()
}

fn capacity(rows: &[Row], scenario: &Scenario) -> Sheet {
    let mut sheet = Sheet::new(
        "Capacity, requests a second",
        &["group", "key"],
        &[
            "knee",
            "p50 ms there",
            "usable",
            "at most",
            "this machine bears",
            "one core a node bears",
            "published knee",
            "times that",
        ],
    );
    for it in capacities(rows, scenario) {
        let published = published::knee(&it.best.scheme, it.best.n);
        let times = published.and_then(|knee| it.of_core.map(|of_core| of_core / knee));
        sheet.rows.push(vec![
            setting(it.best),
            key(it.best, true),
            or_dash(it.knee.map(|step| step.throughput)),
            or_dash(it.knee.and_then(|step| step.p50_ms)),
            or_dash(it.usable.map(|step| step.throughput)),
            or_dash(it.best.throughput),
            or_dash(it.of_machine),
            or_dash(it.of_core),
            or_dash(published),
            or_dash(times),
        ]);
    }
    sheet
}

fn usage(rows: &[Row], scenario: &Scenario) -> Sheet {
    let mut sheet = Sheet::new(
        "What a request costs at the largest throughput",
        &["group", "key"],
        &[
            "CPU us a node",
            "busiest node",
            "client us",
            "idle us a second",
            "sent by a node",
            "messages",
            "most memory",
            "cores busy with others",
        ],
    );
    for it in capacities(rows, scenario) {
        let row = it.best;
        sheet.rows.push(vec![
            setting(row),
            key(row, true),
            or_dash(it.net_us),
            or_dash(row.node_cpu_busiest_us),
            or_dash(row.client_cpu_us),
            or_dash(row.node_idle_us_per_s),
            bytes(row.sent_bytes),
            or_dash(row.sent_messages),
            memory(row.memory_bytes),
            or_dash(row.others_cores),
        ]);
    }
    sheet
}

fn steady(rows: &[Row]) -> Sheet {
    let mut sheet = Sheet::new(
        "Steady state: latencies over nodes",
        &["group", "key"],
        &[
            "rate",
            "client p50 ms",
            "client p95 ms",
            "L_theta ms",
            "L95 ms",
            "residual delay",
            "fairness",
            "published delay",
            "published fairness",
            "traced",
            "CPU us a node",
        ],
    );
    for row in of_kind(rows, Kind::Steady) {
        let published = published::steady(&row.scheme, row.n);
        let index = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        sheet.rows.push(vec![
            setting(row),
            key(row, true),
            or_dash(row.rate),
            or_dash(row.p50_ms),
            or_dash(row.p95_ms),
            or_dash(row.l_theta_ms),
            or_dash(row.l95_ms),
            index(row.residual_delay),
            index(row.fairness),
            index(published.map(|(delay, _)| delay)),
            index(published.map(|(_, fairness)| fairness)),
            row.traced.map_or_else(|| "-".to_owned(), |count| count.to_string()),
            or_dash(row.net_cpu_us()),
        ]);
    }
    sheet
}

fn payload(rows: &[Row]) -> Sheet {
    let mut sheet = Sheet::new(
        "Payloads, one request under way",
        &["group", "key"],
        &["requests", "p50 ms", "p95 ms", "CPU us a node", "client us", "sent by a node", "most memory"],
    );
    for row in of_kind(rows, Kind::Payload) {
        sheet.rows.push(vec![
            setting(row),
            key(row, true),
            row.sent.to_string(),
            or_dash(row.p50_ms),
            or_dash(row.p95_ms),
            or_dash(row.net_cpu_us()),
            or_dash(row.client_cpu_us),
            bytes(row.sent_bytes),
            memory(row.memory_bytes),
        ]);
    }
    sheet
}

fn pings(rows: &[Row]) -> Sheet {
    let mut sheet = Sheet::new(
        "Round trips",
        &["profile and peer", "bytes"],
        &["raw min ms", "raw p50", "raw p95", "mesh min ms", "mesh p50", "mesh p95", "more p50"],
    );
    let pings = of_kind(rows, Kind::Ping);
    for raw in pings.iter().filter(|row| row.transport == "tcp") {
        let same =
            |row: &&&Row| (&row.profile, &row.peer, row.payload_bytes) == (&raw.profile, &raw.peer, raw.payload_bytes);
        let mesh = pings.iter().filter(|row| row.transport == "mesh").find(same);
        let of_mesh = |value: fn(&Row) -> Option<f64>| mesh.and_then(|row| value(row));
        let more = of_mesh(|row| row.p50_ms).and_then(|mesh| raw.p50_ms.map(|raw| mesh - raw));
        sheet.rows.push(vec![
            format!("{} to {}", raw.profile, raw.peer),
            memory(raw.payload_bytes),
            or_dash(raw.min_ms),
            or_dash(raw.p50_ms),
            or_dash(raw.p95_ms),
            or_dash(of_mesh(|row| row.min_ms)),
            or_dash(of_mesh(|row| row.p50_ms)),
            or_dash(of_mesh(|row| row.p95_ms)),
            more.map_or_else(|| "-".to_owned(), digits),
        ]);
    }
    sheet
}

fn starts(rows: &[Row]) -> Sheet {
    let mut sheet = Sheet::new(
        "Starts and ceremonies",
        &["group", "what"],
        &["seconds", "CPU s busiest", "CPU s all", "sent by all", "messages", "most memory"],
    );
    for row in rows.iter().filter(|row| matches!(row.kind, Kind::Start | Kind::Ceremony)) {
        let what = match row.kind {
            Kind::Start => "until all are connected".to_owned(),
            _ if row.failed > 0 => format!("a key of {}: {}", row.suite, row.first_error),
            _ => format!("a key of {}", row.suite),
        };
        sheet.rows.push(vec![
            setting(row),
            what,
            or_dash(row.seconds),
            or_dash(row.busiest_cpu_s),
            or_dash(row.all_cpu_s),
            bytes(row.sent_bytes),
            or_dash(row.sent_messages),
            memory(row.memory_bytes),
        ]);
    }
    sheet
}

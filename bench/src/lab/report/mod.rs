//! The report of a folder of results, as one self-contained HTML file.

mod charts;
mod published;
mod summary;
mod tables;
mod words;

use theta::units;

use self::{
    summary::{Capacity, distinct, ladders},
    tables::Sheet,
    words::{digits, key, setting},
};
pub(super) use self::{tables::write as write_tables, words::one_line};
use super::{folder::Folder, row::Row, scenario::Scenario};
use crate::svg::escape;

const PAGE: &str = include_str!("page.html");
/// Only SVG in a file of its own needs it.
const NAMESPACE: &str = " xmlns=\"http://www.w3.org/2000/svg\"";

/// How the figures of each section are defined.
const CAPACITY: &str = "Requests are sent at a rate, whether or not the earlier ones are answered (open loop); the rate is doubled until the group no longer answers \
    nine in ten of them a second, or answers too late. Latency counts from when a request was due, so that waiting before it is sent counts, too; one that failed took \
    infinitely long. The <b>knee</b> is where throughput over median latency is largest, the <b>usable</b> capacity the largest throughput of which 95 in 100 are answered \
    within the limit and at most 1 in 100 fail. <b>This machine bears</b> what its cores allow by the CPU that all nodes and the client use for a request; <b>one core a node \
    bears</b> what one core allows by the CPU of one node: (1 s - CPU when idle) / CPU for a request.";
const STEADY: &str = "A node's latency is from a request's arrival there to its result, by the node's own stages. For each request the nodes are put in order: \
    <b>L_theta</b> is when the k-th of n has its result (theta = 100 k / n), <b>L95</b> when 95 in 100 have it (a node without a result is the last), both as medians over requests. \
    <b>Residual delay</b> is (L95 - L_theta) / L_theta, <b>fairness</b> L_theta / L95. Of stages that overlap, each moment belongs to the most particular one, so that their sum is the \
    whole; what is before the request has its instance is a mean over all requests.";
const PAYLOAD: &str = "One request under way. Nodes get a ciphertext's header and never its contents, which the client opens; they get messages to be signed as a whole.";
const NETWORK: &str = "A round trip is one message to a node and the same back, one after the other. Raw is a bare TCP connection without delay by Nagle's algorithm between the same two \
    networks; the mesh is the nodes' transport: TLS 1.3, framing, acknowledgements, queues. A start is from the first process until each node is connected to all others; in a \
    ceremony all nodes make a key, of which nobody has more than a share.";

/// The whole page.
pub(super) fn page(folder: &Folder, scenario: &Scenario) -> String {
    let sheets = tables::all(folder, scenario);
    let of = |titles: &[&str]| -> Vec<&Sheet> { sheets.iter().filter(|sheet| titles.contains(&sheet.title)).collect() };
    let capacity = of(&["Capacity, requests a second", "What a request costs at the largest throughput"]);
    let sections = [
        section("Capacity", CAPACITY, &explained(folder, scenario), &capacity, &charts::capacity(folder, scenario)),
        section(
            "Steady state",
            STEADY,
            "",
            &of(&["Steady state: latencies over nodes"]),
            &charts::steady(folder, scenario),
        ),
        section("Payloads", PAYLOAD, "", &of(&["Payloads, one request under way"]), &charts::payload(folder)),
        section("Network", NETWORK, "", &of(&["Round trips", "Starts and ceremonies"]), &charts::network(folder)),
    ];
    PAGE.replacen("%TITLE%", &escape(&scenario.name), 2)
        .replacen("%SUMMARY%", &escape(&scenario.description), 1)
        .replacen("%FACTS%", &facts(folder), 1)
        .replacen("%SCENARIO%", &escape(&scenario.text), 1)
        .replacen("%SECTIONS%", &sections.concat(), 1)
        // Filled in last, so that nothing in them is mistaken for a placeholder.
        .replacen("%POINTS%", &points(&folder.rows), 1)
}

fn section(title: &str, how: &str, more: &str, sheets: &[&Sheet], charts: &[String]) -> String {
    if sheets.is_empty() {
        return String::new();
    }
    let tables: String =
        sheets.iter().map(|sheet| format!("<h3>{}</h3>\n{}", escape(sheet.title), sheet.html())).collect();
    let plots: String =
        charts.iter().map(|svg| format!("<figure>{}</figure>\n", svg.replacen(NAMESPACE, "", 1))).collect();
    format!("<section>\n<h2>{title}</h2>\n<p>{how}</p>\n{more}{tables}<div class=\"plots\">{plots}</div>\n</section>\n")
}

/// Where and when, of all points: usually one value each.
fn facts(folder: &Folder) -> String {
    let list =
        |values: Vec<String>| values.into_iter().filter(|value| !value.is_empty()).collect::<Vec<_>>().join("; ");
    let of = |value: fn(&Row) -> String| list(distinct(folder.rows.iter().map(value)));
    let others = folder.rows.iter().filter_map(|row| row.others_cores).fold(0.0, f64::max);
    let range = |first: Option<&Row>, last: Option<&Row>| match (first, last) {
        (Some(first), Some(last)) => format!("{} to {}", first.date, last.date),
        _ => String::new(),
    };
    let busy = if others > 0.1 { "; figures of time are of a machine that also did something else" } else { "" };
    let facts =
        [
            ("measured", range(folder.rows.first(), folder.rows.last())),
            ("machine", of(|row| format!("{}, {} cores that all nodes and the client share", row.cpu, row.cores))),
            ("commit", of(|row| row.commit.clone())),
            (
                "build",
                of(|row| {
                    if row.build == "debug" { "debug: too slow to mean anything".to_owned() } else { row.build.clone() }
                }),
            ),
            ("busy with other work", format!("up to {} cores{busy}", digits(others))),
            ("points", folder.rows.len().to_string()),
        ];
    facts.iter().map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>", escape(value))).collect()
}

/// Why what was measured is not what one core a node bears, in numbers.
fn explained(folder: &Folder, scenario: &Scenario) -> String {
    let all = ladders(&folder.rows);
    let lines: String =
        all.iter().filter_map(|ladder| Capacity::of(ladder, &scenario.ladder)).filter_map(|it| line(&it)).collect();
    if lines.is_empty() {
        return String::new();
    }
    let limit = units::human(scenario.ladder.limit);
    format!(
        "<p>The limit of usable latency is {limit}. Why one core a node bears more than was measured: here all nodes and the client share the machine.</p>\n\
         <details><summary>By key</summary><ul>{lines}</ul></details>\n"
    )
}

fn line(it: &Capacity<'_>) -> Option<String> {
    let row = it.best;
    let (net, of_core, of_machine, most) = (it.net_us?, it.of_core?, it.of_machine?, row.throughput?);
    let client = row.client_cpu_us.unwrap_or(0.0);
    let all = f64::from(row.n) * net + client;
    let others = row.others_cores.unwrap_or(0.0);
    let rest = if others > 0.1 {
        format!("; {} cores were busy with other work meanwhile", digits(others))
    } else {
        "; the rest is waiting: for each other, for the disk, for the next request".to_owned()
    };
    let text = format!(
        "{}, {}: a request costs {} us at each of {} nodes and {} us at the client, {} us together, so that {} cores bear {}/s; {}/s were measured ({} %){rest}. \
         A node with a core of its own bears {}/s, {} times as much as was measured.",
        setting(row),
        key(row, true),
        digits(net),
        row.n,
        digits(client),
        digits(all),
        row.cores,
        digits(of_machine),
        digits(most),
        digits(100.0 * most / of_machine.max(1e-9)),
        digits(of_core),
        digits(of_core / most.max(1e-9)),
    );
    Some(format!("<li>{}</li>\n", escape(&text)))
}

/// Every point in a line.
fn points(rows: &[Row]) -> String {
    let line = |row: &Row| {
        let place = if row.failed > 0 { " class=\"bad\"" } else { "" };
        format!("<tr{place}><td class=\"n\">{}</td><td>{}</td></tr>\n", row.point, escape(&one_line(row)))
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests;

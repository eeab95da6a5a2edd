//! The plots of a report.

use super::{
    super::{
        STAGES,
        folder::Folder,
        row::{Kind, NodeRow, Row},
        scenario::Scenario,
    },
    published,
    summary::{Capacity, distinct, ladders, of_kind},
    words::{key, setting},
};
use crate::svg::{self, Series, Spread};

/// Plots of one section.
pub(super) type Charts = Vec<String>;

fn exact(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Throughput and latency of each ladder, by group; then all capacities side by side.
pub(super) fn capacity(folder: &Folder, scenario: &Scenario) -> Charts {
    let ladders = ladders(&folder.rows);
    let several = scenario.payloads.len() > 1;
    let mut charts = Vec::new();
    for group in distinct(ladders.iter().filter_map(|ladder| ladder.first()).map(|row| setting(row))) {
        let of_group: Vec<&Vec<&Row>> =
            ladders.iter().filter(|ladder| ladder.first().is_some_and(|row| setting(row) == group)).collect();
        for (name, value) in [
            ("Median latency", (|row: &Row| row.p50_ms) as fn(&Row) -> Option<f64>),
            ("Latency of 95 in 100", |row| row.p95_ms),
        ] {
            let series = of_group.iter().filter_map(|ladder| {
                let points: Vec<_> = ladder.iter().filter_map(|row| Some((row.throughput?, value(row)?))).collect();
                let name = key(ladder.first()?, several);
                (!points.is_empty()).then_some(Series { name, points })
            });
            let series: Vec<Series> = series.collect();
            if !series.is_empty() {
                let title = format!("{name}, {group}");
                charts.push(svg::lines(&title, "good answers a second", "milliseconds", &series));
            }
        }
        charts.extend(capacities(&group, &of_group, scenario, several));
    }
    charts
}

/// One line a key: knee, usable capacity, and what the CPU implies.
fn capacities(group: &str, ladders: &[&Vec<&Row>], scenario: &Scenario, several: bool) -> Option<String> {
    let known: Vec<Capacity<'_>> = ladders.iter().filter_map(|ladder| Capacity::of(ladder, &scenario.ladder)).collect();
    let categories: Vec<String> = known.iter().map(|it| key(it.best, several)).collect();
    type Value = fn(&Capacity<'_>) -> Option<f64>;
    let values: [(&str, Value); 5] = [
        ("knee", |it| it.knee.map(|step| step.throughput)),
        ("usable", |it| it.usable.map(|step| step.throughput)),
        ("implied for this machine", |it| it.of_machine),
        ("implied for one core a node", |it| it.of_core),
        ("published knee", |it| published::knee(&it.best.scheme, it.best.n)),
    ];
    let of_all = |(name, value): (&str, Value)| {
        let points = known.iter().enumerate().filter_map(|(place, it)| Some((exact(place), value(it)?)));
        Series { name: name.to_owned(), points: points.collect() }
    };
    let series: Vec<Series> = values.into_iter().map(of_all).filter(|series| !series.points.is_empty()).collect();
    (!series.is_empty())
        .then(|| svg::dots(&format!("Capacity, {group}"), "requests a second", &categories, &series, true, &[]))
}

/// Stages, fairness, and latencies by node, of each group in steady state.
pub(super) fn steady(folder: &Folder, scenario: &Scenario) -> Charts {
    let rows = of_kind(&folder.rows, Kind::Steady);
    let several = scenario.payloads.len() > 1;
    let mut charts = Vec::new();
    for group in distinct(rows.iter().map(|row| setting(row))) {
        let of_group: Vec<&Row> = rows.iter().copied().filter(|row| setting(row) == group).collect();
        charts.extend(stages(folder, &group, &of_group, several));
        charts.extend(over_nodes(&group, &of_group, several));
        // The latencies of single nodes with the first payload: others look alike.
        let first = of_group.first().and_then(|row| row.payload_bytes);
        charts.extend(of_group.iter().filter(|row| row.payload_bytes == first).filter_map(|row| by_node(folder, row)));
    }
    charts
}

fn stages(folder: &Folder, group: &str, rows: &[&Row], several: bool) -> Vec<String> {
    let categories: Vec<String> = rows.iter().map(|row| key(row, several)).collect();
    let of_stage = |stage: &&str| {
        let at = |(place, row): (usize, &&Row)| {
            let found = folder.stages.iter().find(|it| it.point == row.point && it.stage == **stage)?;
            Some((exact(place), found.mean_us / 1e3))
        };
        Series { name: (*stage).to_owned(), points: rows.iter().enumerate().filter_map(at).collect() }
    };
    let all: Vec<Series> = STAGES.iter().map(of_stage).filter(|series| !series.points.is_empty()).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let whole =
        svg::stacked(&format!("Stages, {group}"), "milliseconds of a request at a node, mean", &categories, &all);
    // What a node does by itself is a sliver where it waits for others for long.
    let work: Vec<Series> = all.into_iter().filter(|series| series.name != "wait for shares").collect();
    let title = format!("Stages without waiting for shares, {group}");
    vec![whole, svg::stacked(&title, "milliseconds of a request at a node, mean", &categories, &work)]
}

fn over_nodes(group: &str, rows: &[&Row], several: bool) -> Option<String> {
    let categories: Vec<String> = rows.iter().map(|row| key(row, several)).collect();
    type Value = fn(&Row) -> Option<f64>;
    let values: [(&str, Value); 4] = [
        ("L_theta", |row| row.l_theta_ms),
        ("L95", |row| row.l95_ms),
        ("client p50", |row| row.p50_ms),
        ("client p95", |row| row.p95_ms),
    ];
    let of_all = |(name, value): (&str, Value)| {
        let points = rows.iter().enumerate().filter_map(|(place, row)| Some((exact(place), value(row)?)));
        Series { name: name.to_owned(), points: points.collect() }
    };
    let series: Vec<Series> = values.into_iter().map(of_all).filter(|series| !series.points.is_empty()).collect();
    let label = "milliseconds";
    (!series.is_empty())
        .then(|| svg::dots(&format!("Latencies over nodes, {group}"), label, &categories, &series, true, &[]))
}

fn by_node(folder: &Folder, row: &Row) -> Option<String> {
    let nodes: Vec<&NodeRow> = folder.nodes.iter().filter(|node| node.point == row.point).collect();
    let spread = |node: &&NodeRow| {
        Some(Spread { p5: node.p5_ms?, p25: node.p25_ms?, p50: node.p50_ms?, p75: node.p75_ms?, p95: node.p95_ms? })
    };
    let spreads: Vec<Option<Spread>> = nodes.iter().map(spread).collect();
    let name = |node: &&NodeRow| format!("node {} {}", node.node, node.place).trim_end().to_owned();
    let categories: Vec<String> = nodes.iter().map(name).collect();
    let title = format!("Latency by node: {}, {}", row.suite, setting(row));
    let label = "milliseconds from a request's arrival to its result: p5, p25, p50, p75, p95";
    spreads.iter().any(Option::is_some).then(|| svg::boxes(&title, label, &categories, &spreads))
}

/// Time over size.
pub(super) fn payload(folder: &Folder) -> Charts {
    let rows = of_kind(&folder.rows, Kind::Payload);
    let name = |row: &Row| format!("{}, {}", row.suite, setting(row));
    type Value = fn(&Row) -> Option<f64>;
    let values: [(&str, &str, Value); 3] = [
        ("Payloads: median latency, opened at the client", "milliseconds", |row| row.p50_ms),
        ("Payloads: CPU of a node for a request", "microseconds", |row| row.net_cpu_us()),
        ("Payloads: bytes that a node sends to its peers for a request", "bytes", |row| row.sent_bytes),
    ];
    let of_value = |(title, label, value): (&str, &str, Value)| {
        let of_name = |name_: String| {
            let of_it = rows.iter().filter(|row| name(row) == name_);
            let points = of_it.filter_map(|row| {
                let bytes = u32::try_from(row.payload_bytes?).ok()?;
                Some((f64::from(bytes), value(row).filter(|value| *value > 0.0)?))
            });
            Series { points: points.collect(), name: name_ }
        };
        let series: Vec<Series> = distinct(rows.iter().map(|row| name(row))).into_iter().map(of_name).collect();
        let series: Vec<Series> = series.into_iter().filter(|series| !series.points.is_empty()).collect();
        (!series.is_empty()).then(|| svg::lines(title, "bytes of plaintext or message", label, &series))
    };
    values.into_iter().filter_map(of_value).collect()
}

/// Round trips by transport; starts and ceremonies by group.
pub(super) fn network(folder: &Folder) -> Charts {
    let mut charts = Vec::new();
    let pings = of_kind(&folder.rows, Kind::Ping);
    for bytes in distinct(pings.iter().map(|row| row.payload_bytes)) {
        let of_size: Vec<&Row> = pings.iter().copied().filter(|row| row.payload_bytes == bytes).collect();
        let name = |row: &Row| format!("{} to {}", row.profile, row.peer);
        let categories = distinct(of_size.iter().map(|row| name(row)));
        let of_transport = |transport: &'static str| {
            let label = if transport == "tcp" { "raw TCP, median" } else { "mesh, median" };
            let points = categories.iter().enumerate().filter_map(|(place, category)| {
                let row = of_size.iter().find(|row| row.transport == transport && name(row) == *category)?;
                Some((exact(place), row.p50_ms?))
            });
            Series { name: label.to_owned(), points: points.collect() }
        };
        let series = ["tcp", "mesh"].map(of_transport);
        let title = format!("Round trips of {}", super::words::memory(bytes));
        charts.push(svg::dots(&title, "milliseconds", &categories, &series, true, &[]));
    }
    let mut by_group = |kind: Kind, title: &str| {
        let rows = of_kind(&folder.rows, kind);
        let name = |row: &Row| format!("{} {}", row.suite, row.profile).trim_start().to_owned();
        let of_name = |name_: String| {
            let of_it = rows.iter().filter(|row| name(row) == name_ && row.failed == 0);
            let points = of_it.filter_map(|row| Some((f64::from(row.n), row.seconds?))).collect();
            Series { name: name_, points }
        };
        let series: Vec<Series> = distinct(rows.iter().map(|row| name(row))).into_iter().map(of_name).collect();
        if series.iter().any(|series| series.points.len() > 1) {
            charts.push(svg::lines(title, "nodes", "seconds", &series));
        }
    };
    by_group(Kind::Start, "From the first node's start until all are connected");
    by_group(Kind::Ceremony, "Making a key");
    charts
}

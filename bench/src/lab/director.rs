//! Measures what a scenario asks for, and keeps each point as soon as it is known.

use std::time::Duration;

use indicatif::ProgressBar;
use theta::{exit::Failure, output};

use super::{
    child::{Ending, Lab},
    figures::{OverNodes, Sorted, tidy},
    folder::Folder,
    protocol::{Answer, Loaded, NodeLoad, Pinged, Started},
    row::{Kind, NodeRow, Row, StageRow},
    scenario::Scenario,
    usage,
    work::{Point, works},
};
use crate::{ceremony::Held, machine::Machine, progress};

/// A row and those that belong to it.
type Rows = (Row, Vec<NodeRow>, Vec<StageRow>);

/// Measures every point that the folder does not have. What has been measured when this fails is in the folder.
pub(super) fn run(scenario: &Scenario, folder: &mut Folder, ending: &Ending) -> Result<(), Failure> {
    let works = works(scenario)?;
    let bar = ticking(works.iter().map(|work| work.series.len()).sum());
    for work in &works {
        let mut lab: Option<Lab> = None;
        for series in &work.series {
            bar.set_message(format!("{}: {}", work.title, series.title()));
            while let Some(point) = series.next(scenario, &folder.rows) {
                ending.check()?;
                let lab = match &mut lab {
                    Some(lab) => lab,
                    None => lab.insert(Lab::start(&work.setup, ending)?),
                };
                let answer = lab.measure(&point.order)?;
                let (row, nodes, stages) = rows(folder.next_point()?, point, answer, lab.places())?;
                say(&bar, &row);
                folder.add(row, nodes, stages)?;
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(())
}

/// One line about a point that was measured.
fn say(bar: &ProgressBar, row: &Row) {
    bar.suspend(|| output::note(super::report::one_line(row)));
}

fn ticking(series: usize) -> ProgressBar {
    let bar = progress::bar(series);
    if !bar.is_hidden() {
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar
}

/// The rows of a point that was measured.
fn rows(number: u32, point: Point, answer: Answer, places: &[String]) -> Result<Rows, Failure> {
    let mut row = Row { point: number, date: Machine::look().date, load_average: usage::load_average(), ..point.row };
    let (nodes, stages) = match (row.kind, answer) {
        (Kind::Start, Answer::Started(started)) => {
            start(&mut row, started);
            Default::default()
        }
        (Kind::Ceremony, Answer::Held(held)) => {
            ceremony(&mut row, &held);
            Default::default()
        }
        (Kind::Ping, Answer::Pinged(pinged)) => {
            ping(&mut row, pinged);
            Default::default()
        }
        (Kind::Capacity | Kind::Steady | Kind::Payload, Answer::Loaded(loaded)) => load(&mut row, &loaded, places),
        (_, Answer::Failed(text)) => {
            (row.failed, row.first_error) = (1, text.replace(['\n', '\r'], " "));
            Default::default()
        }
        _ => return Err(Failure::internal("an answer to something else")),
    };
    Ok((row, nodes, stages))
}

fn start(row: &mut Row, started: Started) {
    row.seconds = Some(tidy(started.connected_seconds));
    row.busiest_cpu_s = Some(tidy(started.cpu_busiest_seconds));
    row.all_cpu_s = Some(tidy(started.cpu_all_seconds));
    row.memory_bytes = Some(started.memory_bytes);
}

fn ceremony(row: &mut Row, held: &Held) {
    row.seconds = Some(tidy(held.seconds));
    row.busiest_cpu_s = Some(tidy(held.cpu_busiest_seconds));
    row.all_cpu_s = Some(tidy(held.cpu_all_seconds));
    row.memory_bytes = Some(held.peak_memory_bytes);
    row.sent_bytes = Some(exact(held.sent_all_bytes));
    row.sent_messages = Some(exact(held.messages_all));
    row.sent = 1;
    if !held.made {
        (row.failed, row.first_error) = (1, held.outcome.replace(['\n', '\r'], " "));
    }
}

fn ping(row: &mut Row, pinged: Pinged) {
    let lost = pinged.lost;
    row.sent = u64::try_from(pinged.milliseconds.len()).unwrap_or(u64::MAX).saturating_add(u64::from(lost));
    row.failed = u64::from(lost);
    let times: Sorted = pinged.milliseconds.into_iter().chain((0..lost).map(|_| f64::INFINITY)).collect();
    latencies(row, &times);
}

fn latencies(row: &mut Row, times: &Sorted) {
    row.min_ms = times.least().map(tidy);
    row.p50_ms = times.percentile(50).map(tidy);
    row.p95_ms = times.percentile(95).map(tidy);
    row.p99_ms = times.percentile(99).map(tidy);
}

fn load(row: &mut Row, loaded: &Loaded, places: &[String]) -> (Vec<NodeRow>, Vec<StageRow>) {
    row.seconds = Some(tidy(loaded.seconds));
    row.throughput = Some(tidy(loaded.throughput));
    row.others_cores = loaded.others_cores.map(tidy);
    row.sent = u64::try_from(loaded.latencies_ms.len()).unwrap_or(u64::MAX);
    row.failed = loaded.errors.values().sum();
    row.first_error = loaded.errors.keys().next().map(|text| text.replace(['\n', '\r'], " ")).unwrap_or_default();
    latencies(row, &loaded.latencies_ms.iter().map(|latency| latency.unwrap_or(f64::INFINITY)).collect());
    let sent = exact(row.sent).max(1.0);
    let mean = |value: fn(&NodeLoad) -> f64| loaded.nodes.iter().map(value).collect::<Sorted>().mean().map(tidy);
    row.node_cpu_us = mean(|node| node.cpu_us);
    row.node_cpu_busiest_us = loaded.nodes.iter().map(|node| node.cpu_us).max_by(f64::total_cmp).map(tidy);
    row.node_idle_us_per_s = mean(|node| node.idle_us_per_s);
    row.client_cpu_us = Some(tidy(loaded.client_cpu_us));
    row.sent_bytes = mean(|node| exact(node.sent_bytes)).map(|bytes| tidy(bytes / sent));
    row.sent_messages = mean(|node| exact(node.sent_messages)).map(|messages| tidy(messages / sent));
    row.memory_bytes = loaded.nodes.iter().map(|node| node.memory_bytes).max();
    if !loaded.traces_ms.is_empty() {
        let over = OverNodes::of(&loaded.traces_ms, row.k.into(), row.n.into());
        row.traced = u64::try_from(loaded.traces_ms.len()).ok();
        (row.l_theta_ms, row.l95_ms) = (over.l_theta.map(tidy), over.l95.map(tidy));
        (row.residual_delay, row.fairness) = (over.residual_delay().map(tidy), over.fairness().map(tidy));
        (row.pooled_l_theta_ms, row.pooled_l95_ms) = (over.pooled_l_theta.map(tidy), over.pooled_l95.map(tidy));
    }
    let node = |node: &NodeLoad| node_row(row.point, node, places, sent);
    let stage = |stage: &super::protocol::StageTimes| StageRow {
        point: row.point,
        stage: stage.stage.clone(),
        mean_us: tidy(stage.mean_us),
        p50_us: stage.p50_us.map(tidy),
        p95_us: stage.p95_us.map(tidy),
    };
    (loaded.nodes.iter().map(node).collect(), loaded.stages.iter().map(stage).collect())
}

fn node_row(point: u32, load: &NodeLoad, places: &[String], sent: f64) -> NodeRow {
    let times: Sorted = load.latencies_ms.iter().copied().collect();
    let at = |p| times.percentile(p).map(tidy);
    let place = load.node.checked_sub(1).and_then(|place| places.get(usize::from(place)));
    NodeRow {
        point,
        node: load.node,
        place: place.cloned().unwrap_or_default(),
        cpu_us: Some(tidy(load.cpu_us)),
        memory_bytes: Some(load.memory_bytes),
        sent_bytes: Some(tidy(exact(load.sent_bytes) / sent)),
        sent_messages: Some(tidy(exact(load.sent_messages) / sent)),
        traced: u64::try_from(load.latencies_ms.len()).unwrap_or(u64::MAX),
        p5_ms: at(5),
        p25_ms: at(25),
        p50_ms: at(50),
        p75_ms: at(75),
        p95_ms: at(95),
        p99_ms: at(99),
    }
}

/// Exact up to 2^52, which no count here reaches.
#[allow(clippy::cast_precision_loss, reason = "see above")]
const fn exact(count: u64) -> f64 {
    count as f64
}

//! Runs an attack, measures its cost, and writes the table.

use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::time;

use crate::{
    attack::{Attack, Effort, Field, Happened, Trouble, Who},
    honest::{Answers, Honest},
};

/// One attack and its result.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    attack: &'static str,
    promise: &'static str,
    who: Who,
    kept: bool,
    /// Whether nothing else was broken than that honest clients were left unanswered.
    #[serde(skip)]
    only_unanswered: bool,
    words: String,
    effort: Effort,
    /// How long the attack took, in seconds.
    seconds: f64,
    before: Answers,
    during: Answers,
    after: Answers,
    /// Growth of the memory of all nodes during the attack, in MiB.
    memory_mib: i64,
    /// The CPU seconds of all nodes during the attack; `cpu_rest` is their use in a period of the same length without it.
    cpu_seconds: f64,
    cpu_rest: f64,
    /// The bytes that all nodes wrote into their logs during the attack.
    log_bytes: u64,
}

/// All rows.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    attacks: Vec<Row>,
}

/// Runs one attack while honest clients go on.
pub(crate) async fn commit(attack: &Attack, field: &mut Field, honest: Honest) -> Result<Row, Trouble> {
    let calm = field.size(Duration::from_secs(5), Duration::from_secs(2));
    let start = Moment::now(field);
    time::sleep(calm).await;
    let begun = Moment::now(field);
    let happened = (attack.commit)(field).await?;
    let ended = Moment::now(field);
    time::sleep(calm).await;
    let end = Instant::now();
    let record = honest.stop().await?;
    let [before, during, after] =
        [(start.at, begun.at), (begun.at, ended.at), (ended.at, end)].map(|(from, to)| record.between(from, to));
    let Happened { mut kept, mut words, effort } = happened;
    let mut only_unanswered = false;
    if !(during.nearly_all() && after.nearly_all()) {
        only_unanswered = kept;
        kept = false;
        words.push_str("; honest clients were stopped");
    }
    for node in field.group_mut().ended() {
        (kept, only_unanswered) = (false, false);
        words.push_str(&format!("; node {node} ended"));
    }
    let seconds = (ended.at - begun.at).as_secs_f64();
    let rest = begun.cpu.saturating_sub(start.cpu).as_secs_f64() / (begun.at - start.at).as_secs_f64().max(0.001);
    Ok(Row {
        attack: attack.name,
        promise: attack.promise,
        who: attack.who,
        kept,
        only_unanswered,
        words,
        effort,
        seconds,
        before,
        during,
        after,
        memory_mib: mib(ended.memory) - mib(begun.memory),
        cpu_seconds: ended.cpu.saturating_sub(begun.cpu).as_secs_f64(),
        cpu_rest: rest * seconds,
        log_bytes: ended.log_bytes.saturating_sub(begun.log_bytes),
    })
}

/// The resources used by the nodes up to a moment.
#[derive(Clone, Copy)]
struct Moment {
    at: Instant,
    cpu: Duration,
    memory: u64,
    log_bytes: u64,
}

impl Moment {
    fn now(field: &Field) -> Self {
        let group = field.group();
        Self { at: Instant::now(), cpu: group.cpu_time(), memory: group.memory(), log_bytes: group.log_bytes() }
    }
}

fn mib(bytes: u64) -> i64 {
    i64::try_from(bytes >> 20).unwrap_or(i64::MAX)
}

impl Row {
    /// Why the attack is worth a second run by itself: two groups at once on a busy machine may leave clients waiting who would
    /// not wait otherwise. No other promise has to do with time.
    pub(crate) fn doubt(&self) -> Option<String> {
        self.only_unanswered.then(|| self.in_a_line())
    }

    /// The same, said to be of a second run.
    pub(crate) fn after(mut self, first: &str) -> Self {
        self.words.push_str(&format!("; UNSTEADY, this is a second run by itself, the first was: {first}"));
        self
    }

    /// The result in one line.
    pub(crate) fn in_a_line(&self) -> String {
        format!("{}: {}", verdict(self.kept), self.words)
    }
}

const fn verdict(kept: bool) -> &'static str {
    if kept { "kept" } else { "BROKEN" }
}

impl FromIterator<Row> for Report {
    fn from_iter<I: IntoIterator<Item = Row>>(rows: I) -> Self {
        Self { attacks: rows.into_iter().collect() }
    }
}

impl Report {
    /// Whether every promise was kept.
    pub(crate) fn all_kept(&self) -> bool {
        self.attacks.iter().all(|row| row.kept)
    }

    /// The report in JSON.
    pub(crate) fn json(&self) -> String {
        // The report has only numbers and strings, so serialising it does not fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The report as a table for people.
    pub(crate) fn table(&self) -> String {
        let titles = [
            "attack",
            "who",
            "conns",
            "sent KiB",
            "s",
            "promise",
            "honest answers before",
            "during",
            "after",
            "MiB",
            "CPU s",
            "log KiB",
        ];
        let mut rows = vec![titles.map(str::to_owned)];
        rows.extend(self.attacks.iter().map(cells));
        let widths: Vec<usize> = (0..titles.len())
            .map(|column| {
                rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for row in &rows {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            text.push_str(cells.join("  ").trim_end());
            text.push('\n');
        }
        text.push_str("\nhonest answers: answered/asked, median and 95th percentile in ms; CPU s: above what the nodes use anyway\n");
        for row in &self.attacks {
            text.push_str(&format!(
                "\n{} ({}): {}\n  promise: {}\n",
                row.attack,
                verdict(row.kept),
                row.words,
                row.promise
            ));
        }
        // Once more at the end, where whoever has only the last lines of a long output finds it.
        for row in self.attacks.iter().filter(|row| !row.kept) {
            let answers = [("before", row.before), ("during", row.during), ("after", row.after)]
                .map(|(when, answers)| format!("{} of {} {when}", answers.answered, answers.asked));
            text.push_str(&format!("\n{}: {}; honest answers: {}", row.attack, row.in_a_line(), answers.join(", ")));
        }
        text
    }
}

fn cells(row: &Row) -> [String; 12] {
    let answers =
        |answers: &Answers| format!("{}/{} {}/{}", answers.answered, answers.asked, answers.p50_ms, answers.p95_ms);
    [
        row.attack.to_owned(),
        row.who.to_string(),
        row.effort.connections.to_string(),
        (row.effort.bytes >> 10).to_string(),
        format!("{:.1}", row.seconds),
        verdict(row.kept).to_owned(),
        answers(&row.before),
        answers(&row.during),
        answers(&row.after),
        row.memory_mib.to_string(),
        format!("{:.1}", (row.cpu_seconds - row.cpu_rest).max(0.0)),
        (row.log_bytes >> 10).to_string(),
    ]
}

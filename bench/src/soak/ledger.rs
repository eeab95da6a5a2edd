//! The results, in intervals and in total.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Write},
    path::Path,
    time::Duration,
};

use serde::Serialize;
use theta::{exit::Failure, files::Target, units};
use theta_cluster::{Latencies, Percentiles};
use tokio::time::Instant;

use super::{
    faults::Fault,
    traffic::{End, Sample},
};

/// Requests that are due this long after the surge, or later, must be answered again.
const RECOVERY: Duration = Duration::from_secs(15);
/// At the end, a node that had no faults may have this many times the memory that it had after its first quarter.
const GROWTH: f64 = 1.25;

/// What happened to requests.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counts {
    answered: u64,
    same_again: u64,
    contradictions: u64,
    failed: u64,
    not_sent: u64,
}

/// The figures of one interval.
#[derive(Debug)]
pub(super) struct Row {
    seconds: u64,
    counts: Counts,
    latency: Percentiles,
    memory: Vec<(u16, u64)>,
    faults: String,
}

/// All results.
pub(super) struct Ledger {
    rate: f64,
    begin: Instant,
    spare: u16,
    rows: Vec<Row>,
    counts: Counts,
    latencies: Latencies,
    interval: (Counts, Latencies, Vec<String>),
    errors: BTreeMap<String, u64>,
    kills: u32,
    freezes: u32,
    surge: Option<(Instant, Option<Instant>)>,
    in_surge: Counts,
}

impl Ledger {
    pub(super) fn new(rate: f64, begin: Instant, spare: u16) -> Result<Self, Failure> {
        Ok(Self {
            rate,
            begin,
            spare,
            rows: Vec::new(),
            counts: Counts::default(),
            latencies: Latencies::new()?,
            interval: (Counts::default(), Latencies::new()?, Vec::new()),
            errors: BTreeMap::new(),
            kills: 0,
            freezes: 0,
            surge: None,
            in_surge: Counts::default(),
        })
    }

    pub(super) fn begin_surge(&mut self) {
        self.surge = Some((Instant::now(), None));
        self.interval.2.push("surge begins".into());
    }

    pub(super) fn end_surge(&mut self) {
        if let Some((_, end)) = &mut self.surge {
            *end = Some(Instant::now());
        }
        self.interval.2.push("surge ends".into());
    }

    pub(super) fn note_fault(&mut self, fault: &Fault) {
        match fault {
            Fault::Killed(_) => self.kills += 1,
            Fault::Frozen(_) => self.freezes += 1,
        }
        self.interval.2.push(fault.to_string());
    }

    /// Whether a request was due during the surge, or shortly after it.
    fn was_in_surge(&self, due: Instant) -> bool {
        self.surge.is_some_and(|(begin, end)| due >= begin && end.is_none_or(|end| due < end + RECOVERY))
    }

    pub(super) fn take(&mut self, sample: Sample) {
        let in_surge = self.was_in_surge(sample.due);
        let sum = if in_surge { &mut self.in_surge } else { &mut self.counts };
        for counts in [sum, &mut self.interval.0] {
            *match &sample.end {
                End::Answered => &mut counts.answered,
                End::SameAgain => &mut counts.same_again,
                End::Contradiction => &mut counts.contradictions,
                End::Failed(_) => &mut counts.failed,
                End::NotSent => &mut counts.not_sent,
            } += 1;
        }
        match sample.end {
            End::Answered | End::SameAgain => {
                self.interval.1.record(sample.latency);
                if !in_surge {
                    self.latencies.record(sample.latency);
                }
            }
            End::Failed(error) => {
                let when = if in_surge { "in the surge" } else { "outside the surge" };
                *self.errors.entry(format!("{when}: {error}")).or_insert(0) += 1;
            }
            End::Contradiction | End::NotSent => {}
        }
    }

    pub(super) fn close_interval(&mut self, memory: impl Iterator<Item = (u16, Option<u64>)>) -> Result<&Row, Failure> {
        let fresh = (Counts::default(), Latencies::new()?, Vec::new());
        let (counts, latencies, faults) = core::mem::replace(&mut self.interval, fresh);
        self.rows.push(Row {
            seconds: self.begin.elapsed().as_secs(),
            counts,
            latency: latencies.percentiles(),
            memory: memory.filter_map(|(node, bytes)| Some((node, bytes?))).collect(),
            faults: faults.join(", "),
        });
        self.rows.last().ok_or_else(|| Failure::internal("an interval without a row"))
    }

    pub(super) fn write_csv(&self, path: &Path) -> Result<(), Failure> {
        let mut text = String::from(
            "seconds,answered,same_again,contradictions,failed,not_sent,p50_ms,p99_ms,max_ms,memory,faults\n",
        );
        for Row { seconds, counts, latency, memory, faults } in &self.rows {
            let Counts { answered, same_again, contradictions, failed, not_sent } = counts;
            let Percentiles { p50, p99, max, .. } = latency;
            let memory: Vec<String> = memory.iter().map(|(node, bytes)| format!("{node}={bytes}")).collect();
            text.push_str(&format!(
                "{seconds},{answered},{same_again},{contradictions},{failed},{not_sent},{p50:.3},{p99:.3},{max:.3},{},{faults}\n",
                memory.join(" ")
            ));
        }
        Target::File(path.to_owned()).write(text.as_bytes(), false)
    }

    /// The memory of a node without faults, in the second and in the last quarter. The first is skipped because it fills
    /// caches.
    fn memory_of(&self, node: u16) -> Option<SparedMemory> {
        let quarter = self.rows.len().div_ceil(4);
        let median = |rows: &[Row]| {
            let mut bytes: Vec<u64> =
                rows.iter().filter_map(|row| Some(row.memory.iter().find(|(number, _)| *number == node)?.1)).collect();
            bytes.sort_unstable();
            bytes.get(bytes.len() / 2).copied()
        };
        let early = self.rows.get(quarter..)?;
        let early = median(early.get(..quarter.min(early.len()))?)?;
        let late = median(self.rows.get(self.rows.len().saturating_sub(quarter)..)?)?;
        Some(SparedMemory { node, early_bytes: early, late_bytes: late })
    }

    pub(super) fn sum_up(&self) -> Summary {
        let surge = self.surge.map(|_| self.in_surge);
        Summary {
            rate: self.rate,
            seconds: self.begin.elapsed().as_secs(),
            requests: self.counts,
            latency_ms: self.latencies.percentiles(),
            surge,
            kills: self.kills,
            freezes: self.freezes,
            memory: (1..=self.spare).filter_map(|node| self.memory_of(node)).collect(),
            errors: self.errors.clone(),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { answered, same_again, contradictions, failed, not_sent } = self.counts;
        let (good, latency) = (answered + same_again, self.latency);
        write!(f, "{:>5} s  {good} answered, {failed} failed, {contradictions} wrong", self.seconds)?;
        if not_sent > 0 {
            write!(f, ", {not_sent} not sent")?;
        }
        write!(f, ", p50 {:.1} ms, p99 {:.1} ms", latency.p50, latency.p99)?;
        let most = self.memory.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        write!(f, ", at most {} a node", units::Bytes(most))?;
        if self.faults.is_empty() { Ok(()) } else { write!(f, "; {}", self.faults) }
    }
}

/// The memory of one node over time.
#[derive(Debug, Serialize)]
struct SparedMemory {
    node: u16,
    early_bytes: u64,
    late_bytes: u64,
}

/// The report.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    rate: f64,
    seconds: u64,
    requests: Counts,
    latency_ms: Percentiles,
    surge: Option<Counts>,
    kills: u32,
    freezes: u32,
    memory: Vec<SparedMemory>,
    errors: BTreeMap<String, u64>,
}

impl Summary {
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Counts { answered, same_again, contradictions, failed, not_sent } = self.requests;
        writeln!(
            out,
            "{:.0} requests a second for {} s; {} nodes killed, {} frozen",
            self.rate, self.seconds, self.kills, self.freezes
        )?;
        writeln!(out, "answered    {} ({same_again} of them again, with the same result)", answered + same_again)?;
        writeln!(out, "lost        {failed} failed, {not_sent} not sent")?;
        writeln!(out, "wrong       {contradictions}")?;
        let Percentiles { p50, p95, p99, max } = self.latency_ms;
        writeln!(out, "latency     p50 {p50:.2} ms, p95 {p95:.2} ms, p99 {p99:.2} ms, max {max:.2} ms")?;
        if let Some(surge) = &self.surge {
            let good = surge.answered + surge.same_again;
            writeln!(out, "surge       {good} answered, {} refused, {} not sent", surge.failed, surge.not_sent)?;
        }
        for SparedMemory { node, early_bytes, late_bytes } in &self.memory {
            let (early, late) = (units::Bytes(*early_bytes), units::Bytes(*late_bytes));
            writeln!(out, "memory      node {node}: {early} in the second quarter, {late} in the last")?;
        }
        for (error, count) in self.errors.iter().take(10) {
            writeln!(out, "            {count} times {error}")?;
        }
        Ok(())
    }

    /// Fails if something happened that must not happen.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let Counts { contradictions, failed, not_sent, .. } = self.requests;
        let wrong = contradictions + self.surge.map_or(0, |surge| surge.contradictions);
        if wrong > 0 {
            return Err(Failure::Failed(format!("{wrong} requests got two different results")));
        }
        if failed + not_sent > 0 {
            return Err(Failure::Failed(format!("{} requests were lost", failed + not_sent)));
        }
        #[expect(clippy::cast_precision_loss, reason = "a ratio of memory sizes")]
        let grew = |memory: &&SparedMemory| memory.late_bytes as f64 > GROWTH * memory.early_bytes as f64;
        match self.memory.iter().find(grew) {
            Some(memory) => Err(Failure::Failed(format!("the memory of node {} grew", memory.node))),
            None => Ok(()),
        }
    }
}

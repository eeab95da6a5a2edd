//! The report of a measurement.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::Path,
    time::Duration,
};

use serde::Serialize;
use theta::{exit::Failure, files::Target, keys::NamedKey, output::Table, units};
use theta_cluster::{Latencies, Percentiles};
use theta_network::group::GroupFile;

use super::{
    drive::{Pace, Run, Sample},
    requests::Operation,
};

/// The resources that one node used.
#[derive(Debug)]
pub(crate) struct NodeUse {
    /// The node.
    pub(crate) node: u16,
    /// The id of its process.
    pub(crate) pid: u32,
    /// The CPU time during the run.
    pub(crate) cpu: Option<Duration>,
    /// The highest resident memory so far, in bytes.
    pub(crate) peak_memory_bytes: Option<u64>,
}

/// The report in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    operation: String,
    key: String,
    suite: &'static str,
    size_bytes: u64,
    group_nodes: usize,
    group_threshold: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<u32>,
    /// Requests in one call, if there are more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    seconds: f64,
    ran_out: bool,
    requests: usize,
    errors: usize,
    error_messages: BTreeMap<String, usize>,
    throughput_per_second: f64,
    latency_ms: Percentiles,
    client_cpu_us_per_request: Option<f64>,
    nodes: Vec<NodeReport>,
}

#[derive(Debug, Serialize)]
struct NodeReport {
    node: u16,
    pid: u32,
    cpu_us_per_request: Option<f64>,
    peak_memory_bytes: Option<u64>,
}

/// What was measured, and which nodes.
pub(crate) struct Setting<'a> {
    pub(crate) operation: Operation,
    pub(crate) key: &'a NamedKey,
    pub(crate) size: u64,
    pub(crate) group: &'a GroupFile,
    pub(crate) pace: Pace,
}

impl Report {
    /// Sums up a run. Only requests that succeeded count for latencies.
    pub(crate) fn new(
        run: &Run,
        setting: &Setting<'_>,
        nodes: &[NodeUse],
        own_cpu: Option<Duration>,
    ) -> Result<Self, Failure> {
        let mut latencies = Latencies::new()?;
        let mut error_messages = BTreeMap::new();
        for sample in &run.samples {
            match &sample.error {
                None => latencies.record(sample.latency),
                Some(message) => *error_messages.entry(message.clone()).or_insert(0) += 1,
            }
        }
        let requests = run.samples.len();
        let errors = run.samples.iter().filter(|sample| sample.error.is_some()).count();
        let per_request = |total: Duration| {
            let requests = f64::from(u32::try_from(requests).unwrap_or(u32::MAX));
            total.as_secs_f64() * 1e6 / requests.max(1.0)
        };
        let node_report = |usage: &NodeUse| NodeReport {
            node: usage.node,
            pid: usage.pid,
            cpu_us_per_request: usage.cpu.map(per_request),
            peak_memory_bytes: usage.peak_memory_bytes,
        };
        let seconds = run.elapsed.as_secs_f64();
        let succeeded = u32::try_from(latencies.count()).unwrap_or(u32::MAX);
        let batch = match setting.pace {
            Pace::Closed { batch, .. } if batch > 1 => Some(batch),
            _ => None,
        };
        let (concurrency, rate) = match setting.pace {
            Pace::Closed { workers, .. } => (Some(workers), None),
            Pace::Open { rate } => (None, Some(rate)),
        };
        Ok(Self {
            operation: setting.operation.to_string(),
            key: setting.key.name.to_string(),
            suite: setting.key.public.suite().name(),
            size_bytes: setting.size,
            group_nodes: setting.group.nodes().len(),
            group_threshold: setting.group.threshold(),
            concurrency,
            batch,
            rate,
            seconds,
            ran_out: run.ran_out,
            requests,
            errors,
            error_messages,
            throughput_per_second: f64::from(succeeded) / seconds.max(1e-9),
            latency_ms: latencies.percentiles(),
            client_cpu_us_per_request: own_cpu.map(per_request),
            nodes: nodes.iter().map(node_report).collect(),
        })
    }

    /// The number of requests with a good answer.
    pub(crate) const fn succeeded(&self) -> usize {
        self.requests.saturating_sub(self.errors)
    }

    /// The first of the errors, in their order in the report.
    pub(crate) fn first_error(&self) -> &str {
        self.error_messages.keys().next().map_or("none was sent", String::as_str)
    }

    /// Writes the report for people.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (n, k) = (self.group_nodes, self.group_threshold);
        writeln!(out, "{} with {} ({}), {n} nodes, any {k}", self.operation, self.key, self.suite)?;
        if let Some(concurrency) = self.concurrency {
            match self.batch {
                None => writeln!(out, "closed loop, {concurrency} under way")?,
                Some(batch) => writeln!(out, "closed loop, {concurrency} calls of {batch} requests under way")?,
            }
        }
        if let Some(rate) = self.rate {
            writeln!(out, "open loop, {rate} requests a second")?;
        }
        writeln!(out, "requests    {} in {:.2} s, {} failed", self.requests, self.seconds, self.errors)?;
        if self.ran_out {
            writeln!(
                out,
                "            (all requests made ahead were used up: give more --requests to measure longer)"
            )?;
        }
        for (message, count) in self.error_messages.iter().take(5) {
            writeln!(out, "            {count} times: {message}")?;
        }
        writeln!(out, "throughput  {:.1} a second", self.throughput_per_second)?;
        let Percentiles { p50, p95, p99, max } = self.latency_ms;
        writeln!(out, "latency     p50 {p50:.2} ms, p95 {p95:.2} ms, p99 {p99:.2} ms, max {max:.2} ms")?;
        if let Some(cpu) = self.client_cpu_us_per_request {
            writeln!(out, "client CPU  {cpu:.0} us a request")?;
        }
        if self.nodes.is_empty() {
            return Ok(());
        }
        let mut table = Table::new(&["node", "CPU us/request", "peak memory"], &[1, 2]);
        let unknown = || "-".to_owned();
        for node in &self.nodes {
            table.row([
                node.node.to_string(),
                node.cpu_us_per_request.map_or_else(unknown, |cpu| format!("{cpu:.0}")),
                node.peak_memory_bytes.map_or_else(unknown, |bytes| units::Bytes(bytes).to_string()),
            ]);
        }
        table.write(out)
    }
}

/// Writes one line a request.
pub(crate) fn write_csv(path: &Path, samples: &[Sample]) -> Result<(), Failure> {
    let mut text = String::from("request,start_ms,latency_ms,result\n");
    for Sample { index, start, latency, error } in samples {
        let result = match error {
            None => "ok".to_owned(),
            Some(error) => format!("\"{}\"", error.replace('"', "'")),
        };
        let (start, latency) = (start.as_secs_f64() * 1e3, latency.as_secs_f64() * 1e3);
        text.push_str(&format!("{index},{start:.3},{latency:.3},{result}\n"));
    }
    Target::File(path.to_owned()).write(text.as_bytes(), false)
}

//! What a run of requests says, with what nodes and machine used meanwhile.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::{
    stages::{BEFORE, ORDER, Part},
    usage::Traffic,
};
use crate::{
    drive::{self, Run},
    lab::{
        figures::Sorted,
        protocol::{Loaded, NodeLoad, Pace, StageTimes},
    },
};

/// The most bytes of requests that are made ahead of a point with large payloads.
const MADE_AHEAD: u64 = 256 << 20;

/// What had been used by some moment.
pub(super) struct Usage {
    pub(super) memory: Vec<u64>,
    pub(super) traffic: Vec<Traffic>,
    pub(super) nodes: Vec<Duration>,
    pub(super) client: Duration,
    /// By the whole machine.
    pub(super) busy: Option<Duration>,
    pub(super) at: Instant,
}

/// Before the requests and after them.
pub(super) struct Spans<'a> {
    pub(super) before: &'a Usage,
    pub(super) after: &'a Usage,
    pub(super) idle_us_per_s: &'a [f64],
}

/// How many requests to make ahead.
pub(super) fn requests(pace: Pace, milliseconds: u64, payload: u64) -> u32 {
    match pace {
        Pace::Open { rate } => {
            let seconds = Duration::from_millis(milliseconds).as_secs_f64();
            // At low rates a point is a few requests all the same.
            let count = (rate * seconds).ceil().clamp(4.0, 4e6);
            u32::try_from(Duration::from_secs_f64(count).as_secs()).unwrap_or(u32::MAX)
        }
        Pace::Alone { requests } => {
            let fitting = MADE_AHEAD / payload.max(1);
            u32::try_from(fitting).unwrap_or(u32::MAX).clamp(1, requests)
        }
    }
}

/// The same for [`drive::run`].
pub(super) const fn drive_pace(pace: Pace) -> drive::Pace {
    match pace {
        Pace::Open { rate } => drive::Pace::Open { rate },
        Pace::Alone { .. } => drive::Pace::Closed { workers: 1, batch: 1 },
    }
}

/// Sums up.
pub(super) fn loaded(run: &Run, spans: &Spans<'_>, parts: &[Part], scheme: &str, pace: Pace) -> Loaded {
    let mut loaded =
        Loaded { seconds: run.elapsed.as_secs_f64(), throughput: throughput(run, pace), ..Loaded::default() };
    for sample in &run.samples {
        if let Some(error) = &sample.error {
            *loaded.errors.entry(error.clone()).or_default() += 1;
        }
        let latency = sample.error.is_none().then_some(sample.latency.as_secs_f64() * 1e3);
        loaded.latencies_ms.push(latency);
    }
    let sent = exact(run.samples.len()).max(1.0);
    let Spans { before, after, idle_us_per_s } = spans;
    loaded.client_cpu_us = after.client.saturating_sub(before.client).as_secs_f64() * 1e6 / sent;
    let nodes_cpu = || after.nodes.iter().zip(&before.nodes).map(|(after, before)| after.saturating_sub(*before));
    loaded.others_cores = others(spans, nodes_cpu().sum());
    for (place, cpu) in nodes_cpu().enumerate() {
        let Ok(node) = u16::try_from(place + 1) else { continue };
        let traffic = |usage: &Usage| usage.traffic.get(place).map(|it| (it.bytes, it.messages)).unwrap_or_default();
        let (now, then) = (traffic(after), traffic(before));
        loaded.nodes.push(NodeLoad {
            node,
            cpu_us: cpu.as_secs_f64() * 1e6 / sent,
            idle_us_per_s: idle_us_per_s.get(place).copied().unwrap_or(0.0),
            memory_bytes: after.memory.get(place).copied().unwrap_or(0),
            sent_bytes: now.0.saturating_sub(then.0),
            sent_messages: now.1.saturating_sub(then.1),
            latencies_ms: parts.iter().filter(|part| part.node == node).filter_map(Part::latency_ms).collect(),
        });
    }
    let mut traces: BTreeMap<[u8; 16], Vec<f64>> = BTreeMap::new();
    for part in parts {
        traces.entry(part.trace).or_default().extend(part.latency_ms());
    }
    loaded.traces_ms = traces.into_values().collect();
    loaded.stages = stages(parts, spans, scheme);
    loaded
}

/// Good answers a second, in the time in which requests were sent, or until the last answer if that is later: in a group that does not keep
/// up, answers come at its own rate. How long the fastest answer took, such as over a long way, is no part of that.
fn throughput(run: &Run, pace: Pace) -> f64 {
    let good = || run.samples.iter().filter(|sample| sample.error.is_none());
    let seconds = match pace {
        Pace::Alone { .. } => run.elapsed.as_secs_f64(),
        Pace::Open { rate } => {
            let last = good().map(|sample| sample.start + sample.latency).max().unwrap_or_default();
            let least = good().map(|sample| sample.latency).min().unwrap_or_default();
            last.saturating_sub(least).as_secs_f64().max(exact(run.samples.len()) / rate)
        }
    };
    exact(good().count()) / seconds.max(1e-9)
}

/// Cores that were busy with something else than the nodes and this process.
fn others(spans: &Spans<'_>, nodes: Duration) -> Option<f64> {
    let Spans { before, after, .. } = spans;
    let busy = after.busy?.checked_sub(before.busy?)?.as_secs_f64();
    let ours = (nodes + after.client.saturating_sub(before.client)).as_secs_f64();
    let time = after.at.duration_since(before.at).as_secs_f64();
    Some(((busy - ours) / time.max(1e-9)).max(0.0))
}

/// The stages of requests at nodes: from traces where a request has its instance, before that from the nodes' sums.
fn stages(parts: &[Part], spans: &Spans<'_>, scheme: &str) -> Vec<StageTimes> {
    let splits: Vec<_> = parts.iter().filter_map(Part::split).collect();
    if splits.is_empty() {
        return Vec::new();
    }
    let of_all = |name: &str, optional: bool| -> Sorted {
        splits.iter().filter_map(|split| split.get(name).copied().or_else(|| (!optional).then_some(0.0))).collect()
    };
    let sum = |stage: &str| {
        let each = spans.after.traffic.iter().zip(&spans.before.traffic);
        let (seconds, count) = each
            .map(|(after, before)| after.stage_since(before, stage, scheme))
            .fold((0.0, 0_u64), |(seconds, count), (more, several)| (seconds + more, count + several));
        seconds * 1e6 / f64::from(u32::try_from(count).unwrap_or(u32::MAX)).max(1.0)
    };
    let (arrive, read) = (sum("received"), sum("deserialised"));
    let known = |stage: &str, times: &Sorted| StageTimes {
        stage: stage.to_owned(),
        mean_us: times.mean().unwrap_or(0.0),
        p50_us: times.percentile(50),
        p95_us: times.percentile(95),
    };
    let mean = |stage: &str, mean_us: f64| StageTimes { stage: stage.to_owned(), mean_us, p50_us: None, p95_us: None };
    let of_stage = |stage: &&str| match *stage {
        "arrive" => mean(stage, arrive),
        "read" => mean(stage, read),
        "allow and record" => mean(stage, (of_all(BEFORE, true).mean().unwrap_or(0.0) - arrive - read).max(0.0)),
        "answer" => known(stage, &of_all(stage, true)),
        _ => known(stage, &of_all(stage, false)),
    };
    ORDER.iter().map(of_stage).collect()
}

fn exact(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::Sample;

    fn run(samples: Vec<(u64, u64)>, elapsed: u64) -> Run {
        let sample = |(index, (start, latency)): (usize, (u64, u64))| Sample {
            index,
            start: Duration::from_millis(start),
            latency: Duration::from_millis(latency),
            error: None,
        };
        let samples = samples.into_iter().enumerate().map(sample).collect();
        Run { samples, elapsed: Duration::from_millis(elapsed), ran_out: false }
    }

    #[test]
    fn throughput_is_the_groups_and_not_the_distance() {
        let open = |rate| Pace::Open { rate };
        // Ten a second, each answered after 400 ms by a group that is far away: ten a second.
        let far = run((0..10).map(|number| (number * 100, 400)).collect(), 1_300);
        assert!((throughput(&far, open(10.0)) - 10.0).abs() < 0.1);
        // A hundred were sent in a second, and the last was answered after two: fifty a second.
        let slow = run((0..100).map(|number| (number * 10, 20 + number * 10)).collect(), 2_000);
        assert!((throughput(&slow, open(100.0)) - 50.0).abs() < 1.0, "{}", throughput(&slow, open(100.0)));
        // One after the other, five in half a second.
        let alone = run((0..5).map(|number| (number * 100, 100)).collect(), 500);
        assert!((throughput(&alone, Pace::Alone { requests: 5 }) - 10.0).abs() < 0.1);
        let mut failed = run(vec![(0, 10), (500, 10)], 1_000);
        failed.samples[1].error = Some("no".to_owned());
        assert!((throughput(&failed, open(2.0)) - 1.0).abs() < 0.1);
    }

    #[test]
    fn as_many_requests_as_the_rate_takes() {
        assert_eq!(requests(Pace::Open { rate: 90.5 }, 5_000, 256), 453);
        assert_eq!(requests(Pace::Open { rate: 0.5 }, 5_000, 256), 4);
        assert_eq!(requests(Pace::Open { rate: 8.0 }, 5_000, 256), 40);
        assert_eq!(requests(Pace::Alone { requests: 100 }, 5_000, 16 << 20), 16);
        assert_eq!(requests(Pace::Alone { requests: 100 }, 5_000, 1), 100);
    }
}

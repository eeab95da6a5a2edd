//! `theta-bench rest`: what a group costs until its first answer, and when nobody asks.

use std::{collections::BTreeMap, fs, io, sync::Arc, time::Duration};

use clap::Args;
use serde::Serialize;
use theta::{
    connect::Session,
    exit::Failure,
    group::plan::{self, Plan},
    interrupt::Unfinished,
    output::{self, Output},
    units,
};
use theta_cluster::{Cluster, Lifetime, this_program};
use tokio::time::{self, Instant};

use super::{
    drive::{self, Pace},
    requests::{Operation, Pool},
};

/// How long the group has until its first answer.
const FIRST_ANSWER: Duration = Duration::from_secs(60);
/// How long one attempt at it may take.
const ATTEMPT: Duration = Duration::from_millis(500);
/// What is left of the work before is over after this.
const SETTLED: Duration = Duration::from_secs(3);

/// Options of `theta-bench rest`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta-bench rest                            7 nodes, any 3
  theta-bench rest --idle 60s --requests 0    no requests between the two times of rest

Each node is a process of its own. CPU until the first answer is that of all of them, from their start until a client has the \
first plaintext key; a group that has just been made then takes the dealer's keys into its ledger, which is counted apart. At \
rest, a thread's time comes from its schedstat in /proc, with a resolution of nanoseconds. PSS counts pages that processes \
share, such as the program's, in parts: what one more node takes.")]
pub(crate) struct RestArgs {
    /// How many nodes
    #[arg(long, value_name = "N", default_value_t = 7)]
    nodes: u16,
    /// How many of them it takes
    #[arg(long, value_name = "K", default_value_t = 3)]
    threshold: u16,
    /// How long to watch the idle group
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = units::parse_duration)]
    idle: Duration,
    /// Requests before it is watched again
    #[arg(long, value_name = "N", default_value_t = 2000)]
    requests: u32,
}

/// A group at rest: means over its nodes.
#[derive(Debug, Serialize)]
struct Rest {
    /// CPU of a node for each second, in milliseconds.
    cpu_ms_per_second: f64,
    /// How often its threads went to sleep, for each second.
    sleeps_per_second: f64,
    rss_bytes: u64,
    pss_bytes: u64,
    /// The memory that is a node's alone.
    private_bytes: u64,
    threads: usize,
}

#[derive(Debug, Serialize)]
struct Report {
    nodes: u16,
    threshold: u16,
    /// Until all nodes take connections.
    listening_seconds: f64,
    first_answer_seconds: f64,
    /// CPU of all nodes until then.
    first_answer_cpu_seconds: f64,
    /// CPU of all nodes until the ledger has the dealer's keys.
    settled_cpu_seconds: f64,
    at_rest: Rest,
    requests: u32,
    /// After so many requests.
    at_rest_again: Option<Rest>,
}

impl Rest {
    fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let Self { cpu_ms_per_second, sleeps_per_second, threads, .. } = self;
        writeln!(
            out,
            "  CPU     {cpu_ms_per_second:.2} ms a second and node, {sleeps_per_second:.0} wake-ups a second, {threads} threads"
        )?;
        let [rss, pss, private] =
            [self.rss_bytes, self.pss_bytes, self.private_bytes].map(|bytes| units::Bytes(bytes).to_string());
        writeln!(out, "  memory  {rss} resident, {pss} of it its part (PSS), {private} its alone")
    }
}

impl Report {
    fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let Self { nodes, threshold, .. } = self;
        writeln!(out, "{nodes} nodes, any {threshold}")?;
        writeln!(
            out,
            "start     all listen after {:.2} s, first answer after {:.2} s and {:.2} s of CPU; {:.2} s of CPU until settled",
            self.listening_seconds, self.first_answer_seconds, self.first_answer_cpu_seconds, self.settled_cpu_seconds
        )?;
        writeln!(out, "at rest")?;
        self.at_rest.write(out)?;
        if let Some(again) = &self.at_rest_again {
            writeln!(out, "at rest after {} requests", self.requests)?;
            again.write(out)?;
        }
        Ok(())
    }
}

/// `theta-bench rest`.
pub(crate) fn run(args: &RestArgs, output: Output) -> Result<(), Failure> {
    let home = tempfile::Builder::new().prefix("theta-bench-").tempdir();
    let home = home.map_err(|error| Failure::writing(&std::env::temp_dir(), &error))?;
    let _unfinished = Unfinished::watch(home.path())?;
    let keys = plan::default_keys();
    let dealt = keys.len();
    let dir = home.path().join("group");
    let mut cluster =
        Cluster::create(this_program()?, &dir, &Plan::new(args.nodes, args.threshold, keys)?, Lifetime::Tied)?;
    let session = Session::open(&cluster.client_dir(), FIRST_ANSWER)?;
    let key = session.keyring().choose(None, Operation::Decapsulate.purpose())?;
    let pool = Arc::new(Pool::make(Operation::Decapsulate, &key, 1024, args.requests.max(1))?);

    let begin = Instant::now();
    cluster.start_all()?;
    session.block_on(cluster.listening(FIRST_ANSWER))?;
    let listening = begin.elapsed();
    session.block_on(first_answer(&session, &pool, begin))?;
    let (answered, pids) = (begin.elapsed(), cluster.pids());
    let first_answer_cpu_seconds = cpu_of_all(&pids);
    output::note(format_args!("first answer after {}", units::human(answered)));
    session.block_on(drive::settle(session.client(), dealt))?;
    std::thread::sleep(SETTLED);
    let settled_cpu_seconds = cpu_of_all(&pids);
    output::note(format_args!("watching the idle group for {}", units::human(args.idle)));
    let at_rest = watch(&pids, args.idle);
    let at_rest_again = match args.requests {
        0 => None,
        _ => {
            let run = session.block_on(drive::run(
                session.client(),
                &pool,
                Pace::Closed { workers: 16, batch: 1 },
                Duration::from_secs(3600),
            ))?;
            if let Some(error) = run.samples.iter().find_map(|sample| sample.error.clone()) {
                return Err(Failure::Failed(error));
            }
            std::thread::sleep(SETTLED);
            Some(watch(&pids, args.idle))
        }
    };
    let report = Report {
        nodes: args.nodes,
        threshold: args.threshold,
        listening_seconds: listening.as_secs_f64(),
        first_answer_seconds: answered.as_secs_f64(),
        first_answer_cpu_seconds,
        settled_cpu_seconds,
        at_rest,
        requests: args.requests,
        at_rest_again,
    };
    output.result(&report, |out| report.write(out))
}

/// Asks until the group answers.
async fn first_answer(session: &Session, pool: &Pool, begin: Instant) -> Result<(), Failure> {
    let jobs = pool.spare();
    for job in jobs.iter().cycle() {
        match time::timeout(ATTEMPT, job.clone().perform(session.client())).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) if begin.elapsed() > FIRST_ANSWER => return Err(error.into()),
            Err(_) if begin.elapsed() > FIRST_ANSWER => break,
            Ok(Err(_)) => time::sleep(Duration::from_millis(20)).await,
            Err(_) => {}
        }
    }
    Err(Failure::NoAnswer("the group does not get ready".to_owned()))
}

fn cpu_of_all(pids: &[(u16, u32)]) -> f64 {
    pids.iter().filter_map(|(_, pid)| theta_cluster::cpu_time(*pid)).map(|cpu| cpu.as_secs_f64()).sum()
}

/// What a thread has used since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    /// CPU, in nanoseconds.
    cpu: u64,
    /// How often it has given up its core by itself.
    sleeps: u64,
}

/// The threads of a process, by their ids. Those that have ended are missing.
fn threads(pid: u32) -> BTreeMap<String, Used> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let thread = |entry: fs::DirEntry| {
        let read = |file| fs::read_to_string(entry.path().join(file)).ok();
        let used = Used { cpu: parse_schedstat(&read("schedstat")?)?, sleeps: parse_sleeps(&read("status")?)? };
        Some((entry.file_name().into_string().ok()?, used))
    };
    entries.filter_map(thread).collect()
}

fn parse_schedstat(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

fn parse_sleeps(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

/// A field of `smaps_rollup`, in bytes.
fn parse_rollup(text: &str, fields: &[&str]) -> u64 {
    let kib = |field: &&str| {
        let line = text.lines().find_map(|line| line.strip_prefix(*field))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    fields.iter().filter_map(kib).sum::<u64>().saturating_mul(1024)
}

fn watch(pids: &[(u16, u32)], time: Duration) -> Rest {
    let all = || pids.iter().map(|(_, pid)| threads(*pid)).collect::<Vec<_>>();
    let (before, begin) = (all(), Instant::now());
    std::thread::sleep(time);
    let (after, took) = (all(), begin.elapsed().as_secs_f64());
    let mut used = Used::default();
    for (before, after) in before.iter().zip(&after) {
        for (thread, now) in after {
            let then = before.get(thread).copied().unwrap_or_default();
            used.cpu = used.cpu.saturating_add(now.cpu.saturating_sub(then.cpu));
            used.sleeps = used.sleeps.saturating_add(now.sleeps.saturating_sub(then.sleeps));
        }
    }
    let nodes = pids.len().max(1);
    let rollups: Vec<String> = pids
        .iter()
        .map(|(_, pid)| fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default())
        .collect();
    let mean = |fields: &[&str]| {
        let sum: u64 = rollups.iter().map(|text| parse_rollup(text, fields)).sum();
        sum.checked_div(u64::try_from(nodes).unwrap_or(1)).unwrap_or(0)
    };
    let count = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    let share = took * f64::from(u32::try_from(nodes).unwrap_or(1));
    Rest {
        cpu_ms_per_second: Duration::from_nanos(used.cpu).as_secs_f64() * 1e3 / share,
        sleeps_per_second: count(used.sleeps) / share,
        rss_bytes: mean(&["Rss:"]),
        pss_bytes: mean(&["Pss:"]),
        private_bytes: mean(&["Private_Clean:", "Private_Dirty:"]),
        threads: after.iter().map(BTreeMap::len).max().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        assert_eq!(parse_schedstat("123456 789 10\n"), Some(123_456));
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t42\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(parse_sleeps(status), Some(42));
        let rollup = "Rss:   20 kB\nPss:   8 kB\nPrivate_Clean:  1 kB\nPrivate_Dirty:  2 kB\n";
        assert_eq!(
            [parse_rollup(rollup, &["Pss:"]), parse_rollup(rollup, &["Private_Clean:", "Private_Dirty:"])],
            [8 << 10, 3 << 10]
        );
    }

    #[test]
    fn a_thread_that_works_is_seen() {
        let pid = std::process::id();
        let sum = || threads(pid).values().map(|used| used.cpu).sum::<u64>();
        // Other threads may have more of the processor, and what those that end have used is not counted any more.
        let (before, begin) = (sum(), std::time::Instant::now());
        while sum() <= before + 5_000_000 {
            assert!(begin.elapsed() < Duration::from_secs(30), "half a minute of work shows no 5 ms");
            std::hint::spin_loop();
        }
    }
}

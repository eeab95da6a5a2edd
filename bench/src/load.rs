//! `theta-bench load`.

use std::{
    num::{NonZeroU16, NonZeroU32},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use theta::{
    connect::{ClientArgs, Session},
    exit::Failure,
    group::plan::{self, KeySpec, Plan},
    interrupt::Unfinished,
    output::{self, Output},
    units,
};
use theta_cluster::{Cluster, Lifetime, this_program};
use theta_names::Delivery;

#[cfg(target_os = "linux")]
use super::wan;
use super::{
    drive::{self, Pace},
    process,
    report::{self, NodeUse, Report, Setting},
    requests::{Operation, Pool},
    rules::LocalRules,
    wan::Reach,
};

/// Options of `theta-bench load`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta-bench load --local                                  7 nodes, any 3
  theta-bench load --local --operation sign --rate 200      open loop: 200 requests a second
  theta-bench load --local --wan four-regions               the same group over Frankfurt, Sydney, Toronto, San Francisco
  theta-bench load --local --operation sign --slots --concurrency 1    what a slot certificate costs
  theta-bench load --local --record soon --concurrency 1               what waiting for the record costs
  theta-bench load --local --operation sign --key sign-ed25519 --burn-nonces    what burning nonces costs
  theta-bench load --local --nodes 31 --threshold 11 --delivery quorum  12 of 31 make shares
  theta-bench load --local --suite cks05-ed25519 --operation coin --delivery quorum    coins that two of seven combine
  theta-bench load --local --batch 32 --concurrency 2       32 requests in one call
  theta-bench load --local --suite sh00-pkcs1-sha256 --operation sign    RSA, whose key is dealt in about a minute
  theta-bench load --operation decrypt --size 16KiB --concurrency 32
  theta-bench load --pids $(pgrep -d, -f 'theta node run') --csv load.csv

Every request is another one (another ciphertext, message or coin), made before the clock starts. In the closed loop \
each of --concurrency workers sends its next request when the last is answered; in the open loop requests leave at \
--rate and latency counts from when each was due. CPU is user and system time of the nodes' processes, from /proc.")]
pub(crate) struct LoadArgs {
    /// Make a group of node processes for the measurement, and end it afterwards
    #[arg(long)]
    local: bool,
    /// How many nodes --local makes
    #[arg(long, value_name = "N", default_value_t = 7, requires = "local")]
    nodes: u16,
    /// How many of them it takes
    #[arg(long, value_name = "K", default_value_t = 3, requires = "local")]
    threshold: u16,
    /// Put --local's nodes and the client into networks of their own, with the delay, jitter, loss and rate of a profile of
    /// theta-wan between them: lan, regional, four-regions, continents, or a file
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "PROFILE", requires = "local")]
    wan: Option<String>,
    /// Who makes shares in the group that --local makes, where the key's suite has quorum mode: all or quorum
    #[arg(long, value_name = "all|quorum", default_value_t, requires = "local")]
    delivery: Delivery,
    /// Deal one key of this suite to the group that --local makes, and measure with it: sh00-pkcs1-sha256, ... [default: the demo's keys]
    #[arg(long, value_name = "SUITE", requires = "local", conflicts_with = "key")]
    suite: Option<KeySpec>,
    /// What to ask for
    #[arg(long, value_enum, default_value_t = Operation::Decapsulate)]
    operation: Operation,
    /// Name of the key [default: the usual one for the operation]
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Size of each plaintext or message
    #[arg(long, value_name = "SIZE", default_value = "1KiB")]
    size: units::Bytes,
    /// Requests a second, sent whether or not the earlier ones are answered
    #[arg(long, value_name = "N", conflicts_with = "concurrency")]
    rate: Option<NonZeroU32>,
    /// Requests under way at any time
    #[arg(long, value_name = "N", default_value = "16")]
    concurrency: NonZeroU32,
    /// Requests in one call, at most 256; each worker sends its next call when the last is answered
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "rate")]
    batch: NonZeroU16,
    /// How long to send
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::parse_duration)]
    duration: Duration,
    /// Requests to make ahead; without --rate, sending ends when they are used up
    #[arg(long, value_name = "N", default_value = "20000")]
    requests: NonZeroU32,
    /// Processes of the nodes on this machine, in the order of their numbers, to measure their CPU and memory
    #[arg(long, value_name = "PID", value_delimiter = ',', conflicts_with = "local")]
    pids: Vec<u32>,
    /// Write every request: its number, start, latency and result
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    #[command(flatten)]
    rules: LocalRules,
    #[command(flatten)]
    client: ClientArgs,
}

/// `theta-bench load`.
pub(crate) fn run(args: &LoadArgs, output: Output) -> Result<(), Failure> {
    if !args.local {
        let session = args.client.open()?;
        let pids: Vec<(u16, u32)> = (1..).zip(args.pids.iter().copied()).collect();
        return measure(args, &session, &pids, output);
    }
    #[cfg(target_os = "linux")]
    let reach = args.wan.as_deref().map(|profile| wan::lay_aloud(profile, args.nodes)).transpose()?;
    #[cfg(not(target_os = "linux"))]
    let reach: Option<Reach> = None;
    let home = tempfile::Builder::new().prefix("theta-bench-").tempdir();
    let home = home.map_err(|error| Failure::writing(&std::env::temp_dir(), &error))?;
    let _unfinished = Unfinished::watch(home.path())?;
    let keys = local_keys(args.suite.as_ref(), args.delivery)?;
    let dealt = keys.len();
    let plan = Plan::new(args.nodes, args.threshold, keys)?;
    let site = reach.unwrap_or(Reach::Here).site();
    let dir = home.path().join("group");
    let mut cluster = Cluster::create_at(site, this_program()?, &dir, &plan, Lifetime::Tied)?;
    args.rules.write(&cluster.node_dirs())?;
    cluster.start_all()?;
    let session = Session::open(&cluster.client_dir(), args.client.timeout())?;
    // A hundred nodes that begin at once on two cores take their time.
    session
        .block_on(cluster.listening(Duration::from_secs(30) + Duration::from_millis(500) * u32::from(args.nodes)))?;
    session.block_on(drive::settle(session.client(), dealt))?;
    measure(args, &session, &cluster.pids(), output)
}

/// The keys of the group that is made: one of this suite, or the demo's, those with this delivery that have it.
fn local_keys(suite: Option<&KeySpec>, delivery: Delivery) -> Result<Vec<KeySpec>, Failure> {
    let Some(key) = suite else {
        let delivered = |key: KeySpec| if key.suite().supports(delivery) { key.delivered(delivery) } else { Ok(key) };
        return plan::default_keys().into_iter().map(delivered).collect();
    };
    Ok(vec![key.clone().delivered(delivery)?])
}

fn measure(args: &LoadArgs, session: &Session, pids: &[(u16, u32)], output: Output) -> Result<(), Failure> {
    if args.batch.get() > 1 && args.operation == Operation::Decrypt {
        return Err(Failure::Usage("a batch asks for payload keys: --operation decapsulate".to_owned()));
    }
    let key = session
        .keyring()
        .choose(args.key.as_deref().or(args.suite.as_ref().map(KeySpec::name)), args.operation.purpose())?;
    let (count, pace) = match args.rate {
        Some(rate) => (requests_at(rate, args.duration), Pace::Open { rate: f64::from(rate.get()) }),
        None => (args.requests.get(), Pace::Closed { workers: args.concurrency.get(), batch: args.batch.get().into() }),
    };
    output::note(format_args!("making {count} requests"));
    let pool = Arc::new(Pool::make(args.operation, &key, args.size.0, count)?);
    session.block_on(drive::warm_up(session.client(), &pool))?;
    output::note(format_args!("{} with the key {} for {}", args.operation, key.name, units::human(args.duration)));

    let before: Vec<Option<Duration>> = pids.iter().map(|(_, pid)| theta_cluster::cpu_time(*pid)).collect();
    let own_before = theta_cluster::cpu_time(std::process::id());
    let run = session.block_on(drive::run(session.client(), &pool, pace, args.duration))?;
    let own = cpu_since(own_before, std::process::id());
    // Nodes whose answers were not needed may still be at work for the last requests.
    std::thread::sleep(Duration::from_millis(300));
    let used = |((node, pid), before): (&(u16, u32), Option<Duration>)| NodeUse {
        node: *node,
        pid: *pid,
        cpu: cpu_since(before, *pid),
        peak_memory_bytes: process::peak_memory(*pid),
    };
    let nodes: Vec<NodeUse> = pids.iter().zip(before).map(used).collect();

    if let Some(path) = &args.csv {
        report::write_csv(path, &run.samples)?;
    }
    let group = session.client().group();
    let setting = Setting { operation: args.operation, key: &key, size: args.size.0, group: &group, pace };
    let report = Report::new(&run, &setting, &nodes, own)?;
    output.result(&report, |out| report.write(out))?;
    if report.succeeded() == 0 {
        return Err(Failure::NoAnswer(format!("no request succeeded: {}", report.first_error())));
    }
    Ok(())
}

fn cpu_since(before: Option<Duration>, pid: u32) -> Option<Duration> {
    theta_cluster::cpu_time(pid)?.checked_sub(before?)
}

fn requests_at(rate: NonZeroU32, duration: Duration) -> u32 {
    let thousandths = u128::from(rate.get()).saturating_mul(duration.as_millis());
    u32::try_from(thousandths / 1000).unwrap_or(u32::MAX).max(1)
}

//! How many objects a second an issuer gets from five registries, each with a node and an agent.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Args;
use serde::Serialize;
use theta::{
    connect,
    exit::Failure,
    interrupt::told_to_end,
    output::{Output, Table},
};
use theta_cluster::{Show, this_program};

use crate::{
    in_a_directory,
    member::{Member, Origin},
    registries::{REGISTRIES, Registries, THRESHOLD},
};

/// The issuer's state.
const STATE: &str = "issued";
/// Keys of objects that are for manifests: of the anchor, and of the member.
const MANIFESTS: u16 = 2;
/// Agents let a file have 64 certificates that begin in a day, and an authority as many manifests.
const MOST_ROUNDS: u32 = 60;
/// What is to be renewed in a night (8,000 signatures on an average day, peaks of twenty times that), and how long a night is.
const NIGHTLY: u32 = 50_000;
const NIGHT: Duration = Duration::from_secs(8 * 3_600);
/// Port of addresses that nobody reads from here.
const PORT: u16 = 873;

/// Options of `theta-rpki-demo measure`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask real rpki                                with the release build
  theta-rpki-demo measure --roas 100 --keys 10         a part of it

All processes are on this machine and share its processors: what five machines would do in parallel is done one after the other here.
Each ROA has a key of its own, and keys of RSA take long to deal; so there are few, and they are renewed again and again, each time with
a new certificate, a new list of revoked certificates and a new manifest. Agents look at each thing, and their memories are written to the disk.")]
pub(crate) struct MeasureArgs {
    /// How many ROAs are made, in all rounds together
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=15_000))]
    roas: u32,
    /// How many different ones there are, each with a key; a round renews all of them, and there are 60 rounds at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=250))]
    keys: u16,
    /// Directory to make for the registries, which stays [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Measured {
    /// How many nodes there are, and how many of them sign.
    n: u16,
    k: u16,
    /// How many ROAs were made, in how many runs of the issuer.
    roas: u32,
    rounds: u32,
    /// How many signatures that took, those of manifests and lists among them.
    signatures: usize,
    /// How long, in milliseconds.
    took_ms: u64,
    roas_a_second: f64,
    signatures_a_second: f64,
    /// How long it would take to renew 50,000, in hours.
    nightly_hours: f64,
    /// How many a second it takes to do that in eight hours.
    nightly_roas_a_second: f64,
}

/// Measures, and prints a table.
pub(crate) fn run(args: &MeasureArgs, output: Output) -> Result<(), Failure> {
    let rounds = args.roas.div_ceil(args.keys.into());
    if rounds > MOST_ROUNDS {
        let least = args.roas.div_ceil(MOST_ROUNDS);
        let MeasureArgs { roas, keys, .. } = args;
        return Err(Failure::Usage(format!(
            "{roas} ROAs of {keys} keys are {rounds} rounds, of which agents permit {MOST_ROUNDS} in a day; say --keys {least} or more"
        )));
    }
    in_a_directory(args.dir.as_deref(), |dir| {
        let measured = connect::runtime()?.block_on(async {
            let told = told_to_end()?;
            tokio::select! {
                measured = measure(args.keys, rounds, dir, Show::new(output)) => measured,
                signal = told => Err(Failure::Interrupted(signal)),
            }
        })?;
        table(output, &measured)
    })
}

async fn measure(keys: u16, rounds: u32, dir: &Path, show: Show) -> Result<Measured, Failure> {
    show.act(format_args!("{REGISTRIES} registries, {THRESHOLD} of which sign; keys for {keys} ROAs are dealt"));
    let mut registries = Registries::create(&this_program()?, dir, keys.saturating_add(MANIFESTS))?;
    registries.start_nodes().await?;
    let member = Member::new()?;
    registries.write_data(&member, PORT)?;
    registries.start_agents().await?;
    let state = |number: u16| {
        let origin = Origin { network: number.into(), prefix: "192.0.2.0/24" };
        member.state(origin, true).map(|text| (format!("grant-{number}"), text))
    };
    registries.give_all(&(1..=keys).map(state).collect::<Result<Vec<_>, Failure>>()?).await?;
    show.act(format_args!("They are made, and renewed again and again: {rounds} times in all"));
    let (mut roas, mut took) = (0_u32, Duration::ZERO);
    for round in 0..rounds {
        if round > 0 {
            registries.lose_objects(STATE)?;
        }
        let began = Instant::now();
        let report = registries.issue(1, STATE)?;
        took = took.saturating_add(began.elapsed());
        if let Some(failure) = report.failures.first() {
            return Err(Failure::Failed(format!("{} is not signed: {}", failure.file, failure.reason)));
        }
        if report.objects != usize::from(keys) {
            return Err(Failure::Failed(format!("{} of {keys} ROAs were made", report.objects)));
        }
        roas = roas.saturating_add(keys.into());
    }
    Ok(measured((roas, rounds), registries.signatures(), took))
}

fn measured((roas, rounds): (u32, u32), signatures: usize, took: Duration) -> Measured {
    let seconds = took.as_secs_f64();
    let a_second = |count: u32| f64::from(count) / seconds;
    let roas_a_second = a_second(roas);
    Measured {
        n: REGISTRIES,
        k: THRESHOLD,
        roas,
        rounds,
        signatures,
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        roas_a_second,
        signatures_a_second: a_second(u32::try_from(signatures).unwrap_or(u32::MAX)),
        nightly_hours: f64::from(NIGHTLY) / roas_a_second / 3_600.0,
        nightly_roas_a_second: f64::from(NIGHTLY) / NIGHT.as_secs_f64(),
    }
}

fn table(output: Output, measured: &Measured) -> Result<(), Failure> {
    output.result(measured, |out| {
        writeln!(out)?;
        let Measured { n, k, roas, rounds, signatures, took_ms, .. } = measured;
        let mut table = Table::new(
            &["group", "ROAs", "rounds", "signatures", "took", "ROAs/s", "signatures/s"],
            &[1, 2, 3, 4, 5, 6],
        );
        table.row([
            format!("{k} of {n}"),
            roas.to_string(),
            rounds.to_string(),
            signatures.to_string(),
            format!("{took_ms} ms"),
            format!("{:.1}", measured.roas_a_second),
            format!("{:.1}", measured.signatures_a_second),
        ]);
        table.write(out)?;
        writeln!(
            out,
            "{NIGHTLY} ROAs renewed at this pace take {:.1} hours; in a night of 8 hours it takes {:.2} ROAs a second",
            measured.nightly_hours, measured.nightly_roas_a_second
        )
    })
}

//! How fast a real Knot DNS signs zones with keys of a group, beside the same Knot with SoftHSM and with keys in files, one after the other.

mod grid;
mod point;
mod signer;
mod stock;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use theta::{
    connect,
    exit::Failure,
    interrupt::told_to_end,
    output::{Output, Table},
};
use theta_cluster::{Show, this_program};

use self::grid::{Algorithm, Beside, Grid, GroupSize, LookAhead};

/// Options of `theta-dnssec-demo measure`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask real dns                                       with release builds, and all that it takes unpacked
  theta-dnssec-demo measure --names 1000 --groups 2of3       a part of it

All processes are on this machine and share its processors: what nodes, agents and name servers of several machines would take in
parallel is taken one after the other here. So CPU is said beside time. Agents take no part: what their consent costs is not in it. Where the
module looks ahead, this program tells it what follows, as theta-dnssec agent --look-ahead does.
A point that takes longer than --patience is said so, with what was signed by then, and is no failure.")]
pub(crate) struct MeasureArgs {
    /// How many names zones have, each with an address
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1_000])]
    names: Vec<usize>,
    /// The algorithms, as Knot calls them
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values_t = [Algorithm::Ecdsap256sha256, Algorithm::Ed25519])]
    algorithms: Vec<Algorithm>,
    /// The groups, as 2of3
    #[arg(long, value_name = "KofN", value_delimiter = ',', default_values_t = [GroupSize { k: 2, n: 2 }, GroupSize { k: 2, n: 3 }, GroupSize { k: 3, n: 5 }])]
    groups: Vec<GroupSize>,
    /// What is measured beside groups
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_values_t = [Beside::Softhsm, Beside::Files])]
    beside: Vec<Beside>,
    /// Whether the module has signed what Knot will ask for
    #[arg(long, value_name = "WHETHER", value_delimiter = ',', default_values_t = [LookAhead::Off, LookAhead::On])]
    look_ahead: Vec<LookAhead>,
    /// How many presignatures of ECDSA nodes keep for each key (nonces_per_peer) [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1_024))]
    presignatures: Option<u16>,
    /// How many signatures Knot asks for at once (signing-threads)
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// How many changes of one name are timed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    changes: u16,
    /// How long a zone may take to be signed, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    patience: u64,
    /// The PKCS#11 module [default: beside this program]
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
}

/// What came of one point.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// Who signs: a group as `2 of 3`, `softhsm` or `files`.
    pub(crate) signer: String,
    /// The algorithm.
    pub(crate) algorithm: String,
    /// Whether signatures were made before Knot asked for them.
    pub(crate) look_ahead: bool,
    /// How many names the zone has.
    pub(crate) names: usize,
    /// How many signatures are in it; those that were there when patience ended.
    pub(crate) signatures: usize,
    /// Why the zone is not signed; of one that is, `ldns-verify-zone` has found nothing wrong with it.
    pub(crate) objection: Option<String>,
    /// From the server's start until the zone is signed and written, in milliseconds.
    pub(crate) signed_ms: u64,
    /// Signatures in each second of that.
    pub(crate) a_second: f64,
    /// The median of what a change of one name takes, until it is signed and served, in milliseconds.
    pub(crate) change_ms: Option<f64>,
    /// Why there was no change, if the zone was signed.
    pub(crate) no_change: Option<String>,
    /// CPU of a node for a signature, of the zone and of changes, in microseconds.
    pub(crate) node_us: Option<f64>,
}

/// Measures, and prints a table.
pub(crate) fn run(args: &MeasureArgs, output: Output) -> Result<(), Failure> {
    let grid = Grid { args, program: this_program()?, show: Show::new(output) };
    let rows = connect::runtime()?.block_on(async {
        let told = told_to_end()?;
        tokio::select! {
            measured = grid.measure() => measured,
            signal = told => Err(Failure::Interrupted(signal)),
        }
    })?;
    table(output, &rows)
}

fn table(output: Output, rows: &[Row]) -> Result<(), Failure> {
    output.result(&rows, |out| {
        writeln!(out)?;
        let columns = [
            "signed by",
            "algorithm",
            "look-ahead",
            "names",
            "signatures",
            "zone signed",
            "signatures/s",
            "one change",
            "CPU a node",
        ];
        let mut table = Table::new(&columns, &[3, 4, 5, 6, 7, 8]);
        for row in rows {
            let zone = if row.objection.is_none() { format!("{} ms", row.signed_ms) } else { "no".to_owned() };
            let shown = |value: Option<f64>, unit: &str| {
                value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1} {unit}"))
            };
            table.row([
                row.signer.clone(),
                row.algorithm.clone(),
                if row.look_ahead { "on" } else { "off" }.to_owned(),
                row.names.to_string(),
                row.signatures.to_string(),
                zone,
                format!("{:.0}", row.a_second),
                shown(row.change_ms, "ms"),
                shown(row.node_us, "us"),
            ]);
        }
        table.write(out)
    })
}

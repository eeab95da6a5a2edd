//! How fast a real Knot DNS signs zones with keys of a group, beside the same Knot with SoftHSM and with keys in files, one after the other.

mod agents;
mod grid;
mod point;
mod rows;
mod signer;
mod stock;

use std::{
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use theta::{connect, exit::Failure, interrupt::told_to_end, output::Output};
use theta_cluster::this_program;
use tokio::{sync::mpsc, time::sleep};

use self::{
    grid::{Algorithm, Asking, Beside, Grid, GroupSize, LookAhead},
    rows::Rows,
};

/// Options of `theta-dnssec-demo measure`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask real dns                                       with release builds, and all that it takes unpacked
  theta-dnssec-demo measure --names 1000 --groups 2of3       a part of it
  theta-dnssec-demo measure --agents off,on --look-ahead off --groups 2of3     what consent by content costs

All processes are on this machine and share its processors: what nodes, agents and name servers of several machines would take in
parallel is taken one after the other here. So CPU is said beside time. With --agents on each node asks an agent, which has a copy of the zone of
its own, before it takes part in a signature; with off, the default, nodes sign whatever the name server asks for. Where the module looks ahead,
this program tells it what follows, as theta-dnssec agent --look-ahead does.
Each point is a line as soon as it is there (with --json an object), and Ctrl-C keeps those that are. One that takes longer than --patience is said so,
with what was signed by then, and is no failure. After one that fails the next is measured all the same, and the command fails in the end.")]
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
    /// Whether each node asks an agent beside it about all that is signed
    #[arg(long, value_name = "WHETHER", value_delimiter = ',', default_values_t = [Asking::Off])]
    agents: Vec<Asking>,
    /// How many presignatures of ECDSA nodes keep for each key (nonces_per_peer) [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1_024))]
    presignatures: Option<u16>,
    /// How many signatures Knot asks for at once (signing-threads)
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// How many changes of one name are timed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    changes: u16,
    /// How long a zone may take to be signed, in seconds [default: 300, and one more for every 25 names]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    patience: Option<u64>,
    /// The PKCS#11 module [default: beside this program]
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
}

/// How many names are signed in a second at least: two signatures each, and slow groups make a hundred and more.
const NAMES_A_SECOND: usize = 25;
/// What the start of the server may take, and what it signs whatever the names are.
const BASE: Duration = Duration::from_secs(300);
/// How long it may take to end what is being measured.
const END: Duration = Duration::from_secs(5);
/// How often it is looked whether it has ended.
const GLANCE: Duration = Duration::from_millis(50);

impl MeasureArgs {
    /// How long a zone of so many names may take to be signed.
    fn patience(&self, names: usize) -> Duration {
        let of_names = || u64::try_from(names / NAMES_A_SECOND).map_or(Duration::MAX, Duration::from_secs);
        self.patience.map_or_else(|| BASE.saturating_add(of_names()), Duration::from_secs)
    }
}

/// Measures in a thread of its own, prints each point as it comes, and a table at the end; of what there is, if a signal ends it.
pub(crate) fn run(args: MeasureArgs, output: Output) -> Result<(), Failure> {
    let made = tempfile::Builder::new().prefix("theta-dnssec-").tempdir();
    let folder = made.map_err(|error| Failure::writing(&std::env::temp_dir(), &error))?;
    let mut rows = Rows::new(output);
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let grid = Grid::new(args, this_program()?, folder.path().to_owned(), output, sender);
    let ended = connect::runtime()?.block_on(async {
        let told = told_to_end()?;
        tokio::pin!(told);
        let measuring = thread::spawn(move || grid.measure());
        loop {
            tokio::select! {
                // Ctrl-C ends the name server and the nodes, too, which must not become a row.
                biased;
                signal = &mut told => {
                    // Whoever measures ends with the next point, if not at once since its processes do.
                    drop(receiver);
                    let deadline = Instant::now() + END;
                    while !measuring.is_finished() && Instant::now() < deadline {
                        sleep(GLANCE).await;
                    }
                    return Err(Failure::Interrupted(signal));
                }
                row = receiver.recv() => match row {
                    Some(row) => rows.add(row)?,
                    None => break,
                },
            }
        }
        measuring.join().map_err(|_| Failure::internal("whoever measures has ended"))?
    });
    // What was measured is of use whatever became of the rest.
    rows.table()?;
    ended?;
    rows.outcome()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Words {
        #[command(flatten)]
        args: MeasureArgs,
    }

    #[test]
    fn patience_grows_with_the_zone_unless_it_is_said() {
        let patience = |words: &[&str], names| Words::parse_from([&["measure"], words].concat()).args.patience(names);
        assert_eq!([20, 1_000, 100_000].map(|names| patience(&[], names).as_secs()), [300, 340, 4_300]);
        assert_eq!([20, 100_000].map(|names| patience(&["--patience", "7"], names).as_secs()), [7, 7]);
        assert_eq!(patience(&[], usize::MAX).as_secs(), 300 + u64::MAX / 25);
    }
}

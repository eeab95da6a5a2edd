//! `theta group`: how groups begin, and how their members change.

mod deal;
mod layout;
pub(crate) mod permissions;
pub mod plan;

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use serde::Serialize;

pub(crate) use self::deal::{DEFAULT_BITS, DealtKey, ExistingGroup, ModulusArgs, deal, one_secret};
pub use self::layout::create;
use self::plan::{KeySpec, Plan};
use crate::{
    exit::Failure,
    founding, members,
    output::{self, Output},
    vault::SealWord,
};

/// See [`crate::cli`].
#[derive(Debug, Subcommand)]
pub(crate) enum GroupCommand {
    /// Write the directories of a new group: one for each node, one for clients
    Init(InitArgs),
    /// Put a group together from the cards of its members, who need not trust each other
    Assemble(founding::AssembleArgs),
    /// Show who founds a group, and the fingerprint that all members compare; or what a card says
    Show(founding::ShowArgs),
    /// Take a new member into the running group
    Add(Box<members::AddArgs>),
    /// Put another machine in a member's place: by its operator's signature, or as the others agree
    Replace(Box<members::ReplaceArgs>),
    /// Bring members' new cards: other addresses, another TLS key
    #[command(visible_alias = "readdress")]
    Renew(Box<members::RenewArgs>),
    /// Let a member go, which holds no share any more
    Remove(Box<members::RemoveArgs>),
    /// Take back a change of the members that waits, or to which some have agreed already
    Cancel(Box<members::CancelArgs>),
    /// Bring a warrant that operators have signed, and wait until its machines are in their places
    Bring(Box<members::BringArgs>),
    /// Let another machine vote in the place of one that is gone for ever, in a small group such as 2 of 3: what its operators sign
    #[command(subcommand)]
    Warrant(Box<members::WarrantCommand>),
}

const AFTER_HELP: &str = "\
Examples:
  theta group init
  theta group init --nodes 7 --threshold 3 --dir my-group
  theta group init --keys files=sg02-ristretto255,sign=bls04-bls12381-min-pk
  theta group init --keys release=frost-ed25519,rsa=sh00-pkcs1-sha256 --bits 3072
  theta group init --nodes 3 --host 10.0.0.1,10.0.0.2,10.0.0.3
  theta group init --no-keys                          then, with the nodes running: theta keys create release=frost-ed25519
  THETA_SEAL='correct horse ...' theta group init --seal env:THETA_SEAL

How many: any K act together, so K - 1 may lie or be stolen, and N - K may be lost before the keys are. Requests go on while K answer. Changes \
(new keys, reshares, members) take more of them, so that liars cannot decide two things at once:

   N   K   may lie   may be lost   changes go on with   may be away then
   2   2         1             0                    2                  0
   3   2         1             1                    3                  0
   4   2         1             2                    3                  1
   5   2         1             3                    4                  1
   4   3         2             1                    4                  0
   5   3         2             2                    5                  0
   6   3         2             3                    5                  1
   7   3         2             4                    5                  2
  10   4         3             6                    7                  3

So with N of 3K - 2 or more, K - 1 that are away or lie stop nothing: the default is 4, any 2. With N = K, one lost machine is the end of the keys.

For one machine, or one owner: where the nodes belong to several, each makes its own (theta node init). It writes group.toml (public, the same for all), node-1, node-2, ... (secret, one for each machine) and client (its certificate \
and the key that it signs with), and operators (a key for each node's operator, secret, to be kept off the nodes). Each node has a sealed store (theta.redb), what opens it (store.key, unless --seal says \
otherwise: file:PATH is in each node's directory, passphrase-file:PATH, env:NAME, credential:NAME of systemd), and its own copy \
of policy.toml, which lets that client do everything. With --keys, and by default, this process deals the keys and has seen \
them all: run it where you would keep them, and remove the node directories from there once they are at their nodes. \
Keys that nobody has ever seen are made by the nodes: theta keys create.";

/// Options of `theta group init`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct InitArgs {
    /// How many nodes there are
    #[arg(long, value_name = "N", default_value_t = 4)]
    nodes: u16,
    /// How many of them it takes
    #[arg(long, value_name = "K", default_value_t = 2)]
    threshold: u16,
    /// Directory to make
    #[arg(long, value_name = "DIR", default_value = "theta-group")]
    dir: PathBuf,
    /// Address of all nodes, or a comma-separated list with one for each
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_delimiter = ',', value_parser = plan::parse_host)]
    host: Vec<IpAddr>,
    /// Node i listens on the ports BASE + 10 i (nodes), + 1 (clients) and + 2 (metrics, on loopback)
    #[arg(long, value_name = "BASE", default_value_t = 7100)]
    base_port: u16,
    /// Keys to deal, each a SUITE or NAME=SUITE [default: the usual ones; theta suites lists all]
    #[arg(long, value_name = "KEY", value_delimiter = ',', default_values_t = plan::default_keys(), hide_default_value = true)]
    keys: Vec<KeySpec>,
    /// Deal no keys: theta keys create makes them without a dealer
    #[arg(long, conflicts_with_all = ["keys", "bits"])]
    no_keys: bool,
    #[command(flatten)]
    modulus: ModulusArgs,
    /// How the nodes' stores are sealed: file:PATH, passphrase-file:PATH, env:NAME or credential:NAME
    #[arg(long, value_name = "SEALING", default_value_t)]
    seal: SealWord,
}

#[derive(Serialize)]
struct Made<'a> {
    directory: &'a Path,
    nodes: u16,
    threshold: u16,
    keys: Vec<KeyMade<'a>>,
    client: PathBuf,
}

#[derive(Serialize)]
struct KeyMade<'a> {
    name: &'a str,
    suite: &'a str,
}

impl GroupCommand {
    /// Runs the command.
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::Init(args) => init(args, output),
            Self::Assemble(args) => founding::assemble(&args, output),
            Self::Show(args) => founding::show(&args, output),
            Self::Add(args) => members::add(&args, output),
            Self::Replace(args) => members::replace(&args, output),
            Self::Renew(args) => members::renew(&args, output),
            Self::Remove(args) => members::remove(&args, output),
            Self::Cancel(args) => members::cancel(&args, output),
            Self::Bring(args) => members::bring(&args, output),
            Self::Warrant(command) => command.run(output),
        }
    }
}

fn init(args: InitArgs, output: Output) -> Result<(), Failure> {
    let keys = if args.no_keys { Vec::new() } else { args.keys };
    let bits = args.modulus.bits(&keys)?;
    let seal = args.seal.made_absolute()?;
    let plan = Plan::new(args.nodes, args.threshold, keys)?.with_modulus_bits(bits).with_seal(seal);
    let addresses = plan::addresses(args.nodes, &args.host, args.base_port)?;
    for key in plan.keys().iter().filter(|key| key.delivery().has_dishonest_majority()) {
        plan::note_of_majority(&format!("key {}", key.name()));
    }
    create(&args.dir, &plan, &addresses)?;
    let made = Made {
        directory: &args.dir,
        nodes: plan.nodes(),
        threshold: plan.threshold(),
        keys: plan.keys().iter().map(|key| KeyMade { name: key.name(), suite: key.suite().name() }).collect(),
        client: args.dir.join("client"),
    };
    output.result(&made, |out| {
        let dir = args.dir.display();
        writeln!(out, "made a group of {} nodes, any {} of which act together, in {dir}", made.nodes, made.threshold)?;
        if let Some(warning) = plan.warning() {
            writeln!(out, "{warning}")?;
        }
        if plan.keys().is_empty() {
            writeln!(out, "\nIt has no keys yet. With the nodes running: theta keys create release=frost-ed25519")?;
        } else {
            let mut table = output::Table::new(&["key", "suite", "purpose"], &[]);
            for key in plan.keys() {
                table.row([key.name().to_owned(), key.suite().to_string(), key.suite().purpose().to_string()]);
            }
            table.write(out)?;
            writeln!(
                out,
                "\nThis process dealt the keys, so it has seen them all: trust this machine, or make keys that nobody has seen \
                 with theta keys create."
            )?;
        }
        writeln!(out, "\nNext:")?;
        writeln!(out, "  theta node run --dir {dir}/node-1        (and each other node, in a terminal of its own)")?;
        writeln!(out, "  theta status --client {dir}/client")?;
        writeln!(
            out,
            "  theta encrypt FILE --client {dir}/client && theta decrypt FILE.theta --client {dir}/client -o -"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::AFTER_HELP;

    /// What the help says of small groups follows from what the ledger takes.
    #[test]
    fn the_help_says_how_many_may_be_away() {
        let numbers = |line: &str| line.split_whitespace().map(str::parse).collect::<Result<Vec<usize>, _>>().ok();
        let table: Vec<Vec<usize>> = AFTER_HELP.lines().filter_map(numbers).filter(|line| !line.is_empty()).collect();
        assert_eq!(table.len(), 9);
        for line in table {
            let [n, k, may_lie, may_be_lost, change, away] = line[..] else { panic!("{line:?}") };
            let quorum = theta_ledger::quorum(n, k - 1);
            assert_eq!((may_lie, may_be_lost, change, away), (k - 1, n - k, quorum, n - quorum), "{n} {k}");
        }
    }

    #[test]
    fn so_many_that_liars_who_stay_away_stop_nothing() {
        for k in 2..40 {
            for n in k..4 * k {
                let stops = n - theta_ledger::quorum(n, k - 1) < k - 1;
                assert_eq!(stops, n < 3 * k - 2, "{n} {k}");
            }
        }
    }
}

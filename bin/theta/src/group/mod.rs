//! `theta group`: the directories of a new group.

mod deal;
mod layout;
pub(crate) mod plan;

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use serde::Serialize;

use self::plan::{KeySpec, Plan};
pub(crate) use self::{
    deal::{DealtKey, ExistingGroup, ModulusArgs, deal},
    layout::create,
};
use crate::{
    exit::Failure,
    output::{self, Output},
};

/// See [`crate::cli`].
#[derive(Debug, Subcommand)]
pub(crate) enum GroupCommand {
    /// Write the directories of a new group: one for each node, one for clients
    Init(InitArgs),
}

const AFTER_HELP: &str = "\
Examples:
  theta group init
  theta group init --nodes 7 --threshold 3 --dir my-group
  theta group init --keys files=sg02-ristretto255,sign=bls04-bls12381-min-pk
  theta group init --keys release=frost-ed25519,rsa=sh00-pkcs1-sha256 --bits 3072
  theta group init --nodes 3 --host 10.0.0.1,10.0.0.2,10.0.0.3

It writes group.toml (public, the same for all), node-1, node-2, ... (secret, one for each machine) and client (the \
certificate that the nodes accept requests from). The process that runs it has seen every key: run it where you would \
keep them, and remove the node directories from there once they are at their nodes.";

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
    #[command(flatten)]
    modulus: ModulusArgs,
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
    /// Does it.
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::Init(args) => init(args, output),
        }
    }
}

fn init(args: InitArgs, output: Output) -> Result<(), Failure> {
    let bits = args.modulus.bits(&args.keys)?;
    let plan = Plan::new(args.nodes, args.threshold, args.keys)?.with_modulus_bits(bits);
    let addresses = plan::addresses(args.nodes, &args.host, args.base_port)?;
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
        let mut table = output::Table::new(&["key", "suite", "purpose"], &[]);
        for key in plan.keys() {
            table.row([key.name().to_owned(), key.suite().to_string(), key.suite().purpose().to_string()]);
        }
        table.write(out)?;
        writeln!(
            out,
            "\nThis process dealt the keys, so it has seen them all: trust this machine, or do not use them."
        )?;
        writeln!(out, "\nNext:")?;
        writeln!(out, "  theta node run --dir {dir}/node-1        (and each other node, in a terminal of its own)")?;
        writeln!(out, "  theta status --client {dir}/client")?;
        writeln!(
            out,
            "  theta encrypt FILE --client {dir}/client && theta decrypt FILE.theta --client {dir}/client -o -"
        )
    })
}

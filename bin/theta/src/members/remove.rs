//! `theta group remove`.

use clap::Args;
use theta_ledger::MemberChange;

use super::AskArgs;
use crate::{exit::Failure, output::Output};

/// Options of `theta group remove`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys reshare release --holders 1,2,3,5 && theta group remove 4

A member that holds a share is not removed: reshare each of its keys first, to holders without it. Its number is not given again. As many \
members as decide have to agree, each by its own policy (group.change), and so many must be left as it takes to act. Destroy the machine's directory and its backups afterwards: its \
shares are worthless after the reshares, and its key of ceremonies must not speak for the group of before.")]
pub(crate) struct RemoveArgs {
    /// The member's number
    #[arg(value_name = "NODE", value_parser = clap::value_parser!(u16).range(1..))]
    node: u16,
    #[command(flatten)]
    ask: AskArgs,
}

/// Lets a member go.
pub(crate) fn remove(args: &RemoveArgs, output: Output) -> Result<(), Failure> {
    let session = args.ask.open()?;
    let change = MemberChange::Remove { node: args.node };
    let changed = args.ask.change(&session, (&change, Vec::new()), &format!("removing node {}", args.node))?;
    changed.report(output, "is no member any more", &["stop the machine, and destroy its directory".to_owned()])
}

//! `theta group assemble`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use theta_ledger::founding::{Card, Founding};
use theta_names::WallTime;

use super::{MemberView, member_table, members, note_of_size, read_cards, warn_of_lookalikes};
use crate::{exit::Failure, files::write_new, output::Output};

/// Options of `theta group assemble`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta group assemble --name payments --threshold 2 alpha.card beta.card gamma.card delta.card
  theta group assemble --name payments --threshold 2 all-cards.txt --out payments.founding

It checks the cards and puts them together. The founding is the same to the last byte whoever makes it and in whatever order the \
cards are named; nodes are numbered in the order of their names. Send it to all, or let each make it. Then all compare its \
fingerprint by telephone, with voices that they know, since whoever carries the cards could have exchanged one.")]
pub(crate) struct AssembleArgs {
    /// What the group is called: 1 to 64 of a-z A-Z 0-9 . _ -
    #[arg(long, value_name = "NAME")]
    name: String,
    /// How many of the nodes it takes to act
    #[arg(long, value_name = "K")]
    threshold: u16,
    /// The founding to write [default: NAME.founding]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The cards of all members; a file may hold several
    #[arg(required = true, value_name = "CARD")]
    cards: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Assembled<'a> {
    file: PathBuf,
    group: &'a str,
    threshold: u16,
    fingerprint: String,
    members: Vec<MemberView>,
}

/// Puts a group together.
pub(crate) fn assemble(args: &AssembleArgs, output: Output) -> Result<(), Failure> {
    let mut cards = Vec::new();
    for file in &args.cards {
        cards.extend(read_cards(file)?);
    }
    let usage = |error: theta_ledger::founding::FoundingError| Failure::Usage(error.to_string());
    let founding = Founding::assemble(&args.name, args.threshold, cards).map_err(usage)?;
    founding.check_time(WallTime::now().seconds()).map_err(usage)?;
    warn_of_lookalikes(founding.members().iter().map(Card::name));
    let file = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.founding", args.name)));
    if file.symlink_metadata().is_ok() {
        let file = file.display();
        return Err(Failure::Usage(format!(
            "{file} exists already, and is left as it is: name another with --out, or remove it if no member has joined with it"
        )));
    }
    write_new(&file, founding.to_text().as_bytes(), false)?;
    let assembled = Assembled {
        file,
        group: founding.name(),
        threshold: founding.threshold(),
        fingerprint: founding.fingerprint().to_string(),
        members: members(&founding),
    };
    output.result(&assembled, |out| {
        let file = assembled.file.display();
        let n = assembled.members.len();
        let note = note_of_size(assembled.threshold, u16::try_from(n).unwrap_or(u16::MAX));
        writeln!(out, "the group {}: {n} nodes, any {} of which act together\n", args.name, assembled.threshold)?;
        member_table(&assembled.members).write(out)?;
        if let Some(note) = note {
            writeln!(out, "\n{note}")?;
        }
        writeln!(out, "\nIts fingerprint:\n\n  {}\n", assembled.fingerprint)?;
        writeln!(out, "Next:")?;
        writeln!(out, "  send {file} to all members")?;
        writeln!(out, "  compare the fingerprint aloud, with voices that you know; all thirteen groups of it")?;
        writeln!(out, "  theta node join --dir DIR {file} --fingerprint ...      at each node, with what was said")
    })
}

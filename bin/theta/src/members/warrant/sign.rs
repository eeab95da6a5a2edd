//! `theta group warrant sign`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use theta_ledger::{SigningRefusal, Warrant};
use theta_names::WallTime;

use super::{
    super::{LedgerArgs, in_words, memory::Memory, operator},
    read_warrant,
    view::{WarrantView, why},
};
use crate::{access::confirm, connect, exit::Failure, files::Target, output::Output};

/// Options of `theta group warrant sign`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta group warrant sign payments-node-3.warrant --as alpha.operator --first-use
  theta group warrant sign payments-node-3.warrant --as alpha.operator --ledger payments.ledger --fingerprint 'XEVM 0ACS ...'

It shows what the warrant allows, asks, and adds your signature to the file. With --ledger it takes no network: bring what theta ledger \
export wrote, and the fingerprint that all members compared.

Sign when the operator of each machine has told you, with a voice that you know, that it is gone for ever with its keys, and has read \
to you the key of the machine in its place: it says so as a member, and a member that says two things is one that lies. Beside your \
key, in KEY.signed, it is remembered what the key has signed. It signs nothing that could let too many machines in \
besides: take the file along when you copy the key. Where there is none yet, say with --first-use that the key has signed nothing.")]
pub(crate) struct SignArgs {
    /// The warrant, or copies of it; the first is written with your signature
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The operator's key, as theta node init wrote it
    #[arg(long = "as", value_name = "KEY")]
    key: PathBuf,
    /// Where to write the warrant with your signature [default: in the place of the first FILE]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The key has never signed anything: there is nothing beside it yet that remembers
    #[arg(long)]
    first_use: bool,
    /// Sign without being asked
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    ledger: LedgerArgs,
}

#[derive(Serialize)]
struct Signed {
    file: PathBuf,
    /// The member whose operator has signed now.
    operator_of: u16,
    #[serde(flatten)]
    warrant: WarrantView,
}

/// Signs a warrant.
pub(super) fn sign(args: &SignArgs, output: Output) -> Result<(), Failure> {
    let first = args.files.first().map(PathBuf::as_path);
    let target = Target::choose(args.output.as_deref().or(first), None)?;
    target.check_json(output.json())?;
    let checked = args.ledger.read()?;
    let state = &checked.state;
    let warrant = read_warrant(&args.files, state)?;
    let key = operator::read(&args.key)?;
    let id = key.id().map_err(Failure::internal)?;
    // From here on nobody else signs with this key, until the signature is remembered.
    let mut memory = Memory::open(&args.key, &id, args.first_use)?;
    warrant
        .check_end(WallTime::now().seconds())
        .map_err(|refusal| Failure::Failed(format!("nothing was signed: {refusal}")))?;
    let node = state.check_signing(&id, &warrant, memory.warrants()).map_err(|refusal| refused(&args.key, &refusal))?;
    show(&WarrantView::new(state, &warrant), &in_words(state, node))?;
    confirm(args.yes, "Sign?")?;
    let gone: Vec<u16> = warrant.stand_ins().iter().map(|stand_in| stand_in.node.get()).collect();
    let what = format!("a warrant for {} of the group {}", connect::nodes(&gone), state.group());
    memory.remember_warrant(&warrant, state.height(), what)?;
    let warrant: Warrant = warrant.with_signature(node, &key);
    target.write(warrant.to_text().as_bytes(), false)?;
    if target == Target::Stdout {
        return Ok(());
    }
    let signed = Signed { file: target.name(), operator_of: node.get(), warrant: WarrantView::new(state, &warrant) };
    output.result(&signed, |out| {
        let file = signed.file.display();
        writeln!(out, "signed as the operator of {}, and wrote {file}", in_words(state, node))?;
        match signed.warrant.missing() {
            Some((missing, others)) => {
                let others = connect::nodes(others);
                writeln!(out, "it takes {missing} more, of the operators of {others}: send it to them")
            }
            None => writeln!(out, "enough have signed: theta group bring {file}"),
        }
    })
}

fn refused(key: &Path, refusal: &SigningRefusal) -> Failure {
    match refusal {
        SigningRefusal::Warrant(refusal) => Failure::Failed(format!("nothing was signed: {}", why(refusal))),
        SigningRefusal::NoOperator => Failure::Usage(format!("{}: {refusal}", key.display())),
        refusal => Failure::Failed(format!("nothing was signed: {refusal}")),
    }
}

/// Shows on standard error what is signed, and what the operator must be sure of.
fn show(view: &WarrantView, as_whom: &str) -> Result<(), Failure> {
    let mut text = Vec::new();
    view.write_terms(&mut text).map_err(Failure::internal)?;
    crate::output::note(format_args!("As the operator of {as_whom} you sign {}", String::from_utf8_lossy(&text)));
    crate::output::note(
        "Be sure that the operator of each machine has told you, with a voice that you know, that it is gone for ever, and has read to you \
         the key of the one instead: all digits of it.",
    );
    Ok(())
}

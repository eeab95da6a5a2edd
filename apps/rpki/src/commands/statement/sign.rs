//! `theta-rpki statement sign`.

use std::path::PathBuf;

use clap::Args;
use theta_rpki::statements::Statement;

use super::{
    super::{
        failure::Failure,
        files, known,
        signer::Signer,
        tally::Tally,
        terminal::{Form, confirm, note},
    },
    report::{Report, Words},
};

/// Options of `theta-rpki statement sign`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta-rpki statement sign --key ben.key 7.toml
  theta-rpki statement sign --key ben.key --registry registry.toml 7.toml

It shows what is signed and asks, and adds the signature to the file. With the registry's data it also checks that the key is the member's, that
the member holds what the statement is about, and says how many signatures are missing.")]
pub(crate) struct SignArgs {
    /// The private key: Ed25519, PEM
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The registry's data, to check against
    #[arg(long, value_name = "FILE")]
    registry: Option<PathBuf>,
    /// Sign without being asked
    #[arg(long)]
    yes: bool,
    /// The statement; the signature is added to it
    #[arg(value_name = "STATEMENT")]
    statement: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// `theta-rpki statement sign`.
pub(super) fn sign(args: &SignArgs) -> Result<(), Failure> {
    let path = &args.statement;
    let text = files::read(path)?;
    let wrong = |reason| Failure::Statement { path: path.clone(), reason };
    let (statement, signatures) = Statement::parse(&text).map_err(wrong)?;
    let (signer, bytes) = (Signer::open(&args.key)?, statement.signed_bytes());
    let registry = args.registry.as_deref().map(known::registry).transpose()?;
    if let Some(registry) = &registry {
        known::check_statement(&text, path, registry)?;
    }
    // Checked just now: a member it is.
    let member = registry.as_ref().and_then(|registry| registry.members.get(&statement.member));
    if let Some(member) = member {
        signer.belongs_to(&member.keys, &statement.member)?;
    }
    let key = signer.digits().to_owned();
    if signer.has_signed(&bytes, &signatures) {
        return Err(Failure::Repeated { path: path.clone(), key });
    }
    note(format_args!("You sign that {}with the key {key}", Words(&statement)));
    if registry.is_none() {
        note("Whose key it is, and whether the member holds what this is about, is not checked: --registry does");
    }
    confirm(args.yes)?;
    let signed = signer.append(&text, &bytes);
    let read = Statement::parse(&signed)
        .ok()
        .filter(|(read, signatures)| *read == statement && signer.has_signed(&bytes, signatures));
    let (_, signatures) = read.ok_or_else(|| Failure::Append(path.clone()))?;
    files::replace(path, signed.as_bytes())?;
    let keys = member.map(|member| Tally::of(&member.keys, &bytes, &signatures));
    let report = Report::new(path, &statement, keys);
    args.form.answer(&report, &report.words(format_args!("added the signature to {}\n", path.display())))
}

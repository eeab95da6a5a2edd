//! `theta-rpki override sign`.

use std::path::PathBuf;

use clap::Args;

use super::{
    super::{
        failure::Failure,
        files, known,
        signer::Signer,
        tally::Tally,
        terminal::{Form, confirm, note},
    },
    check,
    report::{Report, Words},
};

/// Options of `theta-rpki override sign`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  theta-rpki override sign --registry registry.toml --key ben.key acme.toml

It shows what is permitted and asks, and adds the signature to the file.")]
pub(crate) struct SignArgs {
    /// The registry's data, which name the operators
    #[arg(long, value_name = "FILE")]
    registry: PathBuf,
    /// The operator's private key: Ed25519, PEM
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Sign without being asked
    #[arg(long)]
    yes: bool,
    /// The override; the signature is added to it
    #[arg(value_name = "OVERRIDE")]
    file: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// `theta-rpki override sign`.
pub(super) fn sign(args: &SignArgs) -> Result<(), Failure> {
    let (path, registry) = (&args.file, known::registry(&args.registry)?);
    let text = files::read(path)?;
    let checked = check(&text, path, &registry)?;
    let (signer, bytes) = (Signer::open(&args.key)?, checked.what.signed_bytes());
    signer.belongs_to(checked.operators, "the operators")?;
    let key = signer.digits().to_owned();
    if signer.has_signed(&bytes, &checked.signatures) {
        return Err(Failure::Repeated { path: path.clone(), key });
    }
    note(format_args!("You sign that {}with the key {key}", Words(&checked.what)));
    confirm(args.yes)?;
    let signed = signer.append(&text, &bytes);
    let read = check(&signed, path, &registry)
        .ok()
        .filter(|read| read.what == checked.what && signer.has_signed(&bytes, &read.signatures));
    let read = read.ok_or_else(|| Failure::Append(path.clone()))?;
    files::replace(path, signed.as_bytes())?;
    let report = Report::new(path, &read.what, Tally::of(read.operators, &bytes, &read.signatures));
    args.form.answer(&report, &report.words(format_args!("added the signature to {}\n", path.display())))
}

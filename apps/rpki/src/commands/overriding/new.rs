//! `theta-rpki override new`.

use std::path::PathBuf;

use clap::Args;

use super::{
    super::{failure::Failure, known, moment::Moment, terminal::Form},
    report::{Report, Words},
    text::{self, Text},
    write,
};

/// Options of `theta-rpki override new`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  theta-rpki override new --registry registry.toml --digest 5feceb66... --node-key rpki-acme --reason \"acme has lost its keys\" --key ann.key --out acme.toml

The digest is the SHA-256 of the bytes that the signature covers, and of nothing else: it permits one object. Read these bytes before you sign.
The reason stands in the log of every agent that lets it pass.")]
pub(crate) struct NewArgs {
    /// The registry's data, which name the operators
    #[arg(long, value_name = "FILE")]
    registry: PathBuf,
    /// SHA-256 of the bytes that are to be signed, in hexadecimal digits
    #[arg(long, value_name = "DIGITS", value_parser = text::digest)]
    digest: [u8; 32],
    /// The name at the nodes of the key that is to sign them
    #[arg(long, value_name = "NAME")]
    node_key: String,
    /// Why, in one line
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// When it ends, as 2026-11-21T08:30:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "days")]
    until: Option<Moment>,
    /// After how many days it ends
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// The operator's private key that signs at once
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Where to write the override
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// `theta-rpki override new`.
pub(super) fn new(args: &NewArgs) -> Result<(), Failure> {
    let registry = known::registry(&args.registry)?;
    let until = args.until.unwrap_or_else(|| Moment::now().plus_days(args.days));
    let text = Text::Object {
        digest: hex::encode(args.digest),
        key: args.node_key.clone(),
        reason: args.reason.clone(),
        until: until.0,
    };
    let (what, tally) = write(&text, args.key.as_deref(), &args.out, &registry)?;
    let report = Report::new(&args.out, &what, tally);
    args.form.answer(&report, &report.words(Words(&what)))
}

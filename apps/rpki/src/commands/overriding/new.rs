//! `theta-rpki override new`.

use std::path::PathBuf;

use clap::Args;

use super::{
    super::{failure::Failure, known, moment::Moment},
    output::OutputArgs,
    text::{self, Text},
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
    #[command(flatten)]
    output: OutputArgs,
}

/// `theta-rpki override new`.
pub(super) fn new(args: &NewArgs) -> Result<(), Failure> {
    let registry = known::registry(&args.registry)?;
    let text = Text::Object {
        digest: hex::encode(args.digest),
        key: args.node_key.clone(),
        reason: args.output.reason.clone(),
        until: args.output.until(Moment::now()),
    };
    args.output.write(&text, &registry)
}

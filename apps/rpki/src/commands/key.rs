//! `theta-rpki key`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use theta_groups::Secret;
use theta_statements::SigningKey;

use super::{
    failure::Failure,
    files,
    signer::digits,
    terminal::{Form, note},
};

/// What is done with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Makes a key of a member or an operator
    New(NewArgs),
}

impl KeyCommand {
    pub(super) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::New(args) => new(args),
        }
    }
}

/// Options of `theta-rpki key new`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  theta-rpki key new --out ann.key

It prints the public key: the registries put it among the member's keys, or the operators', of their data. The file is an ordinary
Ed25519 key in PEM, as openssl genpkey -algorithm ed25519 writes it, and only its owner can read it. Each person has a key of their own.")]
pub(crate) struct NewArgs {
    /// Where to write the private key
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    form: Form,
}

#[derive(Serialize)]
struct Made {
    file: String,
    key: String,
}

fn new(args: &NewArgs) -> Result<(), Failure> {
    let mut seed = Secret::new([0_u8; 32]);
    getrandom::fill(seed.expose_mut()).map_err(|error| Failure::Make(error.to_string()))?;
    let key = SigningKey::from_seed(seed).map_err(|error| Failure::Make(error.to_string()))?;
    files::write_new(&args.out, key.to_pem().expose().as_bytes(), files::PRIVATE)?;
    note(format_args!("wrote the private key to {}: whoever has it signs in your place", args.out.display()));
    let made = Made { file: args.out.display().to_string(), key: digits(&key) };
    args.form.answer(&made, &format!("{}\n", made.key))
}

//! `theta approver new`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use theta_statements::{Name, SigningKey};

use crate::{
    exit::Failure,
    files::write_new,
    output::{self, Output},
};

/// Options of `theta approver new`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta approver new --name ann              writes ann.key, prints the [[approver]] lines for policy.toml
  theta approve --as ann.key --operation sign --key release --message app.tar -o ann.approval

A rule asks for consents with: approvals = { of = [\"ann\", \"ben\", \"carl\"], need = 2 }
The key is an ordinary Ed25519 key in PEM, as openssl genpkey -algorithm ed25519 writes it.")]
pub(crate) struct NewArgs {
    /// What the policy calls the approver
    #[arg(long, value_name = "NAME")]
    name: Name,
    /// Where to write the private key [default: NAME.key]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct Made<'a> {
    name: &'a Name,
    private_key: PathBuf,
    key: String,
    policy: String,
}

/// `theta approver new`.
pub(super) fn new(args: &NewArgs, output: Output) -> Result<(), Failure> {
    let private_key = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.key", args.name)));
    let signing = SigningKey::generate(&mut crate::random::generator()?).map_err(Failure::internal)?;
    write_new(&private_key, signing.to_pem().expose().as_bytes(), true)?;
    output::note(format_args!("wrote the private key to {}: {} alone may have it", private_key.display(), args.name));
    let key = signing.verifying_key().to_string();
    let policy = format!("[[approver]]\nname = \"{}\"\nkey = \"{key}\"\n", args.name);
    let made = Made { name: &args.name, private_key, key, policy };
    output.result(&made, |out| write!(out, "{}", made.policy))
}

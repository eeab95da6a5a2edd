//! `theta token new`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use theta_statements::{Name, Token};

use super::credentials::policy_client;
use crate::{
    exit::Failure,
    files::{Target, write_new},
    output::{self, Output},
};

/// Options of `theta token new`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta token new --name operator                        writes operator.token, prints the lines for policy.toml
  theta token new --name operator >> node-1/policy.toml
  theta status --token-file operator.token

The token is a password of 256 bits: whoever has it is that client, until its hash is taken out of the policy. The policy \
holds the hash alone. Every node decides by its own copy of the policy: add the lines at all of them.

The token is sent whole to every node that is asked, so one malicious node can be that client at all the others. Where a single \
node must not be trusted, use a client file instead (theta client new): it shows a certificate and signs requests.")]
pub(crate) struct NewArgs {
    /// What the policy calls the client
    #[arg(long, value_name = "NAME")]
    name: Name,
    /// Where to write the token; - for standard output instead of the policy lines [default: NAME.token]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct Made<'a> {
    name: &'a Name,
    token: PathBuf,
    hash: String,
    policy: String,
}

/// `theta token new`.
pub(super) fn new(args: &NewArgs, output: Output) -> Result<(), Failure> {
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.token", args.name)));
    let target = Target::choose(Some(&path), None)?;
    target.check_json(output.json())?;
    let token = Token::generate(&mut crate::random::generator()?);
    let hash = token.hash().to_string();
    let policy = policy_client(args.name.as_str(), "tokens", std::slice::from_ref(&hash));
    let mut text = token.to_text();
    text.expose_mut().push('\n');
    match &target {
        Target::File(path) | Target::NewFile(path) => write_new(path, text.expose().as_bytes(), true)?,
        Target::Stdout | Target::Stream(_) => {
            target.write(text.expose().as_bytes(), true)?;
            output::note(policy);
            return Ok(());
        }
    }
    output::note(format_args!("wrote the token to {}: give it to {} alone", path.display(), args.name));
    let made = Made { name: &args.name, token: path, hash, policy };
    output.result(&made, |out| write!(out, "{}", made.policy))
}

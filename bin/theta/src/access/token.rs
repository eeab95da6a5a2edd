//! `theta token new`, `line` and `proof`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use theta_names::NodeId;
use theta_statements::{Name, Token};

use super::credentials::policy_client;
use crate::{
    connect::{ClientArgs, read_token},
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

The token is a secret of 256 bits: whoever has it is that client, until its key is taken out of the policy. The policy holds the \
public key alone. Every node decides by its own copy of the policy: add the lines at all of them.

The token is sent to no node: each gets a proof that is good for that node alone, and for half an hour. So clocks must agree \
within 20 minutes.")]
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
    key: String,
    policy: String,
}

/// `theta token new`.
pub(super) fn new(args: &NewArgs, output: Output) -> Result<(), Failure> {
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.token", args.name)));
    let target = Target::choose(Some(&path), None)?;
    target.check_json(output.json())?;
    let token = Token::generate(&mut crate::random::generator()?);
    let token = token.map_err(|error| Failure::Failed(format!("no token could be made: {error}")))?;
    let key = token.key().to_string();
    let policy = policy_client(args.name.as_str(), "tokens", std::slice::from_ref(&key));
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
    let made = Made { name: &args.name, token: path, key, policy };
    output.result(&made, |out| write!(out, "{}", made.policy))
}

/// Options of `theta token line`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta token line operator.token                        the line of [[client]] for a token that there is already
  theta token line --json operator.token

Policies with tokens = [\"sha256:...\"] are of before tokens proved themselves: clients sent those to every node that they asked. \
Make a new token in the place of each (theta token new).")]
pub(crate) struct LineArgs {
    /// The token's file; - for standard input
    #[arg(value_name = "FILE")]
    token: PathBuf,
}

#[derive(Serialize)]
struct Line {
    key: String,
    policy: String,
}

/// `theta token line`.
pub(super) fn line(args: &LineArgs, output: Output) -> Result<(), Failure> {
    let key = read_token(&args.token)?.key().to_string();
    let line = Line { policy: format!("tokens = [{key:?}]\n"), key };
    output.result(&line, |out| write!(out, "{}", line.policy))
}

/// Options of `theta token proof`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta token proof --node 1 --token-file operator.token          the header of a request to node 1
  theta token proof --node 1 --token-file operator.token > header     and a program that reads its headers from a file: curl -H @header

For programs that ask a node without a client of ours. The proof is good at this node alone, for half an hour; send it to nobody \
else, not in arguments of a program, which all users of a machine see, and only over TLS that has compared the node's key with the \
group's: whoever has it is the client there. Nothing is sent by this command, but the client must know the node.")]
pub(crate) struct ProofArgs {
    #[command(flatten)]
    client: ClientArgs,
    /// The node that is to be asked
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    node: u16,
}

#[derive(Serialize)]
struct Proven<'a> {
    node: u16,
    header: &'a str,
}

/// `theta token proof`.
pub(super) fn proof(args: &ProofArgs, output: Output) -> Result<(), Failure> {
    let session = args.client.open()?;
    let no_token = || Failure::Usage("there is no token to prove: name its file with --token-file".to_owned());
    let node = NodeId::try_from(args.node).map_err(|error| Failure::Usage(error.to_string()))?;
    let header = session.client().authorization(node)?.ok_or_else(no_token)?;
    let header = format!("authorization: {}", header.to_str().unwrap_or_default());
    output.result(&Proven { node: args.node, header: &header }, |out| writeln!(out, "{header}"))
}

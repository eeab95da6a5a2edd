//! `theta policy explain`.

use std::{
    num::NonZeroU16,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use theta_client::{explain_request, is_shown};
use theta_names::Label;
use theta_network::group::GroupFile;
use theta_policy::Explanation;
use theta_statements::{Approval, Ask, UnixTime};

use crate::{
    access::{ApprovalFiles, Subject, SubjectArgs},
    connect::Session,
    exit::Failure,
    files,
    output::Output,
};

/// Options of `theta policy explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta policy explain --policy policy.toml --client gateway --operation sign --key release
  theta policy explain --policy policy.toml --client gateway --operation decapsulate --message letter.txt.theta
  theta policy explain --policy policy.toml --client validator --operation sign --key chain --slot 7 --message vote
  theta policy explain --policy policy.toml --client operator --operation keys.destroy --key old --time 2026-12-01T00:00:00Z
  theta policy explain --policy policy.toml --client release --operation sign --key release --message app.tar --approval ann.approval
  theta policy explain --policy policy.toml --client gateway --operation keys.list --key release      may it read the public part?
  theta policy explain --ask 1 --client gateway --operation sign --key release     the policy in force at a running node

First comes the answer with the rule that decides, then that rule's conditions, then every rule of the file with the \
reason why it is not about the request. DEPENDS means: on what the node remembers, of rates and slots. Nothing is counted, and \
no node is asked but the one that --ask names.")]
pub(crate) struct ExplainArgs {
    /// The policy file
    #[arg(long, value_name = "FILE", default_value = "policy.toml", conflicts_with = "ask")]
    policy: PathBuf,
    /// Ask this running node for its policy's answer, instead of a file
    #[arg(long, value_name = "NODE")]
    ask: Option<NonZeroU16>,
    /// The client file or directory to ask the node with
    #[arg(long, value_name = "FILE", env = "THETA_CLIENT", default_value = "theta-group/client")]
    client_dir: PathBuf,
    /// Who would ask: a `[[client]]` of the file
    #[arg(long, value_name = "NAME")]
    client: String,
    #[command(flatten)]
    subject: SubjectArgs,
    /// The ciphertext's label [default: that of the encrypted file]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// The slot that the request would name, for signing rules
    #[arg(long, value_name = "NUMBER")]
    slot: Option<u64>,
    /// When it would be asked, as 2026-11-21T08:30:00Z [default: now]
    #[arg(long, value_name = "TIME")]
    time: Option<UnixTime>,
    #[command(flatten)]
    approvals: ApprovalFiles,
    /// The group's name, which approvals are for [default: as in group.toml beside the policy file]
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
}

impl ExplainArgs {
    fn subject(&self, group: impl FnOnce() -> Result<GroupFile, Failure>) -> Result<Subject, Failure> {
        let mut subject =
            if self.approvals.is_given() { self.subject.read(group)? } else { self.subject.read_roughly(group)? };
        if let Some(label) = &self.label {
            subject.label =
                Label::new(label.clone().into_bytes()).map_err(|error| Failure::Usage(format!("--label: {error}")))?;
        }
        Ok(subject)
    }
}

/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// `theta policy explain`.
pub(super) fn explain(args: &ExplainArgs, output: Output) -> Result<(), Failure> {
    let approvals = args.approvals.read()?.approvals;
    match args.ask {
        Some(node) => by_node(args, node, &approvals, output),
        None => by_file(args, &approvals, output),
    }
}

fn by_node(args: &ExplainArgs, node: NonZeroU16, approvals: &[Approval], output: Output) -> Result<(), Failure> {
    if !files::is_client(&args.client_dir) {
        let dir = args.client_dir.display();
        return Err(Failure::Usage(format!(
            "{dir} is no client file or directory to ask the node with: name one with --client-dir or THETA_CLIENT"
        )));
    }
    let session = Session::open(&args.client_dir, PATIENCE)?;
    let group = GroupFile::clone(&session.client().group());
    let name = group.name().to_owned();
    let subject = args.subject(|| Ok(group))?;
    let ask = Ask { slot: args.slot, approvals, ..subject.ask(&name) };
    let question = explain_request(&args.client, &ask, args.time);
    let answer = session.block_on(session.client().explain(node.into(), question))?;
    let value: serde_json::Value = serde_json::from_str(&answer.json)
        .map_err(|error| Failure::Failed(format!("node {node} gave an explanation that is no JSON: {error}")))?;
    output.result(&value, |out| write!(out, "{}", printable(&answer.text)))
}

/// A node's text, without what does something to a terminal or to the text around it.
fn printable(text: &str) -> String {
    text.chars().filter(|character| *character == '\n' || is_shown(*character)).collect()
}

fn by_file(args: &ExplainArgs, approvals: &[Approval], output: Output) -> Result<(), Failure> {
    let policy = super::read(&args.policy)?;
    let group = match &args.group {
        Some(name) => name.clone(),
        None if approvals.is_empty() => String::new(),
        None => group_file_beside(&args.policy)
            .map(|group| group.name().to_owned())
            .map_err(|error| Failure::Usage(format!("approvals are for one group: name it with --group ({error})")))?,
    };
    let subject = args.subject(|| group_file_beside(&args.policy))?;
    let ask = Ask { slot: args.slot, approvals, ..subject.ask(&group) };
    let explanation: Explanation = policy.explain(&args.client, &ask, args.time.unwrap_or_else(UnixTime::now));
    output.result(&explanation, |out| write!(out, "{explanation}"))
}

fn group_file_beside(policy: &Path) -> Result<GroupFile, Failure> {
    let file = files::parent(policy).join("group.toml");
    GroupFile::load(&file).map_err(|error| Failure::Usage(format!("the group is not known: {error}")))
}

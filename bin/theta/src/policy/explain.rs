//! `theta policy explain`.

use std::path::{Path, PathBuf};

use clap::Args;
use theta_network::group::GroupFile;
use theta_policy::{Explanation, UnixTime};

use crate::{
    access::{ApprovalFiles, SubjectArgs, now},
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

First comes the answer with the rule that decides, then that rule's conditions, then every rule of the file with the \
reason why it is not about the request. DEPENDS means: on what the node remembers, of rates and slots. Nothing is asked of a \
node and nothing is counted.")]
pub(crate) struct ExplainArgs {
    /// The policy file
    #[arg(long, value_name = "FILE", default_value = "policy.toml")]
    policy: PathBuf,
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

/// `theta policy explain`.
pub(super) fn explain(args: &ExplainArgs, output: Output) -> Result<(), Failure> {
    let policy = super::read(&args.policy)?;
    let approvals = args.approvals.read()?;
    let group = match &args.group {
        Some(name) => name.clone(),
        None if approvals.is_empty() => String::new(),
        None => group_file_beside(&args.policy)
            .map(|group| group.name().to_owned())
            .map_err(|error| Failure::Usage(format!("approvals are for one group: name it with --group ({error})")))?,
    };
    let mut subject = args.subject.read(|| group_file_beside(&args.policy))?;
    if let Some(label) = &args.label {
        subject.label = label.clone().into_bytes();
    }
    let mut ask = subject.ask(&group);
    (ask.slot, ask.approvals) = (args.slot, &approvals);
    let explanation: Explanation = policy.explain(&args.client, &ask, args.time.unwrap_or_else(now));
    output.result(&explanation, |out| write!(out, "{explanation}"))
}

fn group_file_beside(policy: &Path) -> Result<GroupFile, Failure> {
    let file = files::parent(policy).join("group.toml");
    GroupFile::load(&file).map_err(|error| Failure::Usage(format!("the group is not known: {error}")))
}

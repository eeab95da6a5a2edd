//! `theta keys cancel`.

use clap::Args;
use serde::Serialize;
use theta_client::{CeremonyRequest, ClientError};

use crate::{
    access::ApprovalFiles,
    connect::{self, ClientArgs, Session},
    exit::Failure,
    output::{self, GOOD, Output},
};

/// Options of `theta keys cancel`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys ceremonies            shows those that run, each with its id
  theta keys cancel 4be1f00d       the one whose id begins so
  theta keys cancel files          the one of this key
  theta approve --as ann.key --cancel 4be1f00d -o ann.approval && theta keys cancel 4be1f00d --approval ann.approval

It takes the permission, and as many nodes, that it took to begin the ceremony, and where that took approvals, approvals of the end. Nothing is changed by a ceremony that is cancelled; one \
that is done already stays done, and this says so. A request that still waits for nodes to agree is taken back at all nodes that can be \
reached, and begins no more when these are so many that the others cannot decide.")]
pub(crate) struct CancelArgs {
    /// The id of the ceremony, or its first digits, or the name of its key
    #[arg(value_name = "ID|KEY")]
    what: String,
    #[command(flatten)]
    approvals: ApprovalFiles,
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Serialize)]
struct Cancelled {
    id: String,
    key: String,
    aim: &'static str,
    cancelled: bool,
}

/// `theta keys cancel`.
pub(in crate::keys) fn cancel(args: &CancelArgs, output: Output) -> Result<(), Failure> {
    let session = args.client.open_signed(&args.approvals, args.client.timeout())?;
    let request = find(&session, &args.what)?;
    let (id, key, aim) = (hex::encode(request.digest()), request.change.key().to_string(), request.change.aim());
    let ended = session.block_on(session.client().cancel(&request));
    if let Err(ClientError::Denied { reason, .. }) = &ended
        && reason == "too-few-approvals"
    {
        output::note(format_args!("{}", how_to_approve(&id)));
    }
    let cancelled = ended? == theta_client::CeremonyEnded::Cancelled;
    if !cancelled {
        return Err(Failure::Failed(format!(
            "the ceremony to {aim} {key} had ended before: theta keys ceremonies --all"
        )));
    }
    let report = Cancelled { id, key, aim, cancelled };
    output.result(&report, |out| {
        writeln!(out, "{GOOD}ok{GOOD:#} the ceremony to {aim} {} is cancelled; nothing has changed", report.key)
    })
}

/// The commands that lead to the approvals, for a policy that asks for them.
fn how_to_approve(id: &str) -> String {
    let (id, client) = (id.get(..8).unwrap_or_default(), connect::client_option());
    format!(
        "cancelling takes the approvals that it took to begin, and these are about the end:
  theta approve --as ann.key --cancel {id}{client} -o ann.approval
  theta keys cancel {id}{client} --approval ann.approval"
    )
}

/// The ceremony that is meant, among those that run by the ledger and those that wait at some node.
pub(crate) fn find(session: &Session, what: &str) -> Result<CeremonyRequest, Failure> {
    let mut all = session.block_on(session.client().running_ceremonies())?;
    // A node that is behind lists as waiting what runs.
    for waiting in session.block_on(session.client().waiting_ceremonies()) {
        if all.iter().all(|known| known.digest() != waiting.digest()) {
            all.push(waiting);
        }
    }
    choose(what, all)
}

/// The one that is meant.
fn choose(what: &str, running: Vec<CeremonyRequest>) -> Result<CeremonyRequest, Failure> {
    let ids = |all: &[CeremonyRequest]| -> String {
        let each = |request: &CeremonyRequest| {
            let id = hex::encode(request.digest());
            format!("{} ({} of {})", id.get(..8).unwrap_or_default(), request.change.aim(), request.change.key())
        };
        all.iter().map(each).collect::<Vec<_>>().join(", ")
    };
    if running.is_empty() {
        return Err(Failure::Failed("no ceremony runs, and none waits to begin".to_owned()));
    }
    let all = ids(&running);
    let digits = what.to_ascii_lowercase();
    let meant = |request: &CeremonyRequest| {
        request.change.key().as_str() == what || (what.len() >= 4 && hex::encode(request.digest()).starts_with(&digits))
    };
    let mut meant: Vec<CeremonyRequest> = running.into_iter().filter(meant).collect();
    match (meant.pop(), meant.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(_), false) => Err(Failure::Usage(format!("{what} means several ceremonies; name one by its id: {all}"))),
        (None, _) => Err(Failure::Usage(format!("no ceremony {what} runs or waits; these do: {all}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use theta_client::{KeyChange, KeyRef};

    #[test]
    fn ceremonies_are_named_by_their_ids_or_keys() {
        let request = |nonce: u8, key: &str| {
            let key = key.parse::<KeyRef>().unwrap().name;
            CeremonyRequest { nonce: [nonce; 32], change: KeyChange::Refresh { key, version: None } }
        };
        let running = || vec![request(1, "files"), request(2, "files"), request(3, "sign")];
        assert_eq!(choose("sign", running()).unwrap(), request(3, "sign"));
        let id = hex::encode(request(2, "files").digest());
        assert_eq!(choose(&id, running()).unwrap(), request(2, "files"));
        assert_eq!(choose(&id[..8].to_uppercase(), running()).unwrap(), request(2, "files"));
        let several = choose("files", running()).unwrap_err().to_string();
        assert!(several.contains("several") && several.contains(&id[..8]), "{several}");
        assert!(choose(&id[..3], running()).is_err(), "too short to mean one");
        assert!(choose("none", running()).unwrap_err().to_string().contains("refresh of sign"));
        assert!(choose("files", Vec::new()).unwrap_err().to_string().contains("no ceremony runs"));
    }
}

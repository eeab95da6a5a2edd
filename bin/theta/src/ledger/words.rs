//! Entries in words.

use theta_client::Member;
use theta_ledger::{Action, CertifiedEntry, Outcome};
use theta_names::NodeId;
use theta_statements::KeyChange;

use super::place::EntryLine;

/// A member of this number and identity; `None` if there is none.
pub(super) fn member(node: u16, key: &[u8]) -> Option<Member> {
    Member::of(NodeId::try_from(node).ok()?, key).ok()
}

/// An entry as a line of an export.
pub(super) fn line_of(certified: &CertifiedEntry) -> EntryLine {
    let entry = &certified.entry;
    EntryLine {
        height: entry.height,
        time: entry.time,
        what: what(&entry.action),
        certified: hex::encode(certified.encode()),
    }
}

/// What was decided.
pub(super) fn what(action: &Action) -> String {
    match action {
        Action::Adopt(adopted) => {
            let (key, version, epoch) = (&adopted.key, adopted.version, adopted.epoch);
            let (k, n, suite) = (adopted.k, adopted.holders.len(), &adopted.suite);
            format!("key {key}@{version} ({suite}, any {k} of {n}) serves with the shares of epoch {epoch}")
        }
        Action::Begin(request) => match &request.change {
            KeyChange::Create { key, suite, k, holders } => {
                format!("begin to make key {key} ({suite}, any {k} of {})", holders.len())
            }
            KeyChange::Recover { key, node, .. } => format!("begin to recover the share of key {key} at node {node}"),
            change => format!("begin to {} key {}", change.aim(), change.key()),
        },
        Action::End { ceremony, outcome } => match outcome {
            Outcome::Activated { .. } => format!("what was begun at {ceremony} has come about"),
            Outcome::Recovered => format!("the share of {ceremony} was found"),
            Outcome::Aborted => format!("nothing came of what was begun at {ceremony}"),
        },
        Action::SetState(change) => {
            let version = change.version.map(|version| format!("@{version}")).unwrap_or_default();
            format!("key {}{version} is {}", change.key, change.state.name())
        }
    }
}

//! Entries in words.

use theta_client::Member;
use theta_ledger::{Action, CertifiedEntry, MemberChange, Outcome, Warrant};
use theta_names::{Delivery, NodeId};
use theta_statements::{KeyChange, UnixTime};

use super::place::EntryLine;

/// Which words entries are put into. An export says it, so that a later release knows whether it can compare: whoever changes a word that
/// [`what_of`] says adds one.
pub(super) const EDITION: u32 = 1;

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
        what: what_of(certified),
        certified: hex::encode(certified.encode()),
    }
}

/// What was decided, and under which warrant if not by the members' machines alone.
pub(super) fn what_of(certified: &CertifiedEntry) -> String {
    let what = what(&certified.entry.action);
    // Of several the one is for all that the other is for.
    let most = |warrant: &&Warrant| warrant.stand_ins().len();
    let Some(warrant) = certified.warrants.iter().max_by_key(most) else { return what };
    let nodes: Vec<u16> = warrant.stand_ins().iter().map(|stand_in| stand_in.node.get()).collect();
    format!(
        "{what} (decided with other machines in the place of {}, by a warrant of {} operators)",
        crate::connect::nodes(&nodes),
        warrant.signatures().len()
    )
}

/// What was decided.
fn what(action: &Action) -> String {
    match action {
        Action::Adopt(adopted) => {
            let (key, version, epoch) = (&adopted.key, adopted.version, adopted.epoch);
            let (k, n, suite) = (adopted.k, adopted.holders.len(), &adopted.suite);
            let mode = mode(adopted.delivery);
            format!("key {key}@{version} ({suite}, any {k} of {n}{mode}) serves with the shares of epoch {epoch}")
        }
        Action::Begin(request) => match &request.change {
            KeyChange::Create { key, suite, delivery, k, holders } => {
                format!("begin to make key {key} ({suite}, any {k} of {}{})", holders.len(), mode(*delivery))
            }
            KeyChange::Recover { key, node, .. } => format!("begin to recover the share of key {key} at node {node}"),
            change => format!("begin to {} key {}", change.aim(), change.key()),
        },
        Action::End { ceremony, outcome } => match outcome {
            Outcome::Activated { .. } => format!("what was begun at {ceremony} has come about"),
            Outcome::Recovered => format!("the share of {ceremony} was found"),
            Outcome::Aborted => format!("nothing came of what was begun at {ceremony}"),
            Outcome::Cancelled => format!("what was begun at {ceremony} is cancelled"),
        },
        Action::SetState(change) => {
            let version = change.version.map(|version| format!("@{version}")).unwrap_or_default();
            if change.not_before == 0 {
                format!("key {}{version} is {}", change.key, change.state.name())
            } else {
                let when = UnixTime(change.not_before.saturating_mul(1_000));
                format!("key {}{version} is disabled, and destroyed at {when} unless it is enabled before", change.key)
            }
        }
        Action::Members(change) => members(change),
    }
}

/// What is said of a key whose parties do not all make shares.
const fn mode(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::All => "",
        Delivery::Quorum => ", in quorum mode",
        Delivery::DishonestMajority => ", with a dishonest majority",
        Delivery::Passive => ", with passive security",
        Delivery::PassiveDishonestMajority => ", with passive security and a dishonest majority",
    }
}

fn members(change: &MemberChange) -> String {
    match change {
        MemberChange::Add(card) => {
            format!("{:?} is a member, reached at {}", card.name().as_str(), card.content().peer_address)
        }
        MemberChange::Replace { node, card } => {
            format!(
                "node {node} ({:?}) is another machine, reached at {}",
                card.name().as_str(),
                card.content().peer_address
            )
        }
        MemberChange::Renew { node, card } => {
            let content = card.content();
            format!("node {node} is reached at {}, and by clients at {}", content.peer_address, content.api_address)
        }
        MemberChange::Remove { node } => format!("node {node} is no member any more"),
    }
}

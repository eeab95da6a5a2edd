//! Whether the group file is what the members founded.

use theta_custody::Roster;
use theta_network::group::{GroupFile, GroupNode};

/// Warns of everything in which the group file differs from the founding that is in it: somebody has edited it since. A file that has the
/// members of a later entry of the ledger is not compared.
pub(super) fn compare(group: &GroupFile, roster: &Roster) {
    if group.members_at().is_some() {
        return;
    }
    for difference in differences(group, roster) {
        tracing::warn!(difference, "the group file is not what the group was founded with");
    }
}

fn differences(group: &GroupFile, roster: &Roster) -> Vec<String> {
    let Some(founding) = &roster.founding else { return Vec::new() };
    let mut differences = Vec::new();
    if founding.name() != group.name() {
        differences.push(format!("the group is called {}, and was founded as {}", group.name(), founding.name()));
    }
    if founding.threshold() != group.threshold() {
        let (now, then) = (group.threshold(), founding.threshold());
        differences.push(format!("it takes {now} nodes to act, and {then} when it was founded"));
    }
    let founders = founding.members().len();
    for node in group.nodes() {
        let card = usize::from(node.id.get()).checked_sub(1).and_then(|at| founding.members().get(at));
        let Some(content) = card.map(|card| card.content()) else {
            differences.push(format!("node {} was not among the {founders} that founded it", node.id));
            continue;
        };
        let GroupNode { id, name, peer_address, api_address, certificate, ceremony_key } = node;
        let same = [
            (name.as_ref().is_none_or(|name| *name == content.name), "name"),
            (peer_address == content.peer_address.as_str(), "peer_address"),
            (api_address == content.api_address.as_str(), "api_address"),
            (*certificate.as_bytes() == content.tls_key, "certificate"),
            (ceremony_key.is_some_and(|key| *key.as_bytes() == content.ceremony_key), "ceremony_key"),
        ];
        let other = same.into_iter().filter(|(same, _)| !same);
        differences.extend(other.map(|(_, what)| format!("node {id} has another {what} than when it was founded")));
    }
    if group.nodes().len() < founders {
        differences.push(format!("it has {} nodes, and was founded with {founders}", group.nodes().len()));
    }
    differences
}

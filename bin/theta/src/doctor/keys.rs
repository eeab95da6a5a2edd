//! Keys that are not the same everywhere.

use std::collections::{BTreeMap, BTreeSet};

use theta_client::{ListedKey, NodeProblem};

use super::{
    Finding, Patient,
    differences::{camps, listed, minority},
};
use crate::{connect, exit};

/// Keys that are not the same everywhere.
pub(super) fn of_keys(keys: &[ListedKey], problems: &[NodeProblem], patients: &[Patient<'_>]) -> Vec<Finding> {
    let up: BTreeSet<u16> = patients.iter().map(|patient| patient.node).collect();
    let mut findings: Vec<Finding> = problems
        .iter()
        .filter(|problem| up.contains(&problem.node.get()))
        .map(|problem| {
            let node = problem.node.get();
            let finding =
                format!("node {node} does not say which keys it has: {}", exit::tidy(&problem.problem.to_string()));
            Finding::new(
                "keys-unknown",
                vec![node],
                finding,
                "allow this client the operation keys.list in its policy.toml",
            )
        })
        .collect();
    let told: BTreeSet<u16> = keys.iter().flat_map(|key| key.nodes.iter().map(|node| node.get())).collect();
    let mut versions: BTreeMap<(String, u32), Vec<&ListedKey>> = BTreeMap::new();
    for key in keys {
        versions.entry((exit::tidy(&key.info.name), key.info.version)).or_default().push(key);
    }
    for ((name, version), listed_as) in versions {
        let said = listed_as.iter().flat_map(|key| {
            let info = &key.info;
            let words = format!(
                "{}, epoch {}, key {}",
                info.state,
                info.epoch,
                hex::encode(&info.key_id).get(..8).unwrap_or("")
            );
            key.nodes.iter().map(move |node| (node.get(), exit::tidy(&words)))
        });
        let said: Vec<(u16, String)> = said.collect();
        let knowing: BTreeSet<u16> = said.iter().map(|(node, _)| *node).collect();
        // A member that joined later, or holds none of it for another reason, need not know it.
        let holders: BTreeSet<u32> = listed_as.iter().flat_map(|key| key.info.holders.iter().copied()).collect();
        let lacks = |node: &&u16| holders.contains(&u32::from(**node));
        let ignorant: Vec<u16> = told.difference(&knowing).filter(lacks).copied().collect();
        let camps = camps(said);
        if !camps.is_empty() {
            let finding = format!("{name}@{version} is not the same at all nodes: {}", listed(&camps));
            let advice = format!(
                "nodes that were away hear of what they missed in a moment; if it stays so: theta keys ceremonies --all --key \
                 {name}, and repeat the change of state that did not reach all"
            );
            findings.push(Finding::new("key-differs", minority(&camps), finding, advice));
        }
        if !ignorant.is_empty() {
            let finding = format!("{name}@{version} is not known to {}", connect::nodes(&ignorant));
            let advice = "a key that was dealt, imported or removed while they were away has to be so at all nodes; one that the \
                          nodes made comes by itself";
            findings.push(Finding::new("key-unknown", ignorant, finding, advice));
        }
        findings.extend(lost_shares(&name, version, &listed_as, &told));
    }
    findings
}

/// Holders that answer and have no share of the latest epoch.
fn lost_shares(name: &str, version: u32, listed_as: &[&ListedKey], told: &BTreeSet<u16>) -> Option<Finding> {
    let latest = listed_as.iter().max_by_key(|key| key.info.epoch)?;
    if matches!(latest.info.state.as_str(), "destroyed" | "pending") {
        return None;
    }
    let held: BTreeSet<u16> = latest.held.iter().map(|node| node.get()).collect();
    let holders = latest.info.holders.iter().filter_map(|node| u16::try_from(*node).ok());
    let lost: Vec<u16> = holders.filter(|node| told.contains(node) && !held.contains(node)).collect();
    let first = lost.first()?;
    let have = if lost.len() == 1 { "has" } else { "have" };
    let finding = format!("{name}@{version}: {} {have} no share of epoch {}", connect::nodes(&lost), latest.info.epoch);
    let advice = format!(
        "the others compute it: theta keys recover {name}@{version} --node {first}, or --all in the place of the name; it takes an approval"
    );
    Some(Finding::new("share-lost", lost, finding, advice))
}

#[cfg(test)]
mod tests {
    use theta_wire::v1;

    use super::*;

    #[test]
    fn a_key_is_missed_where_it_is_held_and_not_at_a_member_that_joined_later() {
        let node = |number: u16| theta_names::NodeId::try_from(number).unwrap();
        let listed = |name: &str, holders: &[u32], nodes: &[u16]| ListedKey {
            info: v1::KeyInfo {
                name: name.to_owned(),
                version: 1,
                state: "active".to_owned(),
                holders: holders.to_vec(),
                ..Default::default()
            },
            nodes: nodes.iter().copied().map(node).collect(),
            held: nodes.iter().copied().map(node).collect(),
            ..ListedKey::default()
        };
        let found = |key| {
            let newer = listed("newer", &[1, 2, 3], &[1, 2, 3]);
            let findings = of_keys(&[key, newer], &[], &[]);
            findings.iter().map(|finding| (finding.kind, finding.nodes.clone())).collect::<Vec<_>>()
        };
        assert_eq!(found(listed("older", &[1, 2], &[1, 2])), []);
        // The advice is about the version that lacks its share, and not about the one that the name means.
        let older = listed("older", &[1, 2, 3], &[1, 2]);
        let advice = lost_shares("older", 1, &[&older], &[1, 2, 3].into()).unwrap().advice;
        assert!(advice.contains("theta keys recover older@1 --node 3"), "{advice}");
        assert_eq!(found(listed("older", &[1, 2, 3], &[1, 2])), [("key-unknown", vec![3]), ("share-lost", vec![3])]);
    }
}

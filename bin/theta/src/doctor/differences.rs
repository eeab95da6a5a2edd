//! What nodes say differently: policies, releases, the time, and whom they reach.

use std::collections::{BTreeMap, BTreeSet};

use theta_wire::v1;

use super::{Finding, Patient};
use crate::{connect, exit};

/// Clocks that differ by more than this are apart: requests signed by clients are valid from a minute before.
const CLOCKS_APART_MS: u64 = 5_000;

/// Those who say the same of something, most of them first; nothing if all do.
pub(super) fn camps(said: impl IntoIterator<Item = (u16, String)>) -> Vec<(String, Vec<u16>)> {
    let mut camps: BTreeMap<String, Vec<u16>> = BTreeMap::new();
    for (node, what) in said {
        camps.entry(what).or_default().push(node);
    }
    let mut camps: Vec<_> = camps.into_iter().collect();
    camps.sort_by_key(|(_, nodes)| (std::cmp::Reverse(nodes.len()), nodes.first().copied()));
    if camps.len() < 2 { Vec::new() } else { camps }
}

/// "nodes 1 and 2 have 1a2b, node 3 has 3c4d".
pub(super) fn listed(camps: &[(String, Vec<u16>)]) -> String {
    let one = |(what, nodes): &(String, Vec<u16>)| {
        let have = if nodes.len() == 1 { "has" } else { "have" };
        format!("{} {have} {what}", connect::nodes(nodes))
    };
    camps.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// All but the most.
pub(super) fn minority(camps: &[(String, Vec<u16>)]) -> Vec<u16> {
    let mut nodes: Vec<u16> = camps.iter().skip(1).flat_map(|(_, nodes)| nodes.iter().copied()).collect();
    nodes.sort_unstable();
    nodes
}

/// Policies and releases that are not the same everywhere.
pub(super) fn differing(patients: &[Patient<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let short = |digest: &[u8]| hex::encode(digest).get(..12).unwrap_or("none").to_owned();
    let policies = camps(patients.iter().map(|patient| (patient.node, short(&patient.status.policy))));
    if !policies.is_empty() {
        let finding = format!("policies differ: {}", listed(&policies));
        let advice = "each node decides by its own, which may be meant; to see how they differ, fetch the files and run: theta \
                      policy check FILE FILE";
        findings.push(Finding::new("policies-differ", minority(&policies), finding, advice));
    }
    let releases = camps(patients.iter().map(|patient| (patient.node, exit::tidy(&patient.status.version))));
    if !releases.is_empty() {
        let finding = format!("releases differ: {}", listed(&releases));
        findings.push(Finding::new(
            "releases-differ",
            minority(&releases),
            finding,
            "bring all to the latest, one at a time",
        ));
    }
    findings
}

/// How far clocks are apart, in the largest unit of which there are two.
fn span(milliseconds: i64) -> String {
    let seconds = milliseconds.unsigned_abs() / 1_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Clocks that are not where most are.
pub(super) fn clocks_apart(patients: &[Patient<'_>]) -> Vec<Finding> {
    let mut offsets: Vec<i64> = patients.iter().map(|patient| patient.offset).collect();
    offsets.sort_unstable();
    let Some(middle) = offsets.get(offsets.len().saturating_sub(1) / 2).copied() else { return Vec::new() };
    let mut findings: Vec<Finding> = Vec::new();
    for Patient { node, offset, .. } in patients {
        let apart = offset.saturating_sub(middle);
        if apart.unsigned_abs() > CLOCKS_APART_MS {
            let (by, way) = (span(apart), if apart > 0 { "ahead of" } else { "behind" });
            let finding = format!("node {node}: its clock is {by} {way} that of most nodes");
            let advice =
                "synchronise it: requests, approvals and rules have times, and days that it believes are over stay so";
            findings.push(Finding::new("clock-apart", vec![*node], finding, advice));
        }
    }
    if middle.unsigned_abs() > CLOCKS_APART_MS {
        let (by, way) = (span(middle), if middle > 0 { "behind" } else { "ahead of" });
        let finding = format!("the clock of this machine is {by} {way} those of the nodes");
        findings.push(Finding::new(
            "own-clock-apart",
            Vec::new(),
            finding,
            "synchronise it: what it signs may not be valid yet, or any more",
        ));
    }
    findings
}

/// Pairs of nodes that answer this client and do not reach each other.
pub(super) fn cut_off(patients: &[Patient<'_>]) -> Vec<Finding> {
    // Of those whose host is away that is said already.
    let hosted = |patient: &&Patient<'_>| patient.status.host.as_ref().is_none_or(|host| host.away.is_empty());
    let up: BTreeSet<u32> = patients.iter().filter(hosted).map(|patient| u32::from(patient.node)).collect();
    let mut pairs: BTreeMap<(u16, u16), String> = BTreeMap::new();
    for Patient { node, status, .. } in patients.iter().filter(hosted) {
        for peer in
            status.peers.iter().filter(|peer| peer.state() != v1::PeerState::Connected && up.contains(&peer.node))
        {
            let Ok(other) = u16::try_from(peer.node) else { continue };
            let words = pairs.entry(((*node).min(other), (*node).max(other))).or_default();
            if words.is_empty() {
                *words = exit::tidy(&peer.last_error);
            }
        }
    }
    let finding = |((one, other), words): ((u16, u16), String)| {
        let why = if words.is_empty() { String::new() } else { format!(": {words}") };
        let finding = format!("nodes {one} and {other} are up and do not reach each other{why}");
        let advice =
            "look at the addresses and certificates in both group files, and at what lies between the two machines";
        Finding::new("peers-apart", vec![one, other], finding, advice)
    };
    pairs.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(findings: &[Finding]) -> Vec<(&'static str, Vec<u16>)> {
        findings.iter().map(|finding| (finding.kind, finding.nodes.clone())).collect()
    }

    #[test]
    fn who_differs_is_named_against_the_most() {
        let status = |policy: u8, version: &str| v1::GetStatusResponse {
            policy: vec![policy; 32].into(),
            version: version.to_owned(),
            ..Default::default()
        };
        let statuses = [status(1, "1"), status(1, "1"), status(2, "2")];
        let patients: Vec<Patient<'_>> =
            (1..).zip(&statuses).map(|(node, status)| Patient { node, status, offset: 0 }).collect();
        let findings = differing(&patients);
        assert_eq!(kinds(&findings), [("policies-differ", vec![3]), ("releases-differ", vec![3])]);
        assert_eq!(findings[0].finding, "policies differ: nodes 1 and 2 have 010101010101, node 3 has 020202020202");
        assert!(differing(&patients[..2]).is_empty());
    }

    #[test]
    fn clocks_are_compared_with_most_and_with_this_one() {
        let status = v1::GetStatusResponse::default();
        let patients = |offsets: &[i64]| -> Vec<(&'static str, Vec<u16>)> {
            let patients: Vec<Patient<'_>> =
                (1..).zip(offsets).map(|(node, offset)| Patient { node, status: &status, offset: *offset }).collect();
            kinds(&clocks_apart(&patients))
        };
        assert_eq!(patients(&[0, 1_000, -4_000]), []);
        assert_eq!(patients(&[0, 60_000, 100]), [("clock-apart", vec![2])]);
        assert_eq!(patients(&[60_000, 60_000, 60_000]), [("own-clock-apart", vec![])]);
        assert_eq!(patients(&[]), []);
        let spans = [7_000, -119_000, 120_000, 7_199_000, -7_200_000, 34_560_000_000].map(span);
        assert_eq!(spans, ["7 s", "119 s", "2 min", "119 min", "2 h", "400 days"]);
    }

    #[test]
    fn peers_that_are_down_are_not_cut_off() {
        let peer = |node, state: v1::PeerState| v1::PeerStatus { node, state: state.into(), ..Default::default() };
        let (connected, connecting) = (v1::PeerState::Connected, v1::PeerState::Connecting);
        let one = v1::GetStatusResponse { peers: vec![peer(2, connecting), peer(3, connecting)], ..Default::default() };
        let two = v1::GetStatusResponse { peers: vec![peer(1, connected), peer(3, connecting)], ..Default::default() };
        let patients = [Patient { node: 1, status: &one, offset: 0 }, Patient { node: 2, status: &two, offset: 0 }];
        assert_eq!(kinds(&cut_off(&patients)), [("peers-apart", vec![1, 2])]);
    }
}

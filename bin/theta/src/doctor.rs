//! `theta doctor`: what is wrong with a group, and what to do about it.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use serde::Serialize;
use theta_client::{ListedKey, NodeProblem, NodeStatus};
use theta_names::WallTime;
use theta_wire::v1;

use crate::{
    ask,
    connect::{self, ClientArgs},
    exit::{self, Failure},
    output::{BAD, GOOD, Output},
};

/// Clocks that differ by more than this are apart: requests signed by clients are valid from a minute before.
const CLOCKS_APART_MS: u64 = 5_000;
/// A certificate that ends within so many days is near its end.
const CERTIFICATE_DAYS: u64 = 30;
/// A host that takes no frames for so long is slow.
const SLOW_HOST_MS: u64 = 1_000;
/// Less room than this for a store is little.
const LITTLE_ROOM: u64 = 1 << 30;

/// Options of `theta doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta doctor
  theta doctor --json | jq -r '.findings[] | .kind + \": \" + .finding'

Asks every node how it is and which keys it has, and compares what they say: nodes that are down or refuse this client, policies \
and releases that differ, keys whose versions, states or epochs differ, lost shares, stores that peers have not confirmed, \
certificates near their end, hosts that are away or slow, clocks apart (corrected by half of the round trip), disks that are full, peers that do not reach \
each other, nodes that were caught. Each finding says what to do. It takes the permissions status and keys.list.

Exit code 0 if nothing was found, 1 if something was, 3 if fewer nodes answer than it takes to decrypt, sign or draw.")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    client: ClientArgs,
}

/// Something that is wrong.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    /// A name for programs, which never changes.
    kind: &'static str,
    nodes: Vec<u16>,
    finding: String,
    advice: String,
}

impl Finding {
    fn new(kind: &'static str, nodes: Vec<u16>, finding: impl Into<String>, advice: impl Into<String>) -> Self {
        let advice = crate::terminal::pasted::pasteable(&advice.into());
        Self { kind, nodes, finding: finding.into(), advice }
    }
}

#[derive(Serialize)]
struct Report {
    healthy: bool,
    group: String,
    asked: usize,
    answered: usize,
    findings: Vec<Finding>,
    nodes: Vec<NodeView>,
}

/// What a node that answers says of itself.
#[derive(Serialize)]
struct NodeView {
    node: u16,
    version: String,
    policy: String,
    clock_offset_ms: i64,
    disk_free: Option<u64>,
    store_bytes: Option<u64>,
    certificate_ends: Option<u64>,
    audit_records: Option<u64>,
}

/// A node that answers.
struct Patient<'a> {
    node: u16,
    status: &'a v1::GetStatusResponse,
    /// By how much its clock is ahead of this one, in milliseconds.
    offset: i64,
}

impl Patient<'_> {
    fn view(&self) -> NodeView {
        let disk = self.status.disk.as_ref();
        NodeView {
            node: self.node,
            version: exit::tidy(&self.status.version),
            policy: hex::encode(&self.status.policy),
            clock_offset_ms: self.offset,
            disk_free: disk.filter(|disk| !disk.unknown).map(|disk| disk.free),
            store_bytes: disk.map(|disk| disk.store_bytes),
            certificate_ends: Some(self.status.certificate_ends).filter(|ends| *ends > 0),
            audit_records: self.status.audit.as_ref().map(|audit| audit.next),
        }
    }
}

/// `theta doctor`.
pub(crate) fn doctor(args: &DoctorArgs, output: Output) -> Result<(), Failure> {
    let session = args.client.open()?;
    let client = session.client();
    let (statuses, (keys, key_problems)) =
        session.block_on(async { (client.status().await, client.list_keys().await) });
    let patients: Vec<Patient<'_>> = statuses
        .iter()
        .filter_map(|status| {
            let (answer, _) = status.status.as_ref().ok()?;
            Some(Patient { node: status.node.get(), status: answer, offset: status.clock_offset_ms })
        })
        .collect();
    let mut findings = absent(&statuses);
    findings.extend(differing(&patients));
    findings.extend(patients.iter().flat_map(|patient| of_one(patient, WallTime::now().seconds())));
    findings.extend(patients.iter().filter_map(of_host));
    findings.extend(clocks_apart(&patients));
    findings.extend(cut_off(&patients));
    findings.extend(of_keys(&keys, &key_problems, &patients));
    findings.extend(ask::culprits(&statuses).into_iter().map(|caught| {
        let finding = format!("others say that they caught node {}: {}", caught.node, exit::tidy(&caught.misbehaviour));
        Finding::new(
            "caught",
            vec![caught.node],
            finding,
            "find out why: is it broken, of an old release, or in other hands?",
        )
    }));
    let (group, threshold) = (client.group().name().to_owned(), usize::from(client.group().threshold()));
    let (asked, answered) = (statuses.len(), patients.len());
    let nodes = patients.iter().map(Patient::view).collect();
    let report = Report { healthy: findings.is_empty(), group, asked, answered, findings, nodes };
    output.result(&report, |out| {
        for Finding { finding, advice, .. } in &report.findings {
            writeln!(out, "{BAD}{finding}{BAD:#}")?;
            writeln!(out, "  {advice}")?;
        }
        if report.healthy {
            writeln!(
                out,
                "{GOOD}ok{GOOD:#} {answered} of {asked} nodes answer, and nothing is wrong that they can tell"
            )?;
        }
        Ok(())
    })?;
    match report.findings.len() {
        _ if answered < threshold => Err(Failure::NoAnswer(format!(
            "only {answered} of {asked} nodes answer and it takes {threshold}: what is said above is of those alone"
        ))),
        0 => Ok(()),
        1 => Err(Failure::Failed("one thing is wrong, as said above".to_owned())),
        many => Err(Failure::Failed(format!("{many} things are wrong, as said above"))),
    }
}

/// Nodes that do not answer.
fn absent(statuses: &[NodeStatus]) -> Vec<Finding> {
    let problem = |status: &NodeStatus| {
        let NodeProblem { problem, .. } = status.status.as_ref().err()?;
        let (node, words) = (status.node.get(), exit::tidy(&problem.to_string()));
        Some(if exit::is_absence(problem) {
            let finding = format!("node {node} ({}) does not answer: {words}", status.address);
            let advice =
                format!("start it, or look whether it can be reached: theta node run --dir DIRECTORY-OF-NODE-{node}");
            Finding::new("node-down", vec![node], finding, advice)
        } else {
            let finding = format!("node {node} ({}) refuses to say how it is: {words}", status.address);
            let advice = "whoever keeps it allows this client the operations status and keys.list in its policy.toml";
            Finding::new("node-refuses", vec![node], finding, advice)
        })
    };
    statuses.iter().filter_map(problem).collect()
}

/// Those who say the same of something, most of them first; nothing if all do.
fn camps(said: impl IntoIterator<Item = (u16, String)>) -> Vec<(String, Vec<u16>)> {
    let mut camps: BTreeMap<String, Vec<u16>> = BTreeMap::new();
    for (node, what) in said {
        camps.entry(what).or_default().push(node);
    }
    let mut camps: Vec<_> = camps.into_iter().collect();
    camps.sort_by_key(|(_, nodes)| (std::cmp::Reverse(nodes.len()), nodes.first().copied()));
    if camps.len() < 2 { Vec::new() } else { camps }
}

/// "nodes 1 and 2 have 1a2b, node 3 has 3c4d".
fn listed(camps: &[(String, Vec<u16>)]) -> String {
    let one = |(what, nodes): &(String, Vec<u16>)| {
        let have = if nodes.len() == 1 { "has" } else { "have" };
        format!("{} {have} {what}", connect::nodes(nodes))
    };
    camps.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// All but the most.
fn minority(camps: &[(String, Vec<u16>)]) -> Vec<u16> {
    let mut nodes: Vec<u16> = camps.iter().skip(1).flat_map(|(_, nodes)| nodes.iter().copied()).collect();
    nodes.sort_unstable();
    nodes
}

/// Policies and releases that are not the same everywhere.
fn differing(patients: &[Patient<'_>]) -> Vec<Finding> {
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

/// What is wrong with one node, by its own word. `now` is in seconds since 1970.
fn of_one(patient: &Patient<'_>, now: u64) -> Vec<Finding> {
    let Patient { node, status, .. } = *patient;
    let mut findings = Vec::new();
    let mut found =
        |kind, finding: String, advice: String| findings.push(Finding::new(kind, vec![node], finding, advice));
    match status.store() {
        v1::StoreStanding::Unconfirmed => found(
            "store-unconfirmed",
            format!("node {node}: too few peers have confirmed that its store is its latest"),
            format!(
                "it waits for peers that are away: start them; if it was restored or set back on purpose, see its log and theta \
                 keys trust-store --help, on the machine of node {node}"
            ),
        ),
        v1::StoreStanding::Failed => found(
            "store-failed",
            format!("node {node}: its store failed, and it refuses requests"),
            format!(
                "its log says why; see theta keys trust-store --help and theta keys restore --help, on the machine of node {node}"
            ),
        ),
        v1::StoreStanding::Confirmed | v1::StoreStanding::Unspecified => {}
    }
    let mut disk_told = false;
    if let Some(disk) = &status.disk {
        if disk.failed {
            found(
                "disk-failed",
                format!("node {node}: the disk of its store does not work, and it refuses all requests"),
                "make room or mend the disk; the node goes on by itself then".to_owned(),
            );
            disk_told = true;
        } else if !disk.unknown && disk.free < LITTLE_ROOM {
            found(
                "disk-full",
                format!(
                    "node {node}: {} MiB are left for its store, which has {} MiB",
                    disk.free >> 20,
                    disk.store_bytes >> 20
                ),
                format!(
                    "make room on its disk; its audit log can be exported and shortened: theta audit prune --node {node} --help"
                ),
            );
            disk_told = true;
        }
    }
    for warning in status.warnings.iter().filter(|warning| !(disk_told && warning.contains("store"))) {
        found("warning", format!("node {node}: {}", exit::tidy(warning)), "its log says more".to_owned());
    }
    let ends = status.certificate_ends;
    if ends > 0 && ends < now.saturating_add(CERTIFICATE_DAYS * 86_400) {
        let days = ends.saturating_sub(now) / 86_400;
        let finding = if ends <= now {
            format!("node {node}: its certificate has ended")
        } else {
            format!("node {node}: its certificate ends in {days} days")
        };
        let advice = "nodes and theta itself go by its fingerprint and not by dates, but software of others may refuse it: the \
                      node's log says why it was not renewed; whoever issued it renews it, under the same key";
        found("certificate-ends", finding, advice.to_owned());
    }
    findings
}

/// A host through which a node reaches the others, and does not.
fn of_host(Patient { node, status, .. }: &Patient<'_>) -> Option<Finding> {
    let host = status.host.as_ref()?;
    let address = exit::tidy(&host.address);
    if !host.away.is_empty() {
        let finding = format!("node {node}: its host at {address} is away: {}", exit::tidy(&host.away));
        let advice = "start the host, or look at [host] in its node.toml; the node attaches again by itself";
        return Some(Finding::new("host-away", vec![*node], finding, advice));
    }
    if host.stalled_ms >= SLOW_HOST_MS {
        let (waiting, seconds) = (host.waiting_frames, host.stalled_ms / 1_000);
        let finding =
            format!("node {node}: its host at {address} has taken no frames for {seconds} s, and {waiting} wait");
        return Some(Finding::new("host-slow", vec![*node], finding, "look at the host: what it does not take, waits"));
    }
    None
}

/// Clocks that are not where most are.
fn clocks_apart(patients: &[Patient<'_>]) -> Vec<Finding> {
    let mut offsets: Vec<i64> = patients.iter().map(|patient| patient.offset).collect();
    offsets.sort_unstable();
    let Some(middle) = offsets.get(offsets.len().saturating_sub(1) / 2).copied() else { return Vec::new() };
    let mut findings: Vec<Finding> = Vec::new();
    for Patient { node, offset, .. } in patients {
        let apart = offset.saturating_sub(middle);
        if apart.unsigned_abs() > CLOCKS_APART_MS {
            let (seconds, way) = (apart.unsigned_abs() / 1_000, if apart > 0 { "ahead of" } else { "behind" });
            let finding = format!("node {node}: its clock is {seconds} s {way} that of most nodes");
            let advice =
                "synchronise it: requests, approvals and rules have times, and days that it believes are over stay so";
            findings.push(Finding::new("clock-apart", vec![*node], finding, advice));
        }
    }
    if middle.unsigned_abs() > CLOCKS_APART_MS {
        let (seconds, way) = (middle.unsigned_abs() / 1_000, if middle > 0 { "behind" } else { "ahead of" });
        let finding = format!("the clock of this machine is {seconds} s {way} those of the nodes");
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
fn cut_off(patients: &[Patient<'_>]) -> Vec<Finding> {
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

/// Keys that are not the same everywhere.
fn of_keys(keys: &[ListedKey], problems: &[NodeProblem], patients: &[Patient<'_>]) -> Vec<Finding> {
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
    let advice = format!("the others compute it: theta keys recover {name} --node {first}, which takes an approval");
    Some(Finding::new("share-lost", lost, finding, advice))
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
    }

    #[test]
    fn what_a_node_says_of_itself_is_found() {
        let mut status = v1::GetStatusResponse {
            disk: Some(v1::DiskStatus { free: 5 << 20, store_bytes: 1 << 20, ..Default::default() }),
            certificate_ends: 86_400 * 20,
            warnings: vec!["5 MiB are left for its store: make room".to_owned(), "something".to_owned()],
            store: v1::StoreStanding::Unconfirmed.into(),
            ..Default::default()
        };
        let found = |status: &v1::GetStatusResponse| -> Vec<&'static str> {
            of_one(&Patient { node: 1, status, offset: 0 }, 86_400 * 10).iter().map(|finding| finding.kind).collect()
        };
        assert_eq!(found(&status), ["store-unconfirmed", "disk-full", "warning", "certificate-ends"]);
        status = v1::GetStatusResponse { certificate_ends: 86_400 * 200, ..Default::default() };
        assert_eq!(found(&status), Vec::<&str>::new());
    }

    #[test]
    fn a_host_that_is_away_or_slow_is_found() {
        let host = |away: &str, stalled_ms| v1::HostStanding {
            address: "host:1".to_owned(),
            away: away.to_owned(),
            waiting_frames: 5,
            stalled_ms,
        };
        let found = |host| {
            let status = v1::GetStatusResponse { host, ..Default::default() };
            of_host(&Patient { node: 3, status: &status, offset: 0 }).map(|finding| (finding.kind, finding.finding))
        };
        let away = "node 3: its host at host:1 is away: connection refused".to_owned();
        assert_eq!(found(Some(host("connection refused", 0))), Some(("host-away", away)));
        let slow = "node 3: its host at host:1 has taken no frames for 2 s, and 5 wait".to_owned();
        assert_eq!(found(Some(host("", 2_500))), Some(("host-slow", slow)));
        assert_eq!((found(Some(host("", 900))), found(None)), (None, None));
    }

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
        assert_eq!(found(listed("older", &[1, 2, 3], &[1, 2])), [("key-unknown", vec![3]), ("share-lost", vec![3])]);
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

//! What is wrong with single nodes: those that do not answer, and those that say it themselves.

use theta_client::{NodeProblem, NodeStatus};
use theta_wire::v1;

use super::{Finding, Patient};
use crate::exit;

/// A certificate that ends within so many days is near its end.
const CERTIFICATE_DAYS: u64 = 30;
/// A host that takes no frames for so long is slow.
const SLOW_HOST_MS: u64 = 1_000;
/// Less room than this for a store is little.
const LITTLE_ROOM: u64 = 1 << 30;

/// Nodes that do not answer.
pub(super) fn absent(statuses: &[NodeStatus]) -> Vec<Finding> {
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

/// What is wrong with one node, by its own word. `now` is in seconds since 1970.
pub(super) fn of_one(patient: &Patient<'_>, now: u64) -> Vec<Finding> {
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
pub(super) fn of_host(Patient { node, status, .. }: &Patient<'_>) -> Option<Finding> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}

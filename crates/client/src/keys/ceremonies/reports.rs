//! What the nodes report of a ceremony, and on what enough of them agree.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;
use theta_names::{Epoch, NodeId, Version};
use theta_statements::KeyChange;
use theta_wire::v1;
use tonic::Code;

use super::{CeremonyEnd, CeremonyOutcome, CeremonyProgress, Evidence, follower::is_over, in_words};
use crate::{
    ClientError, Connection, NodeProblem, Problem,
    answer::node,
    error::text::one_line,
    fan_out::{Problems, most_said},
};

/// How many accusations of one node a node's report may have.
const MOST_OF_EACH: usize = 2;
/// The most bytes of evidence in a node's report, as nodes have it.
const MOST_EVIDENCE: usize = 16 << 20;

/// The values on which nodes must agree: id, version, epoch, state, key id.
type Verdict = (Bytes, Version, Epoch, i32, Bytes);

/// The latest report of every node.
pub(super) struct Reports<'a> {
    connections: &'a [Connection],
    quorum: usize,
    latest: BTreeMap<NodeId, v1::CeremonyStatus>,
    pub(super) problems: Problems,
    /// The nodes that do not take part.
    pub(super) lost: Vec<NodeId>,
}

impl<'a> Reports<'a> {
    pub(super) fn new(connections: &'a [Connection], quorum: usize) -> Self {
        let problems = Problems::new(connections);
        Self { connections, quorum, latest: BTreeMap::new(), problems, lost: Vec::new() }
    }

    pub(super) fn add(&mut self, CeremonyProgress { node, status }: CeremonyProgress) {
        self.problems.forget(node);
        self.latest.insert(node, status);
    }

    /// The end that k nodes report, with its version and epoch, and these nodes.
    pub(super) fn agreed(&self) -> Option<(&v1::CeremonyStatus, (Version, Epoch), Vec<NodeId>)> {
        let mut votes: BTreeMap<Verdict, Vec<NodeId>> = BTreeMap::new();
        for (node, status) in self.latest.iter().filter(|(_, status)| is_over(status)) {
            let v1::CeremonyStatus { id, version, epoch, state, key_id, .. } = status;
            // No honest node reports a version or an epoch that cannot exist, so such a report does not count.
            let (Some(version), Some(epoch)) = (Version::new(*version), Epoch::from_wide(*epoch)) else { continue };
            votes.entry((id.clone(), version, epoch, *state, key_id.clone())).or_default().push(*node);
        }
        let ((_, version, epoch, ..), nodes) = votes.into_iter().find(|(_, nodes)| nodes.len() >= self.quorum)?;
        let status = nodes.first().and_then(|node| self.latest.get(node))?;
        Some((status, (version, epoch), nodes))
    }

    pub(super) fn all_have_ended(&self) -> bool {
        let over = self.latest.values().filter(|status| is_over(status)).count();
        over + self.lost.iter().filter(|node| !self.latest.contains_key(node)).count() >= self.connections.len()
    }

    /// Whether too few nodes are left to agree.
    pub(super) fn is_hopeless(&self) -> bool {
        self.connections.len().saturating_sub(self.lost.len()) < self.quorum
    }

    /// The end of the ceremony that was asked for. Which key it is about and what it does is as it was asked for, and not as a node says.
    pub(super) fn outcome(self, change: &KeyChange, latency: Duration) -> Result<CeremonyOutcome, ClientError> {
        let Some((status, (version, epoch), agreed)) = self.agreed() else {
            return Err(self.without_end(in_words(change)));
        };
        // What is no part of that on which they agree is what most of those say.
        let of_agreed = agreed.iter().filter_map(|node| self.latest.get(node));
        let end = match status.state() {
            v1::CeremonyState::Activated => CeremonyEnd::Activated {
                key_id: status.key_id.as_ref().try_into().unwrap_or_default(),
                certificate: most_said(of_agreed.map(|status| &status.certificate)).cloned().unwrap_or_default(),
            },
            v1::CeremonyState::Recovered => CeremonyEnd::Recovered,
            v1::CeremonyState::Aborted => CeremonyEnd::Aborted,
            v1::CeremonyState::Cancelled => CeremonyEnd::Cancelled,
            v1::CeremonyState::Failed | v1::CeremonyState::Running | v1::CeremonyState::Unspecified => {
                CeremonyEnd::Failed(most_said(of_agreed.map(|status| &status.failure)).cloned().unwrap_or_default())
            }
        };
        let silent = self.latest.values().flat_map(|status| &status.silent).filter_map(|number| node(*number));
        let silent: BTreeSet<NodeId> = silent.filter(|node| self.is_member(*node)).collect();
        Ok(CeremonyOutcome {
            id: status.id.as_ref().try_into().unwrap_or_default(),
            key: change.key().to_string(),
            version,
            epoch,
            aim: change.aim().to_owned(),
            end,
            evidence: self.evidence(),
            silent: silent.into_iter().collect(),
            agreed,
            problems: self.problems.all(),
            latency,
        })
    }

    fn is_member(&self, node: NodeId) -> bool {
        self.connections.iter().any(|connection| connection.node == node)
    }

    fn without_end(&self, operation: &'static str) -> ClientError {
        if let Some(error) = self.problems.hopeless(operation, self.quorum) {
            return error;
        }
        let mut problems = Problems::new(self.connections);
        for (node, status) in &self.latest {
            let (code, message) = match status.state() {
                v1::CeremonyState::Failed => (Code::Aborted, status.failure.clone()),
                v1::CeremonyState::Activated | v1::CeremonyState::Recovered => {
                    (Code::Aborted, "it is done there".to_owned())
                }
                v1::CeremonyState::Aborted => (Code::Aborted, "it was given up there".to_owned()),
                v1::CeremonyState::Cancelled => (Code::Aborted, "it was cancelled".to_owned()),
                // Nothing was refused: the time was over before it ended.
                v1::CeremonyState::Running | v1::CeremonyState::Unspecified => {
                    (Code::DeadlineExceeded, how_far(status))
                }
            };
            problems.add(*node, Problem::Refused { code, message });
        }
        for NodeProblem { node, problem, .. } in self.problems.all() {
            problems.add(node, problem);
        }
        ClientError::NoAnswer { operation, nodes: problems.all() }
    }

    /// The accusations of members, each once with all that report it. One with another proof is another: whoever reports first may report
    /// a proof that proves nothing.
    fn evidence(&self) -> Vec<Evidence> {
        let mut all: BTreeMap<(NodeId, &str, &[u8]), Vec<NodeId>> = BTreeMap::new();
        for (reporter, status) in &self.latest {
            for found in &status.evidence {
                let Some(culprit) = node(found.node).filter(|node| self.is_member(*node)) else { continue };
                let reporters = all.entry((culprit, &found.misbehaviour, &found.evidence)).or_default();
                if reporters.last() != Some(reporter) {
                    reporters.push(*reporter);
                }
            }
        }
        let made = all.into_iter().map(|((node, misbehaviour, evidence), reported_by)| Evidence {
            node,
            misbehaviour: misbehaviour.to_owned(),
            evidence: Bytes::copy_from_slice(evidence),
            reported_by,
        });
        made.collect()
    }
}

/// How far a ceremony is that has not ended at a node, and for whom it waits there.
fn how_far(status: &v1::CeremonyStatus) -> String {
    let mut words = format!("it goes on there, {} of {} steps are done", status.done, status.of);
    if !status.awaits.is_empty() {
        words.push_str(&format!("; it waits for {}", status.awaits));
    }
    if !status.silent.is_empty() {
        let silent: Vec<String> = status.silent.iter().map(ToString::to_string).collect();
        words.push_str(&format!(", not heard from yet: {}", silent.join(", ")));
    }
    words
}

/// A node's report without what nobody needs: texts are fit to be shown, and of each node there are few accusations, in bounded space.
pub(super) fn trim(mut status: v1::CeremonyStatus) -> v1::CeremonyStatus {
    for text in [&mut status.key, &mut status.aim, &mut status.failure, &mut status.awaits] {
        *text = one_line(text);
    }
    let (mut of_node, mut room): (BTreeMap<u32, usize>, usize) = (BTreeMap::new(), MOST_EVIDENCE);
    status.evidence.retain_mut(|found| {
        let known = of_node.entry(found.node).or_default();
        *known += 1;
        found.misbehaviour = one_line(&found.misbehaviour);
        match room.checked_sub(found.evidence.len()) {
            Some(left) => room = left,
            // As a node leaves it out that has no room for it.
            None => found.evidence = Bytes::new(),
        }
        *known <= MOST_OF_EACH
    });
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes report the same version and epoch of a ceremony.
    fn agreed(version: u32, epoch: u64) -> Option<(Version, Epoch)> {
        let mut reports = Reports::new(&[], 2);
        for number in 1..=2 {
            let state = v1::CeremonyState::Activated.into();
            let status = v1::CeremonyStatus { version, epoch, state, ..Default::default() };
            reports.add(CeremonyProgress { node: NodeId::try_from(number).unwrap(), status });
        }
        reports.agreed().map(|(_, sharing, _)| sharing)
    }

    #[test]
    fn a_sharing_that_there_cannot_be_is_nobodys_word() {
        assert_eq!(agreed(1, 0), Some((Version::FIRST, Epoch::FIRST)));
        assert_eq!(agreed(2, u64::from(u32::MAX)), Some((Version::new(2).unwrap(), Epoch::new(u32::MAX))));
        assert_eq!((agreed(0, 0), agreed(1, 1 << 32)), (None, None));
    }

    fn node_of(number: u16) -> NodeId {
        NodeId::try_from(number).unwrap()
    }

    fn connection(number: u16) -> Connection {
        let node = theta_network::group::GroupNode {
            id: node_of(number),
            name: None,
            peer_address: "127.0.0.1:1".to_owned(),
            api_address: "127.0.0.1:2".to_owned(),
            certificate: [7; 32].into(),
            ceremony_key: None,
        };
        Connection::new(&node, &[], None, &crate::ClientOptions::default()).unwrap()
    }

    /// Node 1 agrees with the others on the end, and lies about all the rest: its words are neither the key's name nor the reason, and of its
    /// accusations few are kept, of members.
    #[tokio::test]
    async fn the_lowest_node_does_not_speak_for_the_others() {
        let connections: Vec<Connection> = (1..=4).map(connection).collect();
        let mut reports = Reports::new(&connections, 2);
        let state = v1::CeremonyState::Failed.into();
        let told = |failure: &str| v1::CeremonyStatus {
            version: 1,
            state,
            key: "seal".to_owned(),
            failure: failure.to_owned(),
            ..Default::default()
        };
        let accusation = |node: u32, proof: u8| v1::Evidence {
            node,
            misbehaviour: "lied\u{1b}[2J".to_owned(),
            evidence: vec![proof].into(),
        };
        let many = (0..100_u8).flat_map(|proof| [accusation(3, proof), accusation(9, proof)]).collect();
        let lies = v1::CeremonyStatus {
            key: "x; rm -rf /".to_owned(),
            aim: "\u{1b}]0;".to_owned(),
            evidence: many,
            silent: vec![2, 9],
            ..told("run $(this)")
        };
        for (number, status) in [(1, lies), (2, told("too few dealers")), (3, told("too few dealers"))] {
            reports.add(CeremonyProgress { node: node_of(number), status: trim(status) });
        }
        let change = KeyChange::Rotate { key: "seal".parse().unwrap() };
        let outcome = reports.outcome(&change, Duration::ZERO).unwrap();
        assert_eq!((outcome.key.as_str(), outcome.aim.as_str()), ("seal", "rotate"));
        assert_eq!(outcome.end, CeremonyEnd::Failed("too few dealers".to_owned()));
        assert_eq!((outcome.silent, outcome.evidence.len()), (vec![node_of(2)], MOST_OF_EACH));
        for Evidence { node, misbehaviour, reported_by, .. } in outcome.evidence {
            assert_eq!((node, &*misbehaviour, reported_by), (node_of(3), "lied [2J", vec![node_of(1)]));
        }
    }

    #[test]
    fn evidence_has_bounded_space() {
        let of = |node: u32| v1::Evidence { node, evidence: vec![0; 10 << 20].into(), ..Default::default() };
        let status = v1::CeremonyStatus { evidence: vec![of(1), of(2)], ..Default::default() };
        let lengths: Vec<usize> = trim(status).evidence.iter().map(|found| found.evidence.len()).collect();
        assert_eq!(lengths, [10 << 20, 0], "whoever finds no room is named without it");
    }
}

//! What the nodes report of a ceremony, and on what enough of them agree.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use theta_names::{Epoch, NodeId, Version};
use theta_wire::v1;
use tonic::Code;

use super::{CeremonyEnd, CeremonyOutcome, CeremonyProgress, Evidence, follower::is_over};
use crate::{ClientError, Connection, NodeProblem, Problem, answer::node, fan_out::Problems};

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

    pub(super) fn outcome(self, operation: &'static str, latency: Duration) -> Result<CeremonyOutcome, ClientError> {
        let Some((status, (version, epoch), agreed)) = self.agreed() else {
            return Err(self.without_end(operation));
        };
        let end = match status.state() {
            v1::CeremonyState::Activated => CeremonyEnd::Activated {
                key_id: status.key_id.as_ref().try_into().unwrap_or_default(),
                certificate: status.certificate.clone(),
            },
            v1::CeremonyState::Recovered => CeremonyEnd::Recovered,
            v1::CeremonyState::Aborted => CeremonyEnd::Aborted,
            v1::CeremonyState::Cancelled => CeremonyEnd::Cancelled,
            v1::CeremonyState::Failed | v1::CeremonyState::Running | v1::CeremonyState::Unspecified => {
                CeremonyEnd::Failed(status.failure.clone())
            }
        };
        let mut silent: Vec<NodeId> =
            self.latest.values().flat_map(|status| &status.silent).copied().filter_map(node).collect();
        silent.sort_unstable();
        silent.dedup();
        Ok(CeremonyOutcome {
            id: status.id.as_ref().try_into().unwrap_or_default(),
            key: status.key.clone(),
            version,
            epoch,
            aim: status.aim.clone(),
            end,
            evidence: self.evidence(),
            silent,
            agreed,
            problems: self.problems.all(),
            latency,
        })
    }

    fn without_end(&self, operation: &'static str) -> ClientError {
        if let Some(error) = self.problems.hopeless(operation, self.quorum) {
            return error;
        }
        let mut problems = Problems::new(self.connections);
        for (node, status) in &self.latest {
            let words = match status.state() {
                v1::CeremonyState::Failed => status.failure.clone(),
                v1::CeremonyState::Activated | v1::CeremonyState::Recovered => "it is done there".to_owned(),
                v1::CeremonyState::Aborted => "it was given up there".to_owned(),
                v1::CeremonyState::Cancelled => "it was cancelled".to_owned(),
                v1::CeremonyState::Running | v1::CeremonyState::Unspecified => {
                    format!("it goes on there, {} of {} steps are done", status.done, status.of)
                }
            };
            problems.add(*node, Problem::Refused { code: Code::Aborted, message: words });
        }
        for NodeProblem { node, problem, .. } in self.problems.all() {
            problems.add(node, problem);
        }
        ClientError::NoAnswer { operation, nodes: problems.all() }
    }

    fn evidence(&self) -> Vec<Evidence> {
        let mut all: Vec<Evidence> = Vec::new();
        for (reporter, status) in &self.latest {
            for found in &status.evidence {
                let Some(culprit) = node(found.node) else { continue };
                let same = |known: &&mut Evidence| known.node == culprit && known.misbehaviour == found.misbehaviour;
                match all.iter_mut().find(same) {
                    Some(known) => known.reported_by.push(*reporter),
                    None => all.push(Evidence {
                        node: culprit,
                        misbehaviour: found.misbehaviour.clone(),
                        evidence: found.evidence.clone(),
                        reported_by: vec![*reporter],
                    }),
                }
            }
        }
        all
    }
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
}

//! What nodes did instead of answering, and what follows from it for the request.

use std::{collections::BTreeMap, sync::Arc};

use theta_names::NodeId;
use tonic::Code;

use crate::{
    ClientError, Connection, NodeProblem, Problem,
    error::{Fault, listed},
};

/// The code of nodes whose agents refuse.
const AGENT_REFUSES: &str = "agent-refuses";

/// The failures so far, by node.
pub(crate) struct Problems {
    addresses: BTreeMap<NodeId, Arc<str>>,
    found: BTreeMap<NodeId, Problem>,
}

impl Problems {
    pub(crate) fn new(connections: &[Connection]) -> Self {
        let addresses = connections.iter().map(|connection| (connection.node, Arc::clone(&connection.address)));
        Self { addresses: addresses.collect(), found: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, node: NodeId, problem: Problem) {
        self.found.insert(node, problem);
    }

    /// Removes the failure of a node that answered well later.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.found.remove(&node);
    }

    pub(crate) fn all(&self) -> Vec<NodeProblem> {
        self.select(|_| true)
    }

    pub(super) fn false_answers(&self) -> Vec<NodeProblem> {
        self.select(|problem| matches!(problem, Problem::FalseAnswer(_)))
    }

    fn select(&self, wanted: impl Fn(&Problem) -> bool) -> Vec<NodeProblem> {
        let chosen = self.found.iter().filter(|(_, problem)| wanted(problem));
        chosen
            .map(|(node, problem)| NodeProblem {
                node: *node,
                address: self.addresses.get(node).map(|address| address.to_string()).unwrap_or_default(),
                problem: problem.clone(),
            })
            .collect()
    }

    /// How many policies deny the request for good.
    pub(crate) fn forbidding(&self) -> usize {
        self.found.values().filter(|problem| problem.forbids()).count()
    }

    /// Why waiting for further nodes is pointless, if it is: `quorum` nodes blame the request, or so many refuse it for reasons of their own that
    /// fewer than `quorum` are left.
    pub(crate) fn hopeless(&self, operation: &'static str, quorum: usize) -> Option<ClientError> {
        self.hopeless_below(operation, quorum, quorum)
    }

    /// The same where `least` nodes can still answer.
    pub(super) fn hopeless_below(&self, operation: &'static str, quorum: usize, least: usize) -> Option<ClientError> {
        if let Some((code, reason)) = self.blame_for_request(quorum, least) {
            return Some(ClientError::Refused { operation, code, reason });
        }
        let refuses = |problem: &&Problem| matches!(problem, Problem::Denied { .. } | Problem::TurnedAway { .. });
        let refusing = self.found.values().filter(refuses);
        let count = refusing.clone().count();
        if self.addresses.len().saturating_sub(count) >= least {
            return None;
        }
        // One that lies may be the first of them: what most of them say counts.
        let kind = |problem: &'_ Problem| match problem {
            Problem::Denied { rule, reason, .. } => Some((rule.clone(), reason.clone())),
            _ => None,
        };
        match most_said(refusing.clone().map(kind))? {
            Some((rule, reason)) => Some(ClientError::Denied { operation, rule, reason, message: self.denials() }),
            None => {
                let away = |(node, problem): (&NodeId, &Problem)| match problem {
                    Problem::TurnedAway { certificate } => Some((*node, *certificate)),
                    _ => None,
                };
                let (nodes, certificates): (Vec<_>, Vec<_>) = self.found.iter().filter_map(away).unzip();
                Some(ClientError::TurnedAway { operation, nodes, certificate: certificates.first().copied().flatten() })
            }
        }
    }

    /// What the nodes say that refuse by their policies. Where their agents refuse, each has reasons of its own, and one may lie or know less: all of
    /// those are said, and who says what. Of rules the message of most is: it says what to do, and the others are like it.
    fn denials(&self) -> String {
        let mut said: Vec<(&str, Vec<NodeId>)> = Vec::new();
        let mut of_rules = Vec::new();
        for (node, problem) in &self.found {
            let Problem::Denied { message, reason, .. } = problem else { continue };
            if reason != AGENT_REFUSES {
                of_rules.push(message.clone());
            } else if let Some((_, nodes)) = said.iter_mut().find(|(other, _)| other == message) {
                nodes.push(*node);
            } else {
                said.push((message, vec![*node]));
            }
        }
        let of_agents: Vec<String> = match said.as_slice() {
            [(message, _)] => vec![(*message).to_owned()],
            several => several.iter().map(|(message, nodes)| format!("{}: {message}", listed(nodes))).collect(),
        };
        of_agents.into_iter().chain(most_said(of_rules.into_iter())).collect::<Vec<_>>().join("; ")
    }

    /// The code and the message with which the nodes refuse the request: `quorum` of them blame it, one of which is honest, or so many say that
    /// they themselves cannot answer it that fewer than `least` are left. Whoever holds no share or has lost it says so at once, and the
    /// holders answer later.
    fn blame_for_request(&self, quorum: usize, least: usize) -> Option<(Code, String)> {
        let mut codes: BTreeMap<i32, usize> = BTreeMap::new();
        let mut without: Vec<(Code, &str)> = Vec::new();
        for (fault, code, message) in self.found.values().filter_map(Problem::fault) {
            let count = codes.entry(i32::from(code)).or_default();
            match fault {
                Fault::OfRequest => {
                    *count += 1;
                    if *count >= quorum {
                        return Some((code, message.to_owned()));
                    }
                }
                Fault::OfNode => without.push((code, message)),
            }
        }
        let left = self.addresses.len().saturating_sub(without.len());
        if without.len() < quorum || left >= least {
            return None;
        }
        // Those say more that know the key.
        let knowing = without.iter().filter(|(code, _)| *code != Code::NotFound).count();
        let is_known = knowing.saturating_mul(2) >= without.len();
        let said = without.into_iter().filter(|(code, _)| (*code != Code::NotFound) == is_known);
        most_said(said).map(|(code, message)| (code, message.to_owned()))
    }
}

/// What most say; of as many, what is said first.
pub(crate) fn most_said<T: PartialEq>(said: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: Vec<(T, usize)> = Vec::new();
    for one in said {
        match counts.iter_mut().find(|(known, _)| *known == one) {
            Some((_, count)) => *count += 1,
            None => counts.push((one, 1)),
        }
    }
    // `max_by_key` gives the last of equals.
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(said, _)| said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(messages: &[&str]) -> String {
        let nodes = (1_u16..).map(|number| NodeId::try_from(number).unwrap());
        let mut problems = Problems { addresses: BTreeMap::new(), found: BTreeMap::new() };
        for (node, message) in nodes.zip(messages) {
            problems.addresses.insert(node, Arc::from("localhost"));
            let (rule, reason) = (None, AGENT_REFUSES.to_owned());
            problems.add(node, Problem::Denied { rule, reason, message: (*message).to_owned() });
        }
        match problems.hopeless("sign", 2) {
            Some(ClientError::Denied { message, .. }) => message,
            other => panic!("{other:?}"),
        }
    }

    /// The lowest node lies about why.
    #[test]
    fn the_reason_is_what_most_say() {
        let mut problems = Problems { addresses: BTreeMap::new(), found: BTreeMap::new() };
        for (number, reason) in (1_u16..).zip(["rm-rf", "no-rule", "no-rule"]) {
            let node = NodeId::try_from(number).unwrap();
            problems.addresses.insert(node, Arc::from("localhost"));
            let (reason, message) = (reason.to_owned(), format!("by {reason}"));
            problems.add(node, Problem::Denied { rule: Some(reason.clone()), reason, message });
        }
        let Some(ClientError::Denied { rule, reason, message, .. }) = problems.hopeless("sign", 2) else { panic!() };
        assert_eq!((rule.as_deref(), &*reason, &*message), (Some("no-rule"), "no-rule", "by no-rule"));
        assert_eq!(most_said([1, 2, 2, 1].into_iter()), Some(1));
    }

    /// One that lies, or knows less, does not hide what the others say.
    #[test]
    fn all_that_nodes_refuse_is_said() {
        assert_eq!(refused(&["no", "no", "no"]), "no");
        assert_eq!(refused(&["no", "a key", "no"]), "nodes 1 and 3: no; node 2: a key");
    }
}

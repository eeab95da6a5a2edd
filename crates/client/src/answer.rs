//! A checked result, and how it came about.

use std::{collections::HashSet, time::Duration};

use theta_names::NodeId;
use theta_wire::v1;

use crate::NodeProblem;

/// A result that this client has checked, with what the answering node says about its making.
#[derive(Debug)]
pub struct Answer<T> {
    /// The result; checked by this client.
    pub result: T,
    /// The node that gave the answer.
    pub node: NodeId,
    /// The id of the instance at the nodes; equal requests have equal ids.
    pub instance_id: [u8; 32],
    /// The nodes whose shares are in the result, according to the answering node. Empty if that was told the result by another
    /// node: in quorum mode, those who stand by do not learn whose shares made it.
    pub contributors: Vec<NodeId>,
    /// The nodes that misbehaved in the instance, according to the answering node.
    pub culprits: Vec<Culprit>,
    /// The nodes whose answers this client itself found to be false.
    pub bad_answers: Vec<NodeProblem>,
    /// The time from sending the request, over a connection that was already established, to the end of the check of the
    /// good answer.
    pub latency: Duration,
}

impl<T> Answer<T> {
    /// The same answer with its result converted by `form`.
    pub fn map<U>(self, form: impl FnOnce(T) -> U) -> Answer<U> {
        Answer {
            result: form(self.result),
            node: self.node,
            instance_id: self.instance_id,
            contributors: self.contributors,
            culprits: self.culprits,
            bad_answers: self.bad_answers,
            latency: self.latency,
        }
    }
}

/// A node whose misbehaviour another node has detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// The node.
    pub node: NodeId,
    /// The misbehaviour, for example `share fails verification`.
    pub misbehaviour: String,
    /// The instance in which it happened.
    pub instance_id: Vec<u8>,
}

pub(crate) fn nodes(numbers: &[u32]) -> Vec<NodeId> {
    let mut seen = HashSet::new();
    numbers.iter().filter_map(|number| node(*number)).filter(|node| seen.insert(*node)).collect()
}

/// Each node once, with what is said of it first: the answering node may write what it likes, but no more than there are nodes.
pub(crate) fn culprits(culprits: Vec<v1::Culprit>) -> Vec<Culprit> {
    let mut seen = HashSet::new();
    let known = |culprit: v1::Culprit| {
        let node = node(culprit.node).filter(|node| seen.insert(*node))?;
        let misbehaviour = culprit.misbehaviour.chars().take(MOST_MISBEHAVIOUR).collect();
        Some(Culprit { node, misbehaviour, instance_id: culprit.instance_id.into() })
    };
    culprits.into_iter().filter_map(known).collect()
}

/// The longest description of a misbehaviour in characters: it is the answering node's.
const MOST_MISBEHAVIOUR: usize = 200;

/// The node of this number, or `None` for numbers that no node can have: answers leave such entries out.
pub(crate) fn node(number: u32) -> Option<NodeId> {
    u16::try_from(number).ok().and_then(|number| NodeId::try_from(number).ok())
}

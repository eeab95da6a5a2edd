//! A checked result, and how it came about.

use std::time::Duration;

use theta_names::NodeId;
use theta_wire::v1;

use crate::NodeProblem;

/// A result that proved to be good, with what the node that gave it says about its making.
#[derive(Debug)]
pub struct Answer<T> {
    /// The result; checked by this client.
    pub result: T,
    /// Which node's answer it is.
    pub node: NodeId,
    /// The instance at the nodes: equal requests have equal ids.
    pub instance_id: [u8; 32],
    /// The nodes whose shares are in the result, by the answering node's word.
    pub contributors: Vec<NodeId>,
    /// The nodes that misbehaved meanwhile, by the answering node's word.
    pub culprits: Vec<Culprit>,
    /// The nodes whose answers this client itself found to be false.
    pub bad_answers: Vec<NodeProblem>,
    /// From the request sent, over a connection that stood, to the good answer checked.
    pub latency: Duration,
}

impl<T> Answer<T> {
    /// The same answer with another form of its result.
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

/// A node whose misbehaviour another node has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// Who.
    pub node: NodeId,
    /// What exactly, for example `share fails verification`.
    pub misbehaviour: String,
    /// In which instance.
    pub instance_id: Vec<u8>,
}

pub(crate) fn nodes(numbers: &[u32]) -> Vec<NodeId> {
    numbers.iter().filter_map(|number| node(*number)).collect()
}

pub(crate) fn culprits(culprits: Vec<v1::Culprit>) -> Vec<Culprit> {
    let known = |culprit: v1::Culprit| {
        let node = node(culprit.node)?;
        Some(Culprit { node, misbehaviour: culprit.misbehaviour, instance_id: culprit.instance_id.into() })
    };
    culprits.into_iter().filter_map(known).collect()
}

/// Numbers that name no node are left out: nothing can be said about them.
pub(crate) fn node(number: u32) -> Option<NodeId> {
    u16::try_from(number).ok().and_then(|number| NodeId::try_from(number).ok())
}

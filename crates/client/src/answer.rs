//! A checked result, and how it came about.

use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use bytes::Bytes;
use theta_ledger::founding::MOST_MEMBERS;
use theta_names::NodeId;
use theta_wire::v1;

use crate::{NodeProblem, error::text::one_line};

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
    /// node: in quorum mode, those who stand by do not learn whose shares made it, but of coins that prove themselves by them.
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

/// What is kept of a node's answer until it is checked: whom it names, each once and no more than a group can have, with few words.
pub(crate) fn trimmed(mut outcome: v1::Outcome) -> v1::Outcome {
    let mut seen = HashSet::new();
    let contributors =
        outcome.contributors.into_iter().filter(|number| node(*number).is_some() && seen.insert(*number));
    outcome.contributors = contributors.take(MOST_MEMBERS).collect();
    let mut seen = HashSet::new();
    let accused = outcome.culprits.into_iter();
    let accused = accused.filter(|culprit| node(culprit.node).is_some() && seen.insert(culprit.node));
    let accused = accused.take(MOST_MEMBERS).map(|culprit| v1::Culprit {
        misbehaviour: one_line(&culprit.misbehaviour).chars().take(MOST_MISBEHAVIOUR).collect(),
        instance_id: Bytes::copy_from_slice(culprit.instance_id.get(..MOST_ID).unwrap_or(&culprit.instance_id)),
        ..culprit
    });
    outcome.culprits = accused.collect();
    outcome
}

/// The nodes of a trimmed answer that are members. The answering node may write what it likes, and makes up no node.
pub(crate) fn nodes(numbers: &[u32], members: &BTreeSet<NodeId>) -> Vec<NodeId> {
    numbers.iter().filter_map(|number| node(*number)).filter(|node| members.contains(node)).collect()
}

/// The same, with what is said of them.
pub(crate) fn culprits(culprits: Vec<v1::Culprit>, members: &BTreeSet<NodeId>) -> Vec<Culprit> {
    let known = |culprit: v1::Culprit| {
        let node = node(culprit.node).filter(|node| members.contains(node))?;
        Some(Culprit { node, misbehaviour: culprit.misbehaviour, instance_id: culprit.instance_id.into() })
    };
    culprits.into_iter().filter_map(known).collect()
}

/// The longest description of a misbehaviour in characters: it is the answering node's.
const MOST_MISBEHAVIOUR: usize = 200;
/// The longest id of an instance that is kept, in bytes.
const MOST_ID: usize = 32;

/// The node of this number, or `None` for numbers that no node can have: answers leave such entries out.
pub(crate) fn node(number: u32) -> Option<NodeId> {
    u16::try_from(number).ok().and_then(|number| NodeId::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(numbers: impl Iterator<Item = u32>) -> v1::Outcome {
        let numbers: Vec<u32> = numbers.collect();
        let culprit =
            |node: &u32| v1::Culprit { node: *node, misbehaviour: "x\u{1b}".repeat(500), ..Default::default() };
        v1::Outcome { culprits: numbers.iter().map(culprit).collect(), contributors: numbers, ..Default::default() }
    }

    /// A right answer that accuses everybody there could be accuses nobody but members.
    #[test]
    fn accusations_are_of_members_and_few_are_kept() {
        let kept = trimmed(outcome(0..=65_536));
        assert_eq!((kept.culprits.len(), kept.contributors.len()), (MOST_MEMBERS, MOST_MEMBERS));
        assert!(kept.culprits.iter().all(|culprit| culprit.misbehaviour.len() == MOST_MISBEHAVIOUR));
        assert!(!kept.culprits[0].misbehaviour.contains('\u{1b}'));
        let twice = trimmed(outcome([2, 2, 9, 2].into_iter()));
        let members: BTreeSet<NodeId> = (1..=4).map(|number| NodeId::try_from(number).unwrap()).collect();
        assert_eq!(nodes(&twice.contributors, &members).iter().map(|node| node.get()).collect::<Vec<_>>(), [2]);
        let accused = culprits(twice.culprits, &members);
        assert_eq!(accused.iter().map(|culprit| culprit.node.get()).collect::<Vec<_>>(), [2]);
    }
}

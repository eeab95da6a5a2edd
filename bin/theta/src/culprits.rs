//! Nodes that misbehaved, and who says so: what one node says of another is its word, which may be a lie.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Serialize;
use theta_client::{Answer, NodeStatus, one_line};

use crate::{connect::nodes, exit::tidy};

/// A node that misbehaved, and how.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct CulpritView {
    /// The node.
    pub node: u16,
    /// The misbehaviour.
    pub misbehaviour: String,
    /// The nodes that say so; `None` for what this client has checked itself.
    pub told_by: Option<Vec<u16>>,
    /// It may be right, and those who say so be wrong: their agents have another view of what may be signed.
    pub disputed: bool,
}

impl fmt::Display for CulpritView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(told_by) = &self.told_by {
            write!(f, "according to {}, ", nodes(told_by))?;
        }
        let verb = if self.disputed { "" } else { "misbehaved: " };
        write!(f, "node {} {verb}{}", self.node, self.misbehaviour)
    }
}

/// Those that the node names that gave this answer, and those whose answers this client found to be false.
pub(crate) fn of_answer<T>(answer: &Answer<T>) -> Vec<CulpritView> {
    let told = answer.culprits.iter().map(|culprit| CulpritView {
        node: culprit.node.get(),
        misbehaviour: tidy(&culprit.misbehaviour),
        told_by: Some(vec![answer.node.get()]),
        disputed: false,
    });
    let checked = answer.bad_answers.iter().map(|problem| CulpritView {
        node: problem.node.get(),
        misbehaviour: tidy(&problem.problem.to_string()),
        told_by: None,
        disputed: false,
    });
    told.chain(checked).collect()
}

/// All members that some node accuses, once for each misbehaviour, with the nodes that tell of it.
pub fn of_statuses(statuses: &[NodeStatus]) -> Vec<CulpritView> {
    let is_member = |node: u16| statuses.iter().any(|status| status.node.get() == node);
    let mut told: BTreeMap<(u16, bool, String), BTreeSet<u16>> = BTreeMap::new();
    for status in statuses {
        let Ok((response, _)) = &status.status else { continue };
        for culprit in &response.culprits {
            if let Some(node) = u16::try_from(culprit.node).ok().filter(|node| is_member(*node)) {
                let misbehaviour = tidy(&one_line(&culprit.misbehaviour));
                told.entry((node, culprit.disputed, misbehaviour)).or_default().insert(status.node.get());
            }
        }
    }
    let view = |((node, disputed, misbehaviour), by): (_, BTreeSet<u16>)| CulpritView {
        node,
        misbehaviour,
        told_by: Some(by.into_iter().collect()),
        disputed,
    };
    told.into_iter().map(view).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use theta_client::{Culprit, NodeProblem, Problem};
    use theta_names::NodeId;
    use theta_wire::v1;

    use super::*;

    fn node(number: u16) -> NodeId {
        number.try_into().unwrap()
    }

    /// Node 2 gives the answer and accuses node 3, which may be honest. That node 4 lied this client has seen.
    #[test]
    fn what_a_node_says_is_told_as_its_word() {
        let misbehaviour = "false share".to_owned();
        let culprits = vec![Culprit { node: node(3), misbehaviour, instance_id: Vec::new() }];
        let problem = Problem::FalseAnswer("no signature".to_owned());
        let bad_answers = vec![NodeProblem { node: node(4), address: String::new(), problem }];
        let (contributors, latency) = (Vec::new(), Duration::ZERO);
        let instance_id = [0; 32];
        let answer = Answer { result: (), node: node(2), instance_id, contributors, culprits, bad_answers, latency };
        let views = of_answer(&answer);
        let words: Vec<String> = views.iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                "according to node 2, node 3 misbehaved: false share",
                "node 4 misbehaved: gave a false answer: no signature"
            ]
        );
        let json = serde_json::to_value(&views).unwrap();
        assert!(json[0]["told_by"] == serde_json::json!([2]) && json[1]["told_by"].is_null(), "{json}");
    }

    #[test]
    fn a_state_names_all_that_accuse() {
        let says = |number: u16, accused: u32| {
            let culprit = v1::Culprit { node: accused, misbehaviour: "false share".to_owned(), ..Default::default() };
            let response = v1::GetStatusResponse { culprits: vec![culprit; 2], ..Default::default() };
            let status = Ok((response, Duration::ZERO));
            NodeStatus { node: node(number), address: String::new(), status, clock_offset_ms: 0 }
        };
        let mut differs = says(2, 1);
        if let Ok((response, _)) = &mut differs.status {
            let culprit = v1::Culprit {
                misbehaviour: "took part in it".to_owned(),
                disputed: true,
                ..response.culprits[0].clone()
            };
            response.culprits = vec![culprit];
        }
        let told = of_statuses(&[says(1, 4), says(2, 9), says(3, 4), says(4, 1), differs]);
        let words: Vec<String> = told.iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                "according to node 4, node 1 misbehaved: false share",
                "according to node 2, node 1 took part in it",
                "according to nodes 1 and 3, node 4 misbehaved: false share"
            ]
        );
    }
}

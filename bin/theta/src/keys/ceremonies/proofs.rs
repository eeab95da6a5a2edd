//! What nodes accuse each other of in a ceremony: what proves itself is kept, and the rest is their word.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde::Serialize;
use theta_client::{CeremonyOutcome, Evidence};
use theta_custody::{ProvenLie, check_evidence};
use theta_names::NodeId;
use theta_network::group::GroupFile;

use crate::{connect, exit::tidy, files::Target, output};

/// A node that misbehaved in a ceremony.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Caught {
    node: u16,
    misbehaviour: String,
    /// The file of the evidence, which proves it; without one it is the word of `according_to`.
    evidence: Option<PathBuf>,
    /// The nodes that say so.
    according_to: Vec<u16>,
}

/// Checks the accusations, says what they come to, and writes what proves a lie into files CEREMONY-node-N-M.evidence. The ceremony is over, so what
/// cannot be written is no failure of it.
pub(super) fn keep(folder: &Path, group: &GroupFile, outcome: &CeremonyOutcome) -> Vec<Caught> {
    // In a group whose nodes have no identities nothing can be proven.
    let roster = theta_service::roster(group).ok();
    let prove = |evidence: &Evidence| {
        let proven = check_evidence(&evidence.evidence, roster.as_ref()?).ok()?;
        (proven.ceremony == outcome.id && proven.evidence.culprit().get() == evidence.node.get()).then_some(proven)
    };
    let caught = sort(&outcome.evidence, |evidence| Some(lie(&prove(evidence)?)));
    let id = hex::encode(outcome.id);
    let mut kept = Vec::with_capacity(caught.len());
    for (place, (mut caught, proof)) in caught.into_iter().enumerate() {
        let words = match proof {
            Some(proof) => {
                let name = format!("{}-node-{}-{place}.evidence", id.get(..8).unwrap_or_default(), caught.node);
                caught.keep_proof(folder.join(name), &proof.evidence)
            }
            None => {
                let (who, node) = (connect::nodes(&caught.according_to), caught.node);
                format!("according to {who}, and without a proof, node {node} misbehaved: {}", caught.misbehaviour)
            }
        };
        output::diagnostic("warning", &words);
        kept.push(caught);
    }
    kept
}

impl Caught {
    /// Writes what proves the lie, if it can be written. Returns what is to be said.
    fn keep_proof(&mut self, path: PathBuf, proof: &[u8]) -> String {
        let Self { node, misbehaviour, .. } = self;
        let caught = format!("node {node} misbehaved: {misbehaviour}");
        match Target::choose(Some(&path), None).and_then(|target| target.write(proof, false)) {
            Ok(()) => {
                let words = format!("{caught}; evidence in {}", path.display());
                self.evidence = Some(path);
                words
            }
            Err(failure) => format!("{caught}; the evidence is lost: {failure}"),
        }
    }
}

fn lie(proven: &ProvenLie) -> String {
    proven.evidence.to_string()
}

/// The lies that are proven, each once with its proof, and of what is not proven the first that each set of nodes says of a node about which
/// nothing is proven.
fn sort(accusations: &[Evidence], prove: impl Fn(&Evidence) -> Option<String>) -> Vec<(Caught, Option<&Evidence>)> {
    let numbers = |nodes: &[NodeId]| nodes.iter().map(|node| node.get()).collect::<Vec<u16>>();
    let mut caught: Vec<(Caught, Option<&Evidence>)> = Vec::new();
    let (mut lies, mut liars, mut unproven) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for accusation in accusations {
        let Some(lie) = prove(accusation) else {
            unproven.push(accusation);
            continue;
        };
        liars.insert(accusation.node);
        if lies.insert((accusation.node, lie.clone())) {
            let (node, according_to) = (accusation.node.get(), numbers(&accusation.reported_by));
            caught.push((Caught { node, misbehaviour: lie, evidence: None, according_to }, Some(accusation)));
        }
    }
    let mut said = BTreeSet::new();
    for Evidence { node, misbehaviour, reported_by, .. } in unproven {
        if !liars.contains(node) && said.insert((*node, reported_by)) {
            let (node, according_to) = (node.get(), numbers(reported_by));
            caught.push((Caught { node, misbehaviour: tidy(misbehaviour), evidence: None, according_to }, None));
        }
    }
    caught
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accusation(node: u16, proof: &'static str, by: &[u16]) -> Evidence {
        let node_of = |number: u16| NodeId::try_from(number).unwrap();
        Evidence {
            node: node_of(node),
            misbehaviour: "said\u{1b}[2J".to_owned(),
            evidence: proof.into(),
            reported_by: by.iter().copied().map(node_of).collect(),
        }
    }

    /// The directory for evidence is gone when the ceremony has ended well.
    #[test]
    fn a_proof_that_cannot_be_written_is_lost_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let mut caught =
            Caught { node: 3, misbehaviour: "dealt falsely".to_owned(), evidence: None, according_to: vec![1] };
        let words = caught.keep_proof(dir.path().join("gone/a.evidence"), b"proof");
        assert!(words.starts_with("node 3 misbehaved: dealt falsely; the evidence is lost: "), "{words}");
        assert_eq!(caught.evidence, None);
        let path = dir.path().join("a.evidence");
        assert!(caught.keep_proof(path.clone(), b"proof").contains("; evidence in "));
        assert_eq!(std::fs::read(&path).unwrap(), b"proof");
        assert_eq!(caught.evidence, Some(path));
    }

    /// A liar invents evidence, beside the honest nodes' and against honest nodes.
    #[test]
    fn what_is_not_proven_is_the_word_of_who_says_it() {
        let prove = |evidence: &Evidence| evidence.evidence.starts_with(b"true").then(|| "dealt falsely".to_owned());
        let all = [
            accusation(2, "false", &[1]),
            accusation(2, "true", &[3]),
            accusation(2, "true, too", &[4]),
            accusation(3, "false 1", &[1]),
            accusation(3, "false 2", &[1]),
            accusation(4, "", &[1]),
        ];
        let sorted = sort(&all, prove);
        let (kept, proofs): (Vec<_>, Vec<_>) = sorted.into_iter().unzip();
        let caught = |node: u16, misbehaviour: &str, by: u16| Caught {
            node,
            misbehaviour: misbehaviour.to_owned(),
            evidence: None,
            according_to: vec![by],
        };
        let said = "said\u{fffd}[2J";
        assert_eq!(kept, [caught(2, "dealt falsely", 3), caught(3, said, 1), caught(4, said, 1)]);
        assert_eq!(proofs, [Some(&all[1]), None, None]);
    }
}

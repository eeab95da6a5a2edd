//! One slot: its promises, and the requests that wait for it.

use std::collections::{BTreeMap, BTreeSet};

use theta_names::NodeId;
use theta_policy::{SlotQuorum, SlotStanding};
use theta_statements::Digest;

use super::promise::Subject;
use super::refusal::SlotRefusal;
use super::tally::Tally;

/// The size of an entry without its promises, in bytes, estimated: names, maps, queues.
const WEIGHT: usize = 512;
/// The size of a promise in a map, in bytes, estimated.
const PROMISE_WEIGHT: usize = 160;

/// A request that waits for a decision about the slot.
#[derive(Clone, Debug)]
pub(super) struct Want {
    pub(super) ticket: u64,
    pub(super) digest: Digest,
    pub(super) quorum: SlotQuorum,
    pub(super) standing: SlotStanding,
}

/// One slot.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) tally: Tally,
    pub(super) wants: Vec<Want>,
    /// Whether this node's promise is in the tally, or it is known that there is none to sign.
    pub(super) has_own: bool,
    /// When this node last sent to all what it knows.
    pub(super) said: Option<u64>,
    /// When it asks the others next, and how long it waited for that.
    pub(super) ask_at: Option<u64>,
    pub(super) patience: u64,
    /// The nodes that have sent anything about the slot since it was first asked for here.
    pub(super) heard: BTreeSet<NodeId>,
    /// When each peer was last answered.
    pub(super) answered: BTreeMap<NodeId, u64>,
    /// The nodes that were named as liars.
    pub(super) named: BTreeSet<NodeId>,
    /// Its size, if it is kept only for peers that ask again.
    pub(super) kept: Option<usize>,
}

impl Entry {
    pub(super) fn weight(&self) -> usize {
        WEIGHT.saturating_add(self.tally.len().saturating_mul(PROMISE_WEIGHT))
    }

    pub(super) fn is_wanted(&self, digest: &Digest) -> bool {
        self.wants.iter().any(|want| want.digest == *digest)
    }

    /// Takes out the requests that are decided, with their verdicts. `others`: the number of other nodes.
    pub(super) fn decide(&mut self, subject: &Subject, others: usize) -> Vec<(u64, Result<(), SlotRefusal>)> {
        let (tally, heard) = (&self.tally, self.heard.len());
        let mut decided = Vec::new();
        self.wants.retain(|want| match verdict(tally, subject, want, heard >= others) {
            None => true,
            Some(verdict) => {
                decided.push((want.ticket, verdict));
                false
            }
        });
        decided
    }

    /// Why a request was not decided in time. `other_rules`: the nodes that promise the slot under a rule of another
    /// name.
    pub(super) fn refusal(
        &self,
        subject: &Subject,
        want: &Want,
        nodes: &[NodeId],
        other_rules: &BTreeMap<NodeId, String>,
    ) -> SlotRefusal {
        if let SlotStanding::Over { mark } = want.standing {
            return over(subject, mark);
        }
        let supporters = self.tally.supporters(&want.digest);
        let promised: BTreeSet<NodeId> = self.tally.nodes().collect();
        let others: Vec<NodeId> = promised.iter().copied().filter(|node| !supporters.contains(node)).collect();
        let silent: Vec<NodeId> =
            nodes.iter().copied().filter(|node| !promised.contains(node) && !other_rules.contains_key(node)).collect();
        let Subject { key, rule, slot } = subject;
        let (need, n) = (want.quorum.need(), want.quorum.n);
        let mut text = format!("slot {slot} of key {key} was not decided in time: ");
        text.push_str(&format!("this message has the promises of {} ", counted(&supporters, n)));
        text.push_str(&format!("and takes {need}, signing rule {rule}"));
        if !others.is_empty() {
            text.push_str(&format!("; another message has that of {}", listed(&others)));
        }
        for (node, other) in other_rules {
            text.push_str(&format!(
                "; node {node} promises it by a rule named {other}: all policies must name it alike"
            ));
        }
        if !silent.is_empty() {
            let silent = listed(&silent);
            text.push_str(&format!("; no promise by {silent}: running, asked too, and with this signing rule?"));
        }
        SlotRefusal::Undecided(text)
    }
}

/// What the promises decide about a request; `None` if nothing yet.
fn verdict(tally: &Tally, subject: &Subject, want: &Want, all_heard: bool) -> Option<Result<(), SlotRefusal>> {
    let SlotQuorum { n, .. } = want.quorum;
    let need = want.quorum.need();
    if tally.supporters(&want.digest).len() >= usize::from(need) {
        return Some(Ok(()));
    }
    let Subject { key, rule, slot } = subject.clone();
    if tally.certified(need).is_some() {
        return Some(Err(SlotRefusal::Taken { key, rule, slot }));
    }
    if tally.is_void(n, need) {
        let split: Vec<String> = tally.split().iter().map(usize::to_string).collect();
        return Some(Err(SlotRefusal::Void { key, rule, slot, split: split.join(" : "), n, need }));
    }
    match want.standing {
        SlotStanding::Over { mark } if all_heard => Some(Err(over(subject, mark))),
        _ => None,
    }
}

fn over(subject: &Subject, mark: u64) -> SlotRefusal {
    let Subject { key, rule, slot } = subject.clone();
    SlotRefusal::Over { key, rule, slot, mark }
}

fn listed(nodes: &[NodeId]) -> String {
    let names: Vec<String> = nodes.iter().map(NodeId::to_string).collect();
    let word = if names.len() == 1 { "node" } else { "nodes" };
    format!("{word} {}", names.join(", "))
}

fn counted(nodes: &[NodeId], n: u16) -> String {
    if nodes.is_empty() {
        format!("none of {n} nodes")
    } else {
        format!("{} of {n} nodes ({})", nodes.len(), listed(nodes))
    }
}

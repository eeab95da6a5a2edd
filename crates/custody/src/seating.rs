//! Who belongs to the group now, shared by all parts of a node that ask: it changes while they run.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use theta_ledger::founding::Card;
use theta_ledger::{LedgerState, Replica};
use theta_names::NodeId;

use crate::Roster;

/// What this node's machine is to the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is its member's.
    Member,
    /// It never was a member's, for all that it has read: it waits for the entry that makes it one, or votes by a warrant until then.
    Expected,
    /// Its member has left, or has another machine.
    Gone,
}

/// The members as of one height of the ledger, for those who connect to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// The height of the newest change of members; 0 for those who founded the group.
    pub height: u64,
    /// The members' cards, by rising number.
    pub cards: Vec<(NodeId, Card)>,
    /// Machines that vote in the place of members' by a warrant.
    pub stand_ins: Vec<(NodeId, Card)>,
    /// The TLS keys that were members' and are nobody's now, with the height of the entry by which they ceased to be.
    pub former: BTreeMap<[u8; 32], u64>,
    /// What this node's machine is.
    pub standing: Standing,
}

impl Members {
    /// The members of a group that was founded with cards. `own` is the key of ceremonies of member `local`'s machine here.
    pub(crate) fn of(replica: &Replica, local: NodeId, own: Option<&[u8]>) -> Option<Self> {
        let state = replica.state();
        let cards = state.seats().iter().map(|(node, seat)| Some((*node, seat.card()?.clone())));
        let cards: Vec<(NodeId, Card)> = cards.collect::<Option<_>>()?;
        // A store without an identity votes for nothing, and serves what it holds.
        let same = |card: &Card| own.is_none_or(|own| own == card.content().ceremony_key);
        let is_own = |(node, card): &(NodeId, Card)| *node == local && same(card);
        let standing = if cards.iter().any(is_own) {
            Standing::Member
        } else if own.is_some_and(|own| state.was_member(own)) {
            Standing::Gone
        } else {
            Standing::Expected
        };
        let (height, former) = (state.members_since(), state.former().clone());
        Some(Self { height, cards, stand_ins: replica.stand_ins(), former, standing })
    }
}

/// Who counts, at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Present {
    pub(crate) roster: Roster,
    /// Since which height each member has its identity; not listed: since the group began.
    since: BTreeMap<NodeId, u64>,
    /// The height at which each key was born, and how many members there were. Those of them that are members still, with the
    /// same machine, promise its slots. A key that is not listed, since a dealer brought it, was born with the group.
    born: BTreeMap<String, (u64, usize)>,
    /// How many founded the group.
    founders: usize,
}

impl Present {
    /// How many promise the slots of a key: its first members, whoever of them is left. A machine that came later does not know what was
    /// promised before, and a quorum of others may know nothing that a quorum of these does.
    pub(crate) fn voters(&self, key: &str) -> usize {
        self.born.get(key).map_or(self.founders, |(_, members)| *members)
    }

    /// Whether a member's promise counts for a slot of a key.
    pub(crate) fn counts(&self, node: NodeId, key: &str) -> bool {
        if self.since.is_empty() {
            return true;
        }
        let born = self.born.get(key).map_or(0, |(height, _)| *height);
        self.since.get(&node).is_some_and(|since| *since <= born)
    }
}

/// The present members, for all that follow them.
#[derive(Debug)]
pub(crate) struct Seating(RwLock<Arc<Present>>);

impl Seating {
    /// A group as its file has it.
    pub(crate) fn of(roster: Roster) -> Arc<Self> {
        let founders = roster.nodes.len();
        let present = Present { roster, since: BTreeMap::new(), born: BTreeMap::new(), founders };
        Arc::new(Self(RwLock::new(Arc::new(present))))
    }

    pub(crate) fn present(&self) -> Arc<Present> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, present: Arc<Present>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = present;
    }

    /// Follows the ledger. Keys are here before they serve, since this comes before the key table is changed.
    pub(crate) fn follow(&self, roster: Roster, state: &LedgerState) {
        let since = state.seats().iter().map(|(node, seat)| (*node, seat.since())).collect();
        let born = state.keys().iter().map(|(key, line)| (key.to_string(), line.born)).collect();
        self.replace(Arc::new(Present { roster, since, born, founders: state.founders() }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u16) -> NodeId {
        NodeId::try_from(number).unwrap()
    }

    /// Whoever came after a key does not promise its slots, and does not make a quorum of others smaller.
    #[test]
    fn slots_stay_with_those_who_were_there_when_the_key_was_born() {
        let nodes: Vec<NodeId> = (1..=5).map(node).collect();
        let roster = Roster { name: "g".to_owned(), nodes: nodes.clone(), members: Vec::new(), k: 2, founding: None };
        // Node 3 has had another machine since height 4, and node 5 joined at height 6.
        let since = nodes.iter().copied().zip([0, 0, 4, 0, 6]).collect();
        let born = BTreeMap::from([("early".to_owned(), (2, 4)), ("late".to_owned(), (9, 5))]);
        let present = Present { roster, since, born, founders: 4 };
        let counting = |key: &str| nodes.iter().filter(|node| present.counts(**node, key)).map(|it| it.get()).collect();
        let (early, late, dealt): (Vec<u16>, Vec<u16>, Vec<u16>) =
            (counting("early"), counting("late"), counting("dealt"));
        assert_eq!((early, present.voters("early")), (vec![1, 2, 4], 4));
        assert_eq!((late, present.voters("late")), (vec![1, 2, 3, 4, 5], 5));
        assert_eq!((dealt, present.voters("dealt")), (vec![1, 2, 4], 4));
        assert!(!present.counts(node(6), "late"), "it has left");
    }
}

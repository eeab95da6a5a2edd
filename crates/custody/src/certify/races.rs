//! Which of several messages for a slot is first in a total order, before any node promises the slot.
//!
//! This decides nothing that must not be decided twice. A slot is a message's when enough nodes promise it ([`super::Certifier`]), whatever
//! an order says; the order only lets honest nodes promise the same. If it lies, forks or stands still, slots become void or wait, as they
//! do without an order, and never have two messages. So nothing here is kept on a disk, and no signature is checked: each node believes its
//! own host.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use theta_names::NodeId;
use theta_policy::SlotRace;
use theta_statements::Digest;

use super::promise::Subject;
use crate::codec::{Reader, Writer};

const FORMAT: u8 = 1;
/// The most slots that one node opens. Its oldest are forgotten first, so that no node takes the place of others.
const MOST_OF_NODE: usize = 1_024;

/// The message by which a node says for which message it would promise a slot.
#[must_use]
pub fn claim_of(race: &SlotRace) -> Bytes {
    subject_of(race).write(Writer::new(FORMAT)).raw(&race.digest.0).finish().into()
}

fn subject_of(race: &SlotRace) -> Subject {
    Subject { key: race.key.clone(), slot: race.slot, rule: race.rule.as_str().to_owned() }
}

fn read(bytes: &[u8]) -> Option<(Subject, Digest)> {
    let mut reader = Reader::new(bytes);
    if reader.u8().ok()? != FORMAT {
        return None;
    }
    let subject = Subject::read(&mut reader).ok()?;
    let digest = Digest(reader.array().ok()?);
    reader.end((subject, digest)).ok()
}

/// The claims of a slot, in their order.
#[derive(Debug)]
struct Race {
    opener: NodeId,
    /// The first claim of each node.
    claims: BTreeMap<NodeId, Digest>,
    winner: Option<Digest>,
}

/// The claims of all slots, as far as they are remembered.
#[derive(Debug)]
pub struct Races {
    /// How many nodes must claim a slot for a message: one more than may lie, so that an honest one does.
    need: usize,
    open: BTreeMap<Subject, Race>,
    opened: BTreeMap<NodeId, VecDeque<Subject>>,
}

impl Races {
    /// No claims yet, in a group of which any k nodes act.
    #[must_use]
    pub fn new(k: u16) -> Self {
        Self { need: usize::from(k), open: BTreeMap::new(), opened: BTreeMap::new() }
    }

    /// Takes the next message in the order. Returns `false` if it is no claim.
    pub fn take(&mut self, from: NodeId, message: &[u8]) -> bool {
        let Some((subject, digest)) = read(message) else { return false };
        if !self.open.contains_key(&subject) {
            let opened = self.opened.entry(from).or_default();
            opened.push_back(subject.clone());
            if opened.len() > MOST_OF_NODE
                && let Some(oldest) = opened.pop_front()
            {
                self.open.remove(&oldest);
            }
        }
        let new = || Race { opener: from, claims: BTreeMap::new(), winner: None };
        let race = self.open.entry(subject).or_insert_with(new);
        // A node's first claim counts: whoever claims for everything has claimed for the first of it.
        race.claims.entry(from).or_insert(digest);
        let supporters = race.claims.values().filter(|claimed| **claimed == digest).count();
        if race.winner.is_none() && supporters >= self.need {
            race.winner = Some(digest);
        }
        true
    }

    /// The message that is first: the first that so many nodes have claimed the slot for. `None` if there is none yet.
    #[must_use]
    pub fn winner(&self, race: &SlotRace) -> Option<Digest> {
        self.open.get(&subject_of(race))?.winner
    }

    /// Whether this node's claim of the slot is in the order.
    #[must_use]
    pub fn has_claimed(&self, node: NodeId, race: &SlotRace) -> bool {
        self.open.get(&subject_of(race)).is_some_and(|race| race.claims.contains_key(&node))
    }

    /// How many slots are remembered that this node opened.
    #[must_use]
    pub fn opened_by(&self, node: NodeId) -> usize {
        self.open.values().filter(|race| race.opener == node).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u16) -> NodeId {
        NodeId::try_from(number).unwrap()
    }

    fn race(slot: u64, digest: u8) -> SlotRace {
        SlotRace { key: "chain".to_owned(), rule: "heights".parse().unwrap(), slot, digest: Digest([digest; 32]) }
    }

    fn after(claims: &[(u16, u8)]) -> Option<u8> {
        let mut races = Races::new(2);
        for (from, digest) in claims {
            assert!(races.take(node(*from), &claim_of(&race(7, *digest))));
        }
        races.winner(&race(7, 1)).map(|digest| digest.0[0])
    }

    /// Four nodes, one of which may lie.
    #[test]
    fn the_first_message_that_an_honest_node_claims_wins_and_stays() {
        assert_eq!(after(&[]), None);
        assert_eq!(after(&[(1, 9), (1, 9)]), None, "one node is not enough, however often");
        assert_eq!(after(&[(1, 1), (2, 2), (3, 2), (4, 1)]), Some(2), "what was a void slot is a race with a winner");
        assert_eq!(after(&[(1, 1), (2, 2), (3, 2), (4, 1), (4, 1), (2, 1)]), Some(2), "it stays");
        assert_eq!(
            after(&[(4, 9), (1, 1), (4, 1), (2, 1)]),
            Some(1),
            "a liar holds up nobody, and its first claim counts"
        );
        assert_eq!(after(&[(1, 1), (2, 2), (3, 3), (4, 4)]), None);
    }

    #[test]
    fn what_is_no_claim_changes_nothing_and_slots_are_apart() {
        let mut races = Races::new(1);
        let claim = claim_of(&race(1, 5));
        for cut in 0..claim.len() {
            assert!(!races.take(node(1), &claim[..cut]));
        }
        assert!(!races.take(node(1), &[&claim[..], &[0]].concat()) && !races.take(node(1), b"\xffnoise"));
        assert!(races.take(node(1), &claim));
        assert_eq!(races.winner(&race(2, 5)), None);
        assert_eq!(races.winner(&race(1, 6)), Some(Digest([5; 32])));
        assert!(races.has_claimed(node(1), &race(1, 6)) && !races.has_claimed(node(2), &race(1, 6)));
    }

    #[test]
    fn a_node_that_opens_very_many_loses_its_own_oldest() {
        let mut races = Races::new(2);
        races.take(node(1), &claim_of(&race(0, 1)));
        for slot in 1..=5_000 {
            races.take(node(4), &claim_of(&race(slot, 9)));
        }
        assert_eq!((races.opened_by(node(4)), races.opened_by(node(1))), (MOST_OF_NODE, 1));
        races.take(node(2), &claim_of(&race(0, 1)));
        assert_eq!(races.winner(&race(0, 1)), Some(Digest([1; 32])), "the others' are as they were");
    }
}

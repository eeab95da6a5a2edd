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
/// The most claims of one node that are remembered. Its oldest are forgotten first, and only its own.
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
    /// The first claim of each node, as far as it is remembered. There is always one.
    claims: BTreeMap<NodeId, Digest>,
    winner: Option<Digest>,
}

/// The claims of all slots, as far as they are remembered.
#[derive(Debug)]
pub struct Races {
    /// How many nodes must claim a slot for a message: one more than may lie, so that an honest one does.
    need: usize,
    open: BTreeMap<Subject, Race>,
    /// The races that have a claim of a node, in the order of its claims.
    claimed: BTreeMap<NodeId, VecDeque<Subject>>,
}

impl Races {
    /// No claims yet, in a group of which any k nodes act.
    #[must_use]
    pub fn new(k: u16) -> Self {
        Self { need: usize::from(k), open: BTreeMap::new(), claimed: BTreeMap::new() }
    }

    /// Takes the next message in the order. Returns `false` if it is no claim.
    pub fn take(&mut self, from: NodeId, message: &[u8]) -> bool {
        let Some((subject, digest)) = read(message) else { return false };
        let race = self.open.entry(subject.clone()).or_insert_with(|| Race { claims: BTreeMap::new(), winner: None });
        // A node's first claim counts: whoever claims for everything has claimed for the first of it.
        if race.claims.contains_key(&from) {
            return true;
        }
        race.claims.insert(from, digest);
        let supporters = race.claims.values().filter(|claimed| **claimed == digest).count();
        if race.winner.is_none() && supporters >= self.need {
            race.winner = Some(digest);
        }
        let claimed = self.claimed.entry(from).or_default();
        claimed.push_back(subject);
        if claimed.len() > MOST_OF_NODE
            && let Some(oldest) = claimed.pop_front()
        {
            self.forget(from, &oldest);
        }
        true
    }

    /// Forgets a node's claim, and the race when that was the last one: what others have claimed stays, whoever claimed first.
    fn forget(&mut self, node: NodeId, subject: &Subject) {
        let Some(race) = self.open.get_mut(subject) else { return };
        race.claims.remove(&node);
        if race.claims.is_empty() {
            self.open.remove(subject);
        }
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

    /// How many claims of this node are remembered.
    #[must_use]
    pub fn claims_of(&self, node: NodeId) -> usize {
        self.claimed.get(&node).map_or(0, VecDeque::len)
    }
}

//! The nodes that were blamed lately, for status and metrics.

use core::{cmp::Reverse, time::Duration};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Instant,
};

use theta_names::{NodeId, Seldom, WallTime};
use theta_rounds::Offence;

use crate::{Culprit, NodeOffence};

/// A node that misbehaved, and when this node saw it.
#[derive(Clone, Debug)]
pub struct CulpritRecord {
    /// When this node saw it.
    pub time: WallTime,
    /// The node and what it did; the instance is [`InstanceId::NONE`](crate::InstanceId::NONE) if the bytes did not
    /// even name one.
    pub culprit: Culprit,
}

/// The most recent culprits, bounded in all and for each node, so that one with many offences cannot displace the
/// others, and none its own graver ones: what a node sends at no cost makes room for nothing that was found of it.
#[derive(Debug, Default)]
pub(crate) struct Culprits(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    records: VecDeque<CulpritRecord>,
    logged: HashMap<NodeId, Logged>,
    /// By node and gravity, so that what a node sends at no cost keeps nothing graver out.
    noise: HashMap<(NodeId, Gravity), Noise>,
}

/// How much an offence says. Where there is no room the least grave go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Gravity {
    /// Bytes that mean nothing, which anybody makes as many of as it likes.
    Noise,
    /// Another view of what may be signed.
    Differs,
    /// A lie that this node has seen.
    Seen,
    /// A lie that its liar has signed, which convinces others.
    Proven,
}

/// What there is any number of, of one node: what it has sent that was no message, or its parts of what this node's agents refuse.
#[derive(Debug)]
struct Noise {
    /// When it is named.
    line: Seldom,
    /// How many records it has had since then.
    records: u64,
}

/// How many lines of the log a node has had in the current second.
#[derive(Debug)]
struct Logged {
    since: Instant,
    lines: u32,
}

impl Culprits {
    const LIMIT: usize = 1_024;
    const LIMIT_PER_PARTY: usize = 64;
    const LOG_LINES_PER_SECOND: u32 = 10;
    /// The time in which a node that sends noise is named once, and has so many records.
    const NOISE: Duration = Duration::from_secs(60);
    const NOISE_RECORDS: u64 = 16;

    /// Records a culprit; returns whether to log it, too, so that a node with many offences cannot fill the disk.
    pub(crate) fn push(&self, culprit: Culprit) -> bool {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (party, now) = (culprit.party, Instant::now());
        let logged = inner.logged.entry(party).or_insert(Logged { since: now, lines: 0 });
        if now.duration_since(logged.since) >= Duration::from_secs(1) {
            *logged = Logged { since: now, lines: 0 };
        }
        logged.lines = logged.lines.saturating_add(1);
        let worth_a_line = logged.lines <= Self::LOG_LINES_PER_SECOND;
        inner.record(culprit);
        worth_a_line
    }

    /// Takes what there is any number of, as a message that was none; records the first few of a node in a minute. `None` if this one was left out; `Some(Some(_))` if the log
    /// is to name the node: once in that time, and with how many it did not name in the time before.
    pub(crate) fn noise(&self, culprit: &Culprit) -> Option<Option<u64>> {
        self.noise_at(culprit, Instant::now())
    }

    fn noise_at(&self, culprit: &Culprit, now: Instant) -> Option<Option<u64>> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let noise = inner.noise.entry((culprit.party, Gravity::of(&culprit.offence)));
        let noise = noise.or_insert_with(|| Noise { line: Seldom::every(Self::NOISE), records: 0 });
        let line = noise.line.is_time(now);
        if line.is_some() {
            noise.records = 0;
        }
        if noise.records >= Self::NOISE_RECORDS {
            return None;
        }
        noise.records = noise.records.saturating_add(1);
        inner.record(culprit.clone());
        Some(line)
    }

    /// At most so many records, the newest first: of each node its gravest one, before a second one of any other.
    pub(crate) fn told(&self, most: usize) -> Vec<CulpritRecord> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut records: Vec<(usize, &CulpritRecord)> = inner.records.iter().enumerate().collect();
        records.sort_by_key(|(place, record)| Reverse((Gravity::of(&record.culprit.offence), *place)));
        let mut turns: HashMap<NodeId, usize> = HashMap::new();
        let in_turn = records.into_iter().map(|(place, record)| {
            let turn = turns.entry(record.culprit.party).or_default();
            *turn = turn.saturating_add(1);
            (*turn, Reverse(place), record)
        });
        let mut told: Vec<_> = in_turn.collect();
        told.sort_by_key(|(turn, place, _)| (*turn, *place));
        told.truncate(most);
        told.sort_by_key(|(_, place, _)| *place);
        told.into_iter().map(|(_, _, record)| record.clone()).collect()
    }

    /// All records, the oldest first.
    pub(crate) fn list(&self) -> Vec<CulpritRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).records.iter().cloned().collect()
    }
}

impl Gravity {
    fn of(offence: &NodeOffence) -> Self {
        match offence {
            NodeOffence::Envelope(_) => Self::Noise,
            NodeOffence::Consent => Self::Differs,
            NodeOffence::Promise(_) => Self::Seen,
            NodeOffence::Slot(_) => Self::Proven,
            NodeOffence::Instance(offence) => Self::in_protocol(offence, Self::Seen),
            NodeOffence::Ceremony(offence) => Self::in_protocol(offence, Self::Proven),
        }
    }

    /// That of an offence in a protocol whose own reasons are so grave.
    const fn in_protocol<M>(offence: &Offence<M>, own: Self) -> Self {
        match offence {
            Offence::Malformed(_) | Offence::UnknownSlot | Offence::WrongChannel { .. } | Offence::TooLong { .. } => {
                Self::Noise
            }
            _ => own,
        }
    }
}

impl Inner {
    /// Adds a record. Where there is no room it takes the place of the same node's, if that has its share, or of one of the node that has the
    /// most: the oldest of the least grave. A record that is less grave than all of its node's is left out then.
    fn record(&mut self, culprit: Culprit) {
        let party = culprit.party;
        let record = CulpritRecord { time: WallTime::now(), culprit };
        if self.count(party) >= Culprits::LIMIT_PER_PARTY {
            self.replace(party, record);
        } else if self.records.len() >= Culprits::LIMIT {
            self.replace(self.most().unwrap_or(party), record);
        } else {
            self.records.push_back(record);
        }
    }

    fn count(&self, party: NodeId) -> usize {
        self.records.iter().filter(|record| record.culprit.party == party).count()
    }

    /// The node with the most records.
    fn most(&self) -> Option<NodeId> {
        let mut counts: HashMap<NodeId, usize> = HashMap::new();
        for record in &self.records {
            let count = counts.entry(record.culprit.party).or_default();
            *count = count.saturating_add(1);
        }
        counts.into_iter().max_by_key(|(party, count)| (*count, *party)).map(|(party, _)| party)
    }

    /// Puts a record in the place of one of this node's.
    fn replace(&mut self, party: NodeId, record: CulpritRecord) {
        let theirs = self.records.iter().enumerate().filter(|(_, kept)| kept.culprit.party == party);
        let least = theirs.map(|(place, kept)| (Gravity::of(&kept.culprit.offence), place)).min();
        let Some((gravity, place)) = least else { return };
        // Of another node it goes whatever it is: who has the most keeps nobody else's out.
        if record.culprit.party == party && Gravity::of(&record.culprit.offence) < gravity {
            return;
        }
        self.records.remove(place);
        self.records.push_back(record);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use theta_protocols::Misbehaviour;

    use super::*;
    use crate::{EnvelopeError, InstanceId};

    fn culprit(party: u16, text: usize) -> Culprit {
        accused(party, NodeOffence::Instance(Offence::TooLong { len: text, most: 0 }))
    }

    fn accused(party: u16, offence: NodeOffence) -> Culprit {
        Culprit { party: NodeId::try_from(party).unwrap(), offence, instance: InstanceId::NONE }
    }

    fn noise(party: u16, version: u32) -> Culprit {
        accused(party, EnvelopeError::Version(version).into())
    }

    fn false_share(party: u16) -> Culprit {
        accused(party, NodeOffence::Instance(Offence::Protocol(Misbehaviour::InvalidShare)))
    }

    fn false_statement(party: u16) -> Culprit {
        let said = Bytes::from_static(b"signed");
        let offence = Offence::Equivocation { first: said.clone(), second: said };
        accused(party, NodeOffence::Ceremony(Box::new(offence)))
    }

    /// What a node sends at no cost would push out what it was found to have done.
    #[test]
    fn noise_displaces_nothing_that_was_found() {
        let (culprits, start) = (Culprits::default(), Instant::now());
        let (share, statement) = (false_share(2), false_statement(2));
        assert!(culprits.push(share.clone()) && culprits.push(statement.clone()));
        for minute in 0..100 {
            for version in 0..Culprits::NOISE_RECORDS {
                let version = u32::try_from(minute * Culprits::NOISE_RECORDS + version).unwrap();
                culprits.noise_at(&noise(2, version), start + Duration::from_secs(60 * minute)).unwrap();
            }
        }
        for text in 0..1_000 {
            culprits.push(culprit(2, text));
        }
        let list = || culprits.list().into_iter().map(|record| record.culprit).collect::<Vec<_>>();
        assert_eq!(list().len(), Culprits::LIMIT_PER_PARTY);
        assert!(list().contains(&share) && list().contains(&statement), "{:?}", list());
        assert_eq!(list().last(), Some(&culprit(2, 999)), "of what is as grave the newest is kept");
        // Nor do lies that this node alone has seen displace what convinces others; and where all that is kept is graver, noise finds no place.
        for _ in 0..1_000 {
            culprits.push(false_share(2));
        }
        culprits.push(noise(2, 0));
        assert_eq!(list().len(), Culprits::LIMIT_PER_PARTY);
        assert_eq!(list().iter().filter(|culprit| **culprit == false_share(2)).count(), Culprits::LIMIT_PER_PARTY - 1);
        assert!(list().contains(&statement), "{:?}", list());
    }

    /// Sixteen nodes fill the list with what is grave: a seventeenth is seen all the same, and none of the others disappears.
    #[test]
    fn many_culprits_hide_nobody() {
        let culprits = Culprits::default();
        culprits.push(false_share(99));
        for party in (1..=16).flat_map(|party| [party; 64]) {
            culprits.push(false_statement(party));
        }
        culprits.push(noise(17, 0));
        let list = culprits.list();
        assert_eq!(list.len(), Culprits::LIMIT);
        for party in (1..=17).chain([99]) {
            assert!(list.iter().any(|record| record.culprit.party.get() == party), "{party}");
        }
        // What is told is fewer, and nobody is left out of it either.
        let told = culprits.told(20);
        assert_eq!(told.len(), 20);
        assert_eq!(told[0].culprit, noise(17, 0), "the newest is first");
        for party in (1..=17).chain([99]) {
            assert!(told.iter().any(|record| record.culprit.party.get() == party), "{party}");
        }
    }

    #[test]
    fn a_flood_of_noise_is_named_once() {
        let (culprits, start) = (Culprits::default(), Instant::now());
        let at = |party, second| culprits.noise_at(&culprit(party, 0), start + Duration::from_secs(second));
        assert_eq!(at(2, 0), Some(Some(0)), "the first is named at once");
        assert!((1..16).all(|_| at(2, 0) == Some(None)));
        assert!((0..10_000).all(|_| at(2, 59).is_none()), "the others are counted only");
        assert_eq!(at(3, 59), Some(Some(0)), "each has its own measure");
        assert_eq!(at(2, 60), Some(Some(10_015)), "15 of them are in the list");
        assert_eq!(at(2, 61), Some(None));
        assert_eq!(culprits.list().len(), 19);
        // Nor does it hide that the node takes part in what an agent here refuses.
        assert!((0..100).filter_map(|_| at(2, 61)).count() < 16);
        let disputed = accused(2, NodeOffence::Consent);
        assert_eq!(culprits.noise_at(&disputed, start + Duration::from_secs(61)), Some(Some(0)));
        assert_eq!(culprits.list().last().unwrap().culprit, disputed);
    }

    #[test]
    fn a_noisy_culprit_does_not_hide_the_others() {
        let culprits = Culprits::default();
        assert!(culprits.push(culprit(1, 0)));
        let began = Instant::now();
        let lines = (0..10_000).filter(|&i| culprits.push(culprit(2, i))).count();
        let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 2;
        assert!((10..=10 * seconds).contains(&lines), "{lines} lines");
        let list = culprits.list();
        assert_eq!(list.len(), 1 + Culprits::LIMIT_PER_PARTY);
        assert_eq!(list[0].culprit, culprit(1, 0));
        assert_eq!(list.last().unwrap().culprit, culprit(2, 9_999));
    }
}

//! The nodes that were blamed lately, for status and metrics.

use core::time::Duration;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Instant,
};

use theta_names::{NodeId, WallTime};

use crate::Culprit;

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
/// others.
#[derive(Debug, Default)]
pub(crate) struct Culprits(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    records: VecDeque<CulpritRecord>,
    logged: HashMap<NodeId, Logged>,
    noise: HashMap<NodeId, Noise>,
}

/// What a node has sent since then that was no message.
#[derive(Debug)]
struct Noise {
    since: Instant,
    messages: u64,
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
    const NOISE_PER_MINUTE: u64 = 16;

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

    /// Takes a message that was none; records the first few of a node in a minute. `None` if this one was left out; `Some(Some(_))` if the log
    /// is to name the node: once in that time, and with how many were left out in the time before.
    pub(crate) fn noise(&self, culprit: &Culprit) -> Option<Option<u64>> {
        self.noise_at(culprit, Instant::now())
    }

    fn noise_at(&self, culprit: &Culprit, now: Instant) -> Option<Option<u64>> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut line = None;
        let noise = inner.noise.entry(culprit.party).or_insert_with(|| {
            line = Some(0);
            Noise { since: now, messages: 0 }
        });
        if now.saturating_duration_since(noise.since) >= Duration::from_secs(60) {
            line = Some(noise.messages.saturating_sub(Self::NOISE_PER_MINUTE));
            *noise = Noise { since: now, messages: 0 };
        }
        noise.messages = noise.messages.saturating_add(1);
        if noise.messages > Self::NOISE_PER_MINUTE {
            return None;
        }
        inner.record(culprit.clone());
        Some(line)
    }

    /// All records, the oldest first.
    pub(crate) fn list(&self) -> Vec<CulpritRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).records.iter().cloned().collect()
    }
}

impl Inner {
    /// Adds a record, in the place of the same node's oldest one if it has many.
    fn record(&mut self, culprit: Culprit) {
        let (records, party) = (&mut self.records, culprit.party);
        let theirs = |record: &CulpritRecord| record.culprit.party == party;
        if records.iter().filter(|record| theirs(record)).count() >= Culprits::LIMIT_PER_PARTY
            && let Some(oldest) = records.iter().position(theirs)
        {
            records.remove(oldest);
        } else if records.len() >= Culprits::LIMIT {
            records.pop_front();
        }
        records.push_back(CulpritRecord { time: WallTime::now(), culprit });
    }
}

#[cfg(test)]
mod tests {
    use theta_rounds::Offence;

    use super::*;
    use crate::{InstanceId, NodeOffence};

    fn culprit(party: u16, text: usize) -> Culprit {
        let party = NodeId::try_from(party).unwrap();
        let offence = Offence::TooLong { len: text, most: 0 };
        Culprit { party, offence: NodeOffence::Instance(offence), instance: InstanceId::NONE }
    }

    #[test]
    fn a_flood_of_noise_is_named_once() {
        let (culprits, start) = (Culprits::default(), Instant::now());
        let at = |party, second| culprits.noise_at(&culprit(party, 0), start + Duration::from_secs(second));
        assert_eq!(at(2, 0), Some(Some(0)), "the first is named at once");
        assert!((1..16).all(|_| at(2, 0) == Some(None)));
        assert!((0..10_000).all(|_| at(2, 59).is_none()), "the others are counted only");
        assert_eq!(at(3, 59), Some(Some(0)), "each has its own measure");
        assert_eq!(at(2, 60), Some(Some(10_000)));
        assert_eq!(at(2, 61), Some(None));
        assert_eq!(culprits.list().len(), 19);
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

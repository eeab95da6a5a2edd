//! Where the time of a request goes at a node, from what the node says of its stages.
//!
//! Stages overlap in what a node says: the last share is taken in and, within that, combined; `finished` is all of it. Here each moment belongs
//! to one stage, the most particular of those that it is in, so that their sum is the whole.

use std::collections::BTreeMap;

/// What a node did for one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Part {
    pub(crate) node: u16,
    pub(crate) trace: [u8; 16],
    /// Each with its name, begin and end, in nanoseconds since 1970.
    pub(crate) stages: Vec<(String, u64, u64)>,
}

/// Stages whose moments are told apart, the most particular first; their names in metrics and in the results.
const WORK: [(&str, &str); 5] = [
    ("combining", "combine"),
    ("share_received", "take shares in"),
    ("share_made", "make a share"),
    ("ciphertext_validated", "validate"),
    ("instance_assigned", "wait for a thread"),
];
/// Before the instance: the request arrives, is read, allowed and put on record.
pub(super) const BEFORE: &str = "arrive and be granted";
/// Between the stages of the instance: the shares of others have not come.
const WAITING: &str = "wait for shares";
/// After it.
const AFTER: &str = "answer";

/// Every stage in the order in which they follow each other, as the results have them.
pub(crate) const ORDER: [&str; 10] = [
    "arrive",
    "read",
    "allow and record",
    "wait for a thread",
    "validate",
    "make a share",
    "wait for shares",
    "take shares in",
    "combine",
    "answer",
];

impl Part {
    fn first(&self, name: &str) -> Option<(u64, u64)> {
        self.stages.iter().find(|(stage, ..)| stage == name).map(|(_, begin, end)| (*begin, *end))
    }

    /// When the node heard of the request first, as far as it says so.
    fn began(&self) -> Option<u64> {
        let finished = self.first("finished")?;
        Some(self.first("returned").map_or(finished.0, |returned| returned.0.min(finished.0)))
    }

    /// Whether all of it was after a moment. What a node did for a request from before, such as one for warming up, may be told of late.
    pub(super) fn is_since(&self, moment: u64) -> bool {
        self.stages.iter().all(|(_, begin, _)| *begin >= moment)
    }

    /// From the request's arrival to the result, in milliseconds; `None` if there is no result.
    pub(super) fn latency_ms(&self) -> Option<f64> {
        let (_, end) = self.first("finished")?;
        Some(micros(end.saturating_sub(self.began()?)) / 1e3)
    }

    /// Microseconds in each stage; `None` if there is no result.
    pub(super) fn split(&self) -> Option<BTreeMap<&'static str, f64>> {
        let (begin, end) = self.first("finished")?;
        let mut split: BTreeMap<&str, u64> = BTreeMap::new();
        for (rank, time) in self.exclusive(begin, end) {
            let name = rank.and_then(|rank| WORK.get(rank)).map_or(WAITING, |(_, name)| *name);
            *split.entry(name).or_default() += time;
        }
        if let Some((arrived, left)) = self.first("returned") {
            split.insert(BEFORE, begin.saturating_sub(arrived));
            split.insert(AFTER, left.saturating_sub(end));
        }
        Some(split.into_iter().map(|(name, nanos)| (name, micros(nanos))).collect())
    }

    /// Pieces of the time from `begin` to `end`, each with the place in [`WORK`] of the stage that it belongs to.
    fn exclusive(&self, begin: u64, end: u64) -> Vec<(Option<usize>, u64)> {
        let mut edges: Vec<(u64, usize, bool)> = Vec::new();
        for (name, from, to) in &self.stages {
            let Some(rank) = WORK.iter().position(|(stage, _)| stage == name) else { continue };
            edges.extend([((*from).clamp(begin, end), rank, true), ((*to).clamp(begin, end), rank, false)]);
        }
        edges.sort_unstable();
        let mut open = [0_u32; WORK.len()];
        let (mut pieces, mut at) = (Vec::new(), begin);
        for (time, rank, opens) in edges {
            pieces.push((open.iter().position(|count| *count > 0), time.saturating_sub(at)));
            at = time;
            if let Some(count) = open.get_mut(rank) {
                // Of two edges at one moment the closing one comes first, which may belong to a stage that took no time.
                *count = if opens { count.wrapping_add(1) } else { count.wrapping_sub(1) };
            }
        }
        pieces.push((None, end.saturating_sub(at)));
        pieces
    }
}

fn micros(nanos: u64) -> f64 {
    // Times of requests are far below the 285 years at which this would lose nanoseconds.
    std::time::Duration::from_nanos(nanos).as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(stages: &[(&str, u64, u64)]) -> Part {
        let stages = stages.iter().map(|(name, from, to)| ((*name).to_owned(), from * 1_000, to * 1_000)).collect();
        Part { stages, ..Part::default() }
    }

    /// Microseconds: arrives at 100, is granted at 150, finished at 1,000, answered at 1,020.
    fn whole() -> Part {
        part(&[
            ("instance_assigned", 150, 160),
            ("ciphertext_validated", 160, 300),
            ("share_made", 310, 400),
            ("share_received", 500, 510),
            ("share_received", 800, 1_000),
            ("combining", 800, 1_000),
            ("finished", 150, 1_000),
            ("returned", 100, 1_020),
        ])
    }

    #[test]
    fn every_moment_belongs_to_one_stage() {
        let split = whole().split().unwrap();
        let expected = BTreeMap::from([
            (BEFORE, 50.0),
            ("wait for a thread", 10.0),
            ("validate", 140.0),
            ("make a share", 90.0),
            ("take shares in", 10.0),
            ("combine", 200.0),
            (WAITING, 400.0),
            (AFTER, 20.0),
        ]);
        assert_eq!(split.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, time) in &expected {
            assert!((split[name] - time).abs() < 1e-6, "{name}: {split:?}");
        }
        assert!((split.values().sum::<f64>() - 920.0).abs() < 1e-6, "the sum is the whole");
        assert_eq!(whole().latency_ms(), Some(0.9));
    }

    #[test]
    fn an_answer_that_nobody_waited_for_and_a_request_without_a_result() {
        let mut unanswered = whole();
        unanswered.stages.retain(|(name, ..)| name != "returned");
        assert_eq!(unanswered.latency_ms(), Some(0.85));
        assert!(!unanswered.split().unwrap().contains_key(BEFORE));
        let mut unfinished = whole();
        unfinished.stages.retain(|(name, ..)| name != "finished");
        assert_eq!((unfinished.latency_ms(), unfinished.split()), (None, None));
    }

    #[test]
    fn what_began_before_is_not_since() {
        assert!(whole().is_since(100_000) && !whole().is_since(100_001));
        assert!(!part(&[("returned", 10, 900), ("share_received", 800, 810)]).is_since(500_000));
    }

    #[test]
    fn stages_that_take_no_time_or_reach_beyond_do_not_confuse() {
        let odd = part(&[
            ("share_made", 0, 20),
            ("share_received", 50, 50),
            ("share_received", 90, 500),
            ("finished", 10, 100),
        ]);
        let split = odd.split().unwrap();
        assert!(
            (split["make a share"] - 10.0).abs() < 1e-6 && (split["take shares in"] - 10.0).abs() < 1e-6,
            "{split:?}"
        );
        assert!((split.values().sum::<f64>() - 90.0).abs() < 1e-6, "{split:?}");
    }
}

//! Makes spans of stages: for each request one for the node's part, and under it one for each stage.

use core::time::Duration;
use std::collections::HashMap;

use theta_names::WallTime;

use crate::layer::Heard;

/// The most requests whose spans are put together at one time. Stages of more are lost, and counted.
const REQUESTS: usize = 4_096;
/// The most stages of one request: shares of 127 nodes and the rest. More are lost, and counted.
const STAGES: usize = 256;
/// A request of which nothing has been heard for so long is over here.
const QUIET: Duration = Duration::from_secs(2);

/// What a node did for one request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) instance: [u8; 32],
    pub(crate) scheme: String,
    /// Each with its name, its beginning and its end.
    pub(crate) stages: Vec<(String, WallTime, WallTime)>,
}

impl Part {
    /// From the beginning of the first stage to the end of the last.
    pub(crate) fn times(&self) -> Option<(WallTime, WallTime)> {
        let begin = self.stages.iter().map(|(_, begin, _)| *begin).min()?;
        let end = self.stages.iter().map(|(.., end)| *end).max()?;
        Some((begin, end))
    }
}

/// Parts that are not over yet.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    /// Each with the time at which something was heard of it last.
    open: HashMap<[u8; 32], (Part, WallTime)>,
    lost: u64,
}

impl Assembly {
    /// Takes a stage in.
    pub(crate) fn hear(&mut self, heard: Heard) {
        let Heard { instance, stage, scheme, took, at } = heard;
        if !self.open.contains_key(&instance) && self.open.len() >= REQUESTS {
            self.lost = self.lost.saturating_add(1);
            return;
        }
        let part = || (Part { instance, scheme, stages: Vec::new() }, at);
        let (part, last) = self.open.entry(instance).or_insert_with(part);
        *last = at;
        if part.stages.len() < STAGES {
            part.stages.push((stage, at.minus(took), at));
        } else {
            self.lost = self.lost.saturating_add(1);
        }
    }

    /// Gives out what is over at this time; all that there is if `all`.
    pub(crate) fn take(&mut self, now: WallTime, all: bool) -> Vec<Part> {
        // A clock that was set back does not keep parts for ever.
        let over = |last: WallTime| now.since(last).is_none_or(|since| since >= QUIET);
        self.open.extract_if(|_, (_, last)| all || over(*last)).map(|(_, (part, _))| part).collect()
    }

    /// How many stages found no room since this was asked last.
    pub(crate) fn lost(&mut self) -> u64 {
        core::mem::take(&mut self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(instance: u16, stage: &str, at: WallTime, took: u64) -> Heard {
        let mut id = [0; 32];
        id[..2].copy_from_slice(&instance.to_be_bytes());
        let (stage, scheme) = (stage.to_owned(), "sg02-ristretto255".to_owned());
        Heard { instance: id, stage, scheme, took: Duration::from_millis(took), at }
    }

    #[test]
    fn a_part_is_over_when_nothing_more_is_heard_of_it() {
        let at = |millis: u64| WallTime::since_1970(Duration::from_millis(1_000_000 + millis));
        let mut assembly = Assembly::default();
        assembly.hear(heard(1, "share_made", at(5), 4));
        assembly.hear(heard(2, "share_made", at(6), 1));
        assembly.hear(heard(1, "returned", at(9), 9));
        assert_eq!(assembly.take(at(1_500), false), []);
        let over = assembly.take(at(2_006), false);
        assert_eq!(over.len(), 1);
        assert_eq!(over[0].times(), Some((at(5), at(6))));
        let rest = assembly.take(at(2_007), true);
        assert_eq!(rest[0].times(), Some((at(0), at(9))));
        assert_eq!(rest[0].stages.iter().map(|stage| stage.0.as_str()).collect::<Vec<_>>(), ["share_made", "returned"]);
        assert_eq!((assembly.take(at(9_000), true), assembly.lost()), (Vec::new(), 0));
    }

    #[test]
    fn requests_and_stages_are_bounded() {
        let now = WallTime::since_1970(Duration::from_secs(1_000));
        let mut assembly = Assembly::default();
        (0..=STAGES).for_each(|_| assembly.hear(heard(0, "share_received", now, 1)));
        (0..=u16::try_from(REQUESTS).unwrap()).for_each(|number| assembly.hear(heard(number, "share_made", now, 1)));
        // One stage of request 0 twice, and the request behind the last place.
        assert_eq!(assembly.lost(), 3);
        assert_eq!(assembly.take(now, true).len(), REQUESTS);
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_nothing() {
        let now = WallTime::since_1970(Duration::from_secs(1_000));
        let mut assembly = Assembly::default();
        assembly.hear(heard(1, "share_made", now, 5_000_000));
        assert_eq!(assembly.take(now.minus(Duration::from_secs(60)), false).len(), 1);
    }
}

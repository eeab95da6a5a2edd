//! Messages between nodes that are far from each other, by a profile of `theta-wan`.

use std::collections::HashMap;
use std::time::Duration;

use theta_wan::{Fate, Link};

use crate::scenario::Distances;

const NANOSECONDS: u64 = 1_000_000;

/// The links of a run, each with its own delay, jitter, loss and rate.
pub(crate) struct Far {
    distances: Distances,
    seed: u64,
    links: HashMap<(u16, u16), Link>,
}

impl Far {
    pub(crate) fn new(distances: Distances, seed: u64) -> Self {
        Self { distances, seed, links: HashMap::new() }
    }

    /// How many milliseconds a message takes that is sent now, at least one; `None` if it is lost. When `calm`, a loss is made up
    /// for by sending again, as a connection does, and costs the delay once more.
    pub(crate) fn takes(&mut self, now: u64, from: u16, to: u16, bytes: usize, calm: bool) -> Option<u64> {
        let Some(line) = self.distances.profile().between(from, to) else { return Some(1) };
        let seed = self.seed;
        let link = self.links.entry((from, to)).or_insert_with(|| Link::new(line, seed, from, to));
        let sent = now.saturating_mul(NANOSECONDS);
        match link.send(sent, bytes) {
            Fate::Arrives(at) => Some(at.saturating_sub(sent).div_ceil(NANOSECONDS).max(1)),
            Fate::Lost | Fate::Dropped if calm => Some(1 + milliseconds(line.delay.saturating_mul(2))),
            Fate::Lost | Fate::Dropped => None,
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use theta_wan::Profile;

    use super::*;

    #[test]
    fn messages_take_what_the_profile_says_and_the_seed_decides() {
        let far = |seed| Far::new(Distances::new(Profile::find("four-regions").unwrap()), seed);
        let run = |seed, calm| {
            let mut far = far(seed);
            (0..20_000).map(|now| far.takes(now, 1, 2, 300, calm)).collect::<Vec<_>>()
        };
        let first = run(1, false);
        assert_eq!(first, run(1, false));
        assert_ne!(first, run(2, false));
        // Frankfurt to Sydney: 125 ms, 1.2 ms of jitter, one of 10,000 lost.
        assert!(first.iter().flatten().all(|ms| (124..=127).contains(ms)));
        let lost = first.iter().filter(|ms| ms.is_none()).count();
        assert!((1..=8).contains(&lost), "{lost}");
        let calm = run(1, true);
        assert_eq!(calm.iter().filter(|ms| **ms == Some(251)).count(), lost, "what was lost comes later");
        assert_eq!(far(1).takes(0, 1, 5, 300, false), Some(1), "two nodes of one region");
    }
}

//! How long a node waits for others that were drawn to do the work, before it does its part itself.

use core::time::Duration;
use std::collections::HashMap;

use theta_custody::KeyEntry;
use theta_names::{Delivery, NodeId};
use theta_network::PeerState;
use theta_schemes::Suite;
use tokio::time::Instant;

use crate::{OrchestratorConfig, instances::Shared};

/// How many times a message to the slower of those that count may pass until a result is overdue: the share to the combiner,
/// the combined value back, and once more for what both compute.
const PASSES: u32 = 3;
/// So many times what a node waits without quorum mode does it wait at most, however far behind it is.
const MOST_BEHIND: u32 = 16;
/// And no longer than this part of an instance's time.
const LOOKS: u32 = 4;

/// How long results take that come from those who were drawn, and by how much they differ, as TCP estimates round trips (RFC 6298):
/// on a busy group they take longer than messages do, and who gives up too early makes it busier still.
#[derive(Clone, Copy, Debug)]
struct Taken {
    mean: Duration,
    deviation: Duration,
}

impl Taken {
    fn first(took: Duration) -> Self {
        Self { mean: took, deviation: took / 2 }
    }

    fn and(self, took: Duration) -> Self {
        let deviation = (self.deviation * 3 + self.mean.abs_diff(took)) / 4;
        Self { mean: (self.mean * 7 + took) / 8, deviation }
    }

    fn patience(self) -> Duration {
        self.mean + 4 * self.deviation
    }
}

/// The latencies of the connected peers, read anew when they are older than a tick, and how long results took.
#[derive(Debug, Default)]
pub(crate) struct Hedge {
    read: Option<Instant>,
    latencies: Vec<(NodeId, Duration)>,
    taken: HashMap<Suite, Taken>,
}

impl Hedge {
    /// How long an instance of this key waits before its first look around.
    pub(crate) fn patience(&mut self, key: &KeyEntry, shared: &Shared, now: Instant) -> Duration {
        let config = &shared.config;
        if key.delivery != Delivery::Quorum {
            return config.resend_after;
        }
        if self.read.is_none_or(|read| now.duration_since(read) >= config.tick) {
            self.read = Some(now);
            let connected = shared.transport.status().into_iter().filter(|peer| peer.state == PeerState::Connected);
            self.latencies = connected.filter_map(|peer| Some((peer.peer, peer.latency?))).collect();
        }
        let threshold = key.public.threshold();
        let holders = self.latencies.iter().filter(|(peer, _)| key.holders.contains(*peer));
        let latencies = holders.map(|(_, latency)| *latency).collect();
        let by_latency = patience(latencies, (threshold.k(), threshold.n()), (config.hedge_after, config.resend_after));
        by_latency.max(self.by_results(key.suite).min(config.resend_after))
    }

    /// How long after its beginning an instance of this key looks around, if its time has come and the node is so far behind with its own work that
    /// this is longer than it waits anywhere else.
    pub(crate) fn longer(&self, key: &KeyEntry, config: &OrchestratorConfig, behind: Duration) -> Option<Duration> {
        // A node that has something to do is behind by that all the time.
        if behind < config.tick {
            return None;
        }
        let longest = longest(config, behind);
        let patience = if key.delivery == Delivery::Quorum { self.by_results(key.suite).min(longest) } else { longest };
        (patience > config.resend_after).then_some(patience)
    }

    fn by_results(&self, suite: Suite) -> Duration {
        self.taken.get(&suite).map_or(Duration::ZERO, |taken| taken.patience())
    }

    /// A result has come after so long, at a node that is so far behind; what is above the longest that it waits counts as that, so that one request
    /// that nobody else was asked for in time is soon forgotten. Liars who keep a result back make the others wait longer the next time, and no longer
    /// than without quorum mode.
    pub(crate) fn learn(&mut self, suite: Suite, took: Duration, (config, behind): (&OrchestratorConfig, Duration)) {
        let took = took.min(longest(config, behind));
        self.taken.entry(suite).and_modify(|taken| *taken = taken.and(took)).or_insert_with(|| Taken::first(took));
    }
}

/// The longest that a node waits for others before it looks around: what is configured, and as often as messages pass until a result is
/// there what a request waits at this node alone. The others' messages wait here as well; what a node that is behind asks for has come as a
/// rule, and a share that it makes in the place of others comes too late. Instances have time for more looks.
fn longest(config: &OrchestratorConfig, behind: Duration) -> Duration {
    let OrchestratorConfig { resend_after, instance_ttl, .. } = *config;
    let most = resend_after.saturating_mul(MOST_BEHIND).min(instance_ttl / LOOKS).max(resend_after);
    resend_after.saturating_add(behind.saturating_mul(PASSES)).min(most)
}

/// Three times the latency to the slowest peer but the t = k - 1 that may be bad, or to the (k - 1)-th fastest where that is
/// slower; within these bounds, and the longest where too few peers are known.
fn patience(mut latencies: Vec<Duration>, (k, n): (u16, u16), (least, most): (Duration, Duration)) -> Duration {
    latencies.sort_unstable();
    let rank = usize::from(n.saturating_sub(k).max(k.saturating_sub(1)).max(1));
    let latency = latencies.get(rank - 1).copied().unwrap_or(most);
    latency.saturating_mul(PASSES).max(least).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_how_long_results_take() {
        let ms = Duration::from_millis;
        let after = |times: &[u64]| {
            let mut times = times.iter().map(|time| ms(*time));
            let first = Taken::first(times.next().unwrap());
            times.fold(first, Taken::and).patience()
        };
        assert_eq!(after(&[100]), ms(300), "of one result little is known");
        assert!(after(&[100; 40]) < ms(101), "all take as long");
        assert!((ms(100)..ms(300)).contains(&after(&[80, 120].repeat(20))), "they differ");
        let calm = [vec![100; 40], vec![10; 40]].concat();
        assert!(after(&calm) < ms(20), "it is over");
        let one_late = [vec![10; 40], vec![250]].concat();
        assert!(after(&one_late) < ms(300), "one late result does not undo it for long");
        assert!(after(&[one_late, vec![10; 20]].concat()) < ms(30));
    }

    #[test]
    fn it_is_longer_only_as_far_as_the_node_itself_is_behind() {
        let ms = Duration::from_millis;
        let config = OrchestratorConfig::default();
        assert_eq!(longest(&config, Duration::ZERO), ms(250), "what is configured");
        assert_eq!(longest(&config, ms(300)), ms(1_150));
        assert_eq!(longest(&config, ms(60_000)), ms(4_000), "an end there is");
        let of_time = |instance_ttl| OrchestratorConfig { instance_ttl, ..OrchestratorConfig::default() };
        assert_eq!(longest(&of_time(ms(2_000)), ms(60_000)), ms(500), "there is time for more looks");
        assert_eq!(longest(&of_time(ms(100)), ms(60_000)), ms(250), "never less than is configured");
    }

    #[test]
    fn results_are_waited_for_as_long_as_they_take_at_a_node_that_is_behind_and_no_longer_elsewhere() {
        let ms = Duration::from_millis;
        let (config, suite) = (OrchestratorConfig::default(), Suite::ALL[0]);
        let after = |behind: Duration| {
            let mut hedge = Hedge::default();
            (0..40).for_each(|_| hedge.learn(suite, ms(700), (&config, behind)));
            hedge
        };
        let quick = after(Duration::ZERO);
        assert!((ms(250)..ms(260)).contains(&quick.by_results(suite)), "liars keep them back");
        let mut busy = after(ms(300));
        assert!((ms(700)..ms(720)).contains(&busy.by_results(suite)));
        busy.learn(suite, Duration::MAX, (&config, ms(300)));
        assert!(busy.taken[&suite].mean < ms(800), "one that nobody was asked for counts as the longest wait");
        busy.learn(suite, Duration::MAX, (&config, Duration::ZERO));
        assert!(
            busy.taken[&suite].mean < ms(720),
            "{:?}: and where the node is not behind as what is configured",
            busy.taken
        );
    }

    #[test]
    fn it_follows_the_slowest_but_those_that_may_be_bad() {
        let waits = |latencies: &[u64], threshold| {
            let latencies = latencies.iter().map(|millis| Duration::from_millis(*millis)).collect();
            patience(latencies, threshold, (Duration::from_millis(20), Duration::from_millis(250))).as_millis()
        };
        assert_eq!(waits(&[1, 1, 1, 1, 1, 1], (3, 7)), 20, "never sooner than that");
        assert_eq!(waits(&[900, 10, 900, 30, 20, 15], (3, 7)), 90, "two of six may be as slow as they like");
        assert_eq!(waits(&[900, 10, 900, 900, 20, 15], (3, 7)), 250, "never later than without quorum mode");
        assert_eq!(waits(&[10, 10, 10], (3, 7)), 250, "too few are known");
        assert_eq!(waits(&[10, 20, 30], (4, 4)), 90, "all of four are needed");
        assert_eq!(waits(&[], (1, 1)), 250);
    }
}

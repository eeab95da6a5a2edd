//! The limits and times of one orchestrator.

use core::time::Duration;
use std::thread;

use serde::Deserialize;
use theta_protocols::ecdsa::SetUpRoom;

/// How much work an orchestrator accepts and for how long it keeps it. Every field has a default; times are
/// milliseconds in configuration files (`instance_ttl_ms = 60000`), sizes are bytes. Limits hold for the whole node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OrchestratorConfig {
    /// CPU threads; 0 means one for each core. At most 1,024.
    pub threads: usize,
    /// Instances that may run at once.
    pub max_instances: usize,
    /// Requests that may wait for a CPU thread.
    pub max_queued_requests: usize,
    /// Bytes of all statements (messages, headers) that wait or run.
    pub max_statement_bytes: usize,
    /// Computations of [`Orchestrator::compute`](crate::Orchestrator::compute) that may wait or run.
    pub max_computations: usize,
    /// Commands of the node itself that may wait for one CPU thread. Messages of peers wait apart from them, in a queue
    /// for each peer, within the bounds of the backlog.
    pub inbox: usize,
    /// The time limit of an instance. One that waits longer than this before it first looks after itself (`resend_after_ms`) never does.
    #[serde(rename = "instance_ttl_ms", with = "milliseconds")]
    pub instance_ttl: Duration,
    /// How long an instance for which nobody waits goes on while fewer than k holders of its key are connected. A
    /// request that was sent without waiting counts as waited for that long.
    #[serde(rename = "unattended_ms", with = "milliseconds")]
    pub unattended: Duration,
    /// How long an instance waits for shares before it asks the silent peers to send theirs again. Each further wait is
    /// twice as long as the one before, up to 16 times this. The first is longer, up to as much, while the node is behind with its own work.
    #[serde(rename = "resend_after_ms", with = "milliseconds")]
    pub resend_after: Duration,
    /// How long an instance of a key in quorum mode waits at least for those that were drawn to do the work, before it does its
    /// own part. It waits three times as long as messages to its peers take, and never longer than an instance waits before it asks (`resend_after_ms`).
    #[serde(rename = "hedge_after_ms", with = "milliseconds")]
    pub hedge_after: Duration,
    /// The least time between two answers to one peer that asks again in one instance.
    #[serde(rename = "resend_interval_ms", with = "milliseconds")]
    pub resend_interval: Duration,
    /// The resolution of all times but those below it, for which threads wake up between two ticks.
    #[serde(rename = "tick_ms", with = "milliseconds")]
    pub tick: Duration,
    /// How long a result is kept.
    #[serde(rename = "results_age_ms", with = "milliseconds")]
    pub results_age: Duration,
    /// Results that are kept.
    pub results_count: usize,
    /// Bytes of the results that are kept, with all that belongs to them.
    pub results_bytes: usize,
    /// Pairs of FROST nonces that each signer makes in advance for each other node and key, so that a signature takes
    /// one round. A coordinator keeps at most this many commitments of one peer, a signer twice as many nonces. Of presignatures of
    /// ECDSA more are made below this number, whether anybody asks for signatures or not, and of each holder's three times its part, or what two programs
    /// make, are kept at most; of keys with a dishonest majority only where all holders sign. 0 turns it off.
    pub nonces_per_peer: usize,
    /// Whether used FROST nonces and ECDSA presignatures are recorded in the node's store before they sign.
    pub burn_nonces: bool,
    /// What programs of ECDSA without an honest majority leave to later ones, of all keys together: transfers with so many partners, 16 KiB each. Those
    /// go first that nobody has used for longest.
    pub set_up_pairs: usize,
    /// The least time between two ticks of the custodian, for its ceremonies and its peers. It is as long as messages to half of the peers
    /// take where they take longer, and 16 times this at most.
    #[serde(rename = "custody_tick_ms", with = "milliseconds")]
    pub custody_tick: Duration,
    /// Messages of one peer, and questions of the node itself, that may wait for the custodian. Further messages are
    /// dropped; peers send them again.
    pub custody_inbox: usize,
    /// How long a message waits for its request.
    #[serde(rename = "backlog_age_ms", with = "milliseconds")]
    pub backlog_age: Duration,
    /// Messages of one peer that may wait for their requests.
    pub backlog_messages_per_peer: usize,
    /// Bytes of one peer's messages that may wait for their requests.
    pub backlog_bytes_per_peer: usize,
}

impl Default for OrchestratorConfig {
    fn default() -> Self {
        Self {
            threads: 0,
            max_instances: 10_000,
            max_queued_requests: 10_000,
            max_statement_bytes: 256 << 20,
            max_computations: 1_024,
            inbox: 4_096,
            instance_ttl: Duration::from_secs(60),
            unattended: Duration::from_secs(15),
            resend_after: Duration::from_millis(250),
            hedge_after: Duration::from_millis(20),
            resend_interval: Duration::from_secs(1),
            tick: Duration::from_millis(50),
            results_age: Duration::from_secs(5 * 60),
            results_count: 16_384,
            results_bytes: 32 << 20,
            nonces_per_peer: 32,
            burn_nonces: false,
            set_up_pairs: SetUpRoom::MOST_PAIRS,
            custody_tick: Duration::from_millis(250),
            custody_inbox: 256,
            backlog_age: Duration::from_secs(10),
            backlog_messages_per_peer: 16_384,
            backlog_bytes_per_peer: 8 << 20,
        }
    }
}

/// A limit or time that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {got}: it must be from {least} to {most}")]
pub struct ConfigError {
    /// The name of the setting.
    pub field: &'static str,
    /// Its value.
    pub got: u128,
    /// The least that is allowed.
    pub least: u128,
    /// The most that is allowed.
    pub most: u128,
}

impl OrchestratorConfig {
    /// Checks that every limit and time is in its range.
    ///
    /// # Errors
    /// [`ConfigError`] with the first field that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let count = |field, got: usize, least: usize, most: usize| {
            let error = ConfigError { field, got: got as u128, least: least as u128, most: most as u128 };
            if (least..=most).contains(&got) { Ok(()) } else { Err(error) }
        };
        let time = |field, got: Duration| {
            let error = ConfigError { field, got: got.as_millis(), least: 1, most: DAY.as_millis() };
            if (Duration::from_millis(1)..=DAY).contains(&got) { Ok(()) } else { Err(error) }
        };
        count("threads", self.threads, 0, 1_024)?;
        count("max_instances", self.max_instances, 1, 10_000_000)?;
        count("max_queued_requests", self.max_queued_requests, 1, 10_000_000)?;
        count("max_statement_bytes", self.max_statement_bytes, 1, 1 << 40)?;
        count("max_computations", self.max_computations, 1, 1_000_000)?;
        count("inbox", self.inbox, 1, 1_000_000)?;
        count("results_count", self.results_count, 1, 100_000_000)?;
        count("results_bytes", self.results_bytes, 1, 1 << 40)?;
        count("nonces_per_peer", self.nonces_per_peer, 0, 1_024)?;
        count("set_up_pairs", self.set_up_pairs, 0, 1_000_000)?;
        count("custody_inbox", self.custody_inbox, 1, 1_000_000)?;
        count("backlog_messages_per_peer", self.backlog_messages_per_peer, 1, 100_000_000)?;
        count("backlog_bytes_per_peer", self.backlog_bytes_per_peer, 1, 1 << 40)?;
        time("instance_ttl_ms", self.instance_ttl)?;
        time("unattended_ms", self.unattended)?;
        time("resend_after_ms", self.resend_after)?;
        time("hedge_after_ms", self.hedge_after)?;
        time("resend_interval_ms", self.resend_interval)?;
        time("tick_ms", self.tick)?;
        time("results_age_ms", self.results_age)?;
        time("custody_tick_ms", self.custody_tick)?;
        time("backlog_age_ms", self.backlog_age)
    }

    /// How many CPU threads there will be.
    #[must_use]
    pub fn thread_count(&self) -> usize {
        match self.threads {
            0 => thread::available_parallelism().map_or(1, core::num::NonZero::get),
            threads => threads,
        }
    }
}

/// Durations as whole milliseconds.
mod milliseconds {
    use core::time::Duration;

    use serde::{Deserialize, Deserializer};

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_left_out_have_defaults() {
        let config: OrchestratorConfig = toml::from_str("max_instances = 7\ninstance_ttl_ms = 1500").unwrap();
        let expected = OrchestratorConfig {
            max_instances: 7,
            instance_ttl: Duration::from_millis(1_500),
            ..OrchestratorConfig::default()
        };
        assert_eq!(config, expected);
        assert_eq!(config.check(), Ok(()));
    }

    #[test]
    fn unknown_fields_are_refused() {
        let error = toml::from_str::<OrchestratorConfig>("max_instance = 7").unwrap_err().to_string();
        assert!(error.contains("max_instance") && error.contains("max_instances"), "{error}");
    }

    #[test]
    fn limits_that_cannot_work_are_named() {
        let config = OrchestratorConfig { inbox: 0, ..OrchestratorConfig::default() };
        assert_eq!(config.check().unwrap_err().to_string(), "inbox is 0: it must be from 1 to 1000000");
        let config = OrchestratorConfig { tick: Duration::ZERO, ..OrchestratorConfig::default() };
        assert_eq!(config.check().unwrap_err().field, "tick_ms");
    }
}

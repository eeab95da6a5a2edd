//! Bounds: a node says no before it runs out of anything.

use std::{num::NonZeroUsize, time::Duration};

use serde::{Deserialize, Serialize};
use theta_orchestration::OrchestratorConfig;

use super::error;

/// Bounds on what a node takes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// API requests being answered at one time; more are refused with `RESOURCE_EXHAUSTED`. Default 1,024: of a group of seven
    /// on two cores that is a queue of about eight seconds, behind which nobody should have to wait.
    #[serde(deserialize_with = "error::positive")]
    pub max_in_flight: NonZeroUsize,
    /// Bytes of all API requests being answered at one time. Default 256 MiB.
    #[serde(deserialize_with = "error::positive")]
    pub max_in_flight_bytes: NonZeroUsize,
    /// Bytes of one API message. Default 32 MiB.
    #[serde(deserialize_with = "error::positive")]
    pub max_message_bytes: NonZeroUsize,
    /// API connections at one time. Default 1,024.
    #[serde(deserialize_with = "error::positive")]
    pub max_connections: NonZeroUsize,
    /// Seconds that a new API connection has to complete its TLS handshake. Default 10.
    #[serde(deserialize_with = "error::positive")]
    pub handshake_seconds: NonZeroUsize,
    /// Instances running at one time. Default 10,000.
    #[serde(deserialize_with = "error::positive")]
    pub max_instances: NonZeroUsize,
    /// Seconds that an instance waits for shares before it fails. Default 60.
    #[serde(deserialize_with = "error::positive")]
    pub instance_seconds: NonZeroUsize,
    /// Results kept for repeated requests. Default 16,384.
    #[serde(deserialize_with = "error::positive")]
    pub max_results: NonZeroUsize,
    /// Bytes of the results that are kept. Default 32 MiB.
    #[serde(deserialize_with = "error::positive")]
    pub max_result_bytes: NonZeroUsize,
    /// Seconds that a result is kept. Default 300.
    #[serde(deserialize_with = "error::positive")]
    pub result_seconds: NonZeroUsize,
    /// Pairs of FROST nonces made in advance for each key and other node, 0 to 1,024; 0 turns it off. Default 32.
    pub nonces_per_peer: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            max_in_flight: size(1024),
            max_in_flight_bytes: size(256 << 20),
            max_message_bytes: size(32 << 20),
            max_connections: size(1024),
            handshake_seconds: size(10),
            max_instances: size(10_000),
            instance_seconds: size(60),
            max_results: size(16_384),
            max_result_bytes: size(32 << 20),
            result_seconds: size(300),
            nonces_per_peer: 32,
        }
    }
}

impl LimitsConfig {
    /// What of these is the orchestrator's to keep.
    pub(crate) fn orchestration(&self, cpu_threads: Option<NonZeroUsize>) -> OrchestratorConfig {
        OrchestratorConfig {
            threads: cpu_threads.map_or(0, NonZeroUsize::get),
            max_instances: self.max_instances.get(),
            max_queued_requests: self.max_instances.get(),
            instance_ttl: seconds(self.instance_seconds),
            results_count: self.max_results.get(),
            results_bytes: self.max_result_bytes.get(),
            results_age: seconds(self.result_seconds),
            nonces_per_peer: self.nonces_per_peer,
            ..OrchestratorConfig::default()
        }
    }
}

/// A time that is configured in seconds.
pub(crate) fn seconds(seconds: NonZeroUsize) -> Duration {
    Duration::from_secs(u64::try_from(seconds.get()).unwrap_or(u64::MAX))
}

const fn size(value: usize) -> NonZeroUsize {
    match NonZeroUsize::new(value) {
        Some(value) => value,
        None => NonZeroUsize::MIN,
    }
}

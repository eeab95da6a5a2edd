//! Bounds: a node refuses requests before it runs out of anything.

use std::{num::NonZeroUsize, time::Duration};

use serde::{Deserialize, Serialize};
use theta_network::doorway::DoorwayLimits;
use theta_orchestration::OrchestratorConfig;

use super::error;
use crate::grpc::{Bounds, ConnectionBounds};

/// Bounds on what a node takes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// The most API requests of clients being answered at one time, besides those reserved for each client; more are
    /// refused with `RESOURCE_EXHAUSTED`. Default 1,024: in a group of seven on two cores this is a queue of about eight
    /// seconds, and nobody should have to wait longer.
    #[serde(deserialize_with = "error::positive")]
    pub max_in_flight: NonZeroUsize,
    /// The most bytes of these requests and of their answers until these have left. Default 256 MiB.
    #[serde(deserialize_with = "error::positive")]
    pub max_in_flight_bytes: NonZeroUsize,
    /// The most of these requests from one client. Default 512.
    #[serde(deserialize_with = "error::positive")]
    pub max_client_requests: NonZeroUsize,
    /// The most of these bytes for one client. Default 128 MiB.
    #[serde(deserialize_with = "error::positive")]
    pub max_client_bytes: NonZeroUsize,
    /// Requests that are reserved for each client. Default 8.
    pub reserved_requests: usize,
    /// Bytes of requests and answers that are reserved for each client. Default 1 MiB.
    pub reserved_bytes: usize,
    /// The most requests at one time of all callers that are not identified by a certificate or a token of the policy.
    /// Signed requests are among them until they are read, unless an identified caller relays them. Default 64; at most
    /// three quarters of them from one address.
    #[serde(deserialize_with = "error::positive")]
    pub max_stranger_requests: NonZeroUsize,
    /// The most bytes of these requests and of their answers. Default 32 MiB.
    #[serde(deserialize_with = "error::positive")]
    pub max_stranger_bytes: NonZeroUsize,
    /// Seconds in which the body of a request must arrive. Default 10.
    #[serde(deserialize_with = "error::positive")]
    pub body_seconds: NonZeroUsize,
    /// A body has one second more for each of this many bytes that have arrived. Default 65,536.
    #[serde(deserialize_with = "error::positive")]
    pub body_bytes_per_second: NonZeroUsize,
    /// Seconds for which an answer waits until its receiver takes some of it; then the connection is closed. Default 30.
    #[serde(deserialize_with = "error::positive")]
    pub response_seconds: NonZeroUsize,
    /// The most bytes of one API message. Default 32 MiB.
    #[serde(deserialize_with = "error::positive")]
    pub max_message_bytes: NonZeroUsize,
    /// The most API connections at one time. Default 1,024.
    #[serde(deserialize_with = "error::positive")]
    pub max_connections: NonZeroUsize,
    /// The most connections of one client; its oldest is closed for a new one. Default 64.
    #[serde(deserialize_with = "error::positive")]
    pub max_client_connections: NonZeroUsize,
    /// The most connections of callers not identified so far; the oldest is closed for a new one. Default 128; at most
    /// three quarters of them from one address.
    #[serde(deserialize_with = "error::positive")]
    pub max_stranger_connections: NonZeroUsize,
    /// The most requests at one time on one API connection; further ones wait. Default 256.
    #[serde(deserialize_with = "error::positive")]
    pub max_connection_streams: NonZeroUsize,
    /// Seconds after which a client's connection without a request is closed. Default 600.
    #[serde(deserialize_with = "error::positive")]
    pub idle_seconds: NonZeroUsize,
    /// Seconds after which a connection without a request is closed if its caller is not identified. Default 10.
    #[serde(deserialize_with = "error::positive")]
    pub stranger_idle_seconds: NonZeroUsize,
    /// The most new API connections in their TLS handshake at one time; the oldest is closed for a new one. Default 1,024;
    /// at most three quarters of them from one address.
    #[serde(deserialize_with = "error::positive")]
    pub max_handshakes: NonZeroUsize,
    /// Seconds that a new API connection has to complete its TLS handshake. Default 5.
    #[serde(deserialize_with = "error::positive")]
    pub handshake_seconds: NonZeroUsize,
    /// The most instances running at one time. Default 10,000.
    #[serde(deserialize_with = "error::positive")]
    pub max_instances: NonZeroUsize,
    /// Seconds that an instance waits for shares before it fails. Default 60.
    #[serde(deserialize_with = "error::positive")]
    pub instance_seconds: NonZeroUsize,
    /// The most results kept for repeated requests. Default 16,384.
    #[serde(deserialize_with = "error::positive")]
    pub max_results: NonZeroUsize,
    /// The most bytes of these results. Default 32 MiB.
    #[serde(deserialize_with = "error::positive")]
    pub max_result_bytes: NonZeroUsize,
    /// Seconds for which a result is kept. Default 300.
    #[serde(deserialize_with = "error::positive")]
    pub result_seconds: NonZeroUsize,
    /// Pairs of FROST nonces made in advance for each key and other node, and presignatures for each key of ECDSA below which more are made, also while
    /// nobody signs, 0 to 1,024; 0 turns it off. The same at all nodes. Default 32.
    pub nonces_per_peer: usize,
    /// Whether the node's store records FROST nonces and ECDSA presignatures as used before they sign. Default no.
    pub burn_nonces: bool,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            max_in_flight: size(1024),
            max_in_flight_bytes: size(256 << 20),
            max_client_requests: size(512),
            max_client_bytes: size(128 << 20),
            reserved_requests: 8,
            reserved_bytes: 1 << 20,
            max_stranger_requests: size(64),
            max_stranger_bytes: size(32 << 20),
            body_seconds: size(10),
            body_bytes_per_second: size(64 << 10),
            response_seconds: size(30),
            max_message_bytes: size(32 << 20),
            max_connections: size(1024),
            max_client_connections: size(64),
            max_stranger_connections: size(128),
            max_connection_streams: size(256),
            idle_seconds: size(600),
            stranger_idle_seconds: size(10),
            max_handshakes: size(1024),
            handshake_seconds: size(5),
            max_instances: size(10_000),
            instance_seconds: size(60),
            max_results: size(16_384),
            max_result_bytes: size(32 << 20),
            result_seconds: size(300),
            nonces_per_peer: 32,
            burn_nonces: false,
        }
    }
}

impl LimitsConfig {
    /// The bounds on requests.
    pub(crate) fn admission(&self) -> Bounds {
        Bounds {
            requests: self.max_in_flight.get(),
            bytes: self.max_in_flight_bytes.get(),
            client_requests: self.max_client_requests.get(),
            client_bytes: self.max_client_bytes.get(),
            reserved_requests: self.reserved_requests,
            reserved_bytes: self.reserved_bytes,
            stranger_requests: self.max_stranger_requests.get(),
            stranger_bytes: self.max_stranger_bytes.get(),
            body: seconds(self.body_seconds),
            body_rate: self.body_bytes_per_second.get(),
            response: seconds(self.response_seconds),
        }
    }

    /// The bounds on connections.
    pub(crate) fn connections(&self) -> ConnectionBounds {
        ConnectionBounds {
            all: self.max_connections.get(),
            client: self.max_client_connections.get(),
            strangers: self.max_stranger_connections.get(),
            idle: seconds(self.idle_seconds),
            stranger_idle: seconds(self.stranger_idle_seconds),
        }
    }

    /// The bounds on handshakes.
    pub(crate) fn doorway(&self) -> DoorwayLimits {
        DoorwayLimits::of(self.max_handshakes, seconds(self.handshake_seconds))
    }

    /// The bounds of the orchestrator.
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
            burn_nonces: self.burn_nonces,
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

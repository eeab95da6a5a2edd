//! What a running node does for those who look after it, and who stands beside it: backups, the past of its audit log, its host, traces.

use std::{
    net::SocketAddr,
    num::{NonZeroU32, NonZeroU64},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};
use theta_statements::Name;

use super::{Sealing, error};

/// Backups that are made while the node runs. Without this section it makes none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupConfig {
    /// What seals them. Who asks for a backup names nothing: what it gets is of no use without this.
    pub sealing: Sealing,
}

/// What becomes of the past of the audit log. Without this section all of it stays in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditConfig {
    /// So many of the latest records stay in the store, and up to a quarter more; older ones go into files of JSON lines.
    pub keep: NonZeroU64,
    /// The folder of these files. Default `audit`.
    #[serde(default = "folder")]
    pub folder: PathBuf,
}

/// The host that orders messages for all nodes: total-order broadcast through a platform beside the node. Without this section the node has
/// none, and signing rules that wait for an order refuse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderConfig {
    /// What the policy calls it. The node believes this client about the order, and nobody else.
    #[serde(deserialize_with = "error::client_name")]
    pub client: Name,
}

/// Traces of requests, for an OpenTelemetry collector. Without this section there are none, and they cost nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracesConfig {
    /// The collector, which takes OTLP over gRPC. A loopback address, because nothing protects what is sent there.
    #[serde(deserialize_with = "error::collector")]
    pub collector: SocketAddr,
    /// One in so many requests is traced, at all nodes the same ones. Default 1: all of them.
    #[serde(default = "one")]
    pub one_in: NonZeroU32,
}

fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

fn folder() -> PathBuf {
    "audit".into()
}

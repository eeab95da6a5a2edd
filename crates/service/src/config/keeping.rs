//! What a running node does for those who look after it: backups, and the past of its audit log.

use std::{num::NonZeroU64, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::Sealing;

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

fn folder() -> PathBuf {
    "audit".into()
}

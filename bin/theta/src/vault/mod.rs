//! The store of a stopped node: its keys, its audit log, its backups.

mod backup;
mod check;
mod confirm;
mod remove;
mod reseal;
mod restore;
mod sealing;
mod trust;

use std::{num::NonZeroU16, path::PathBuf};

use clap::Args;
use rand_core::Rng;
use theta_groups::Secret;
use theta_service::{
    NodeConfig,
    config::{Sealing, StoreOpenError},
};
use theta_statements::{Digest, UnixTime, audit::AuditRecord};
use theta_store::{Store, StoreError};

pub(crate) use self::{
    backup::{BackupArgs, backup},
    check::{CheckArgs, check},
    confirm::{ConfirmArgs, confirm},
    remove::{RemoveArgs, remove},
    reseal::{ResealArgs, reseal},
    restore::{RestoreArgs, restore},
    sealing::{SEALING_HELP, SealWord},
    trust::{TrustArgs, trust},
};
use crate::{exit::Failure, files::write_new, output};

/// A node that does not run.
#[derive(Debug, Args)]
pub(crate) struct StoppedNode {
    /// The directory of a node that does not run, with node.toml in it
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// A node, running or not, for commands that do the same with both.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct NodePlace {
    /// The directory of a node that does not run
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// A running node, by its number
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<NonZeroU16>,
}

impl StoppedNode {
    /// Its configuration.
    pub(crate) fn config(&self) -> Result<NodeConfig, Failure> {
        config(&self.dir)
    }
}

/// The configuration in a node's directory.
pub(crate) fn config(dir: &std::path::Path) -> Result<NodeConfig, Failure> {
    let file = dir.join("node.toml");
    if !file.is_file() {
        return Err(Failure::Usage(format!(
            "cannot read {}: no such file; name the directory of one node, such as theta-group/node-1",
            file.display()
        )));
    }
    crate::founding::refuse_unjoined(&file)?;
    NodeConfig::load(&file).map_err(|error| Failure::Usage(error.to_string()))
}

/// Opens the store that the configuration names.
pub(crate) fn open(config: &NodeConfig) -> Result<Store, Failure> {
    config.store.open().map_err(Failure::from)
}

/// The same, for what makes room: where the file system is full, the room goes that the node has kept in reserve for this. It stays while a node
/// has the store open, which would take it at once.
pub(crate) fn open_to_make_room(config: &NodeConfig) -> Result<Store, Failure> {
    let opened = config.store.open();
    let is_full = match &opened {
        Ok(store) => store.lacks_room(),
        Err(StoreOpenError::Store(error)) => error.is_full(),
        Err(_) => false,
    };
    if is_full && Store::give_up_reserve(&config.store.path)? {
        output::diagnose(
            "note",
            "the file system is full: what was kept in reserve beside the store is free now",
            None,
        );
    }
    match opened {
        Err(_) if is_full => open(config),
        opened => opened.map_err(Failure::from),
    }
}

/// Makes a new store where the configuration says, and the key file that seals it if that is missing.
pub(crate) fn create(config: &NodeConfig) -> Result<Store, Failure> {
    make_key_file(&config.store.sealing)?;
    config.store.create().map_err(Failure::from)
}

/// The record in a node's log of what a person did with its store. `by` is the command, and the name of its operation.
fn record(node: u16, by: (&str, &str), key: Option<String>, reason: &str, detail: &str) -> AuditRecord {
    let (command, operation) = by;
    AuditRecord {
        time: UnixTime::now(),
        node,
        client: None,
        recognised_by: Some(format!("the command {command} on this node")),
        key,
        operation: operation.to_owned(),
        statement: Digest([0; 32]),
        slot: None,
        allowed: true,
        rule: None,
        reason: reason.to_owned(),
        // Readers of the log refuse longer texts.
        detail: detail.chars().take(1_000).collect(),
        approvers: Vec::new(),
        policy: Digest([0; 32]),
    }
}

/// Makes the key file of a sealing if it does not exist.
fn make_key_file(sealing: &Sealing) -> Result<(), Failure> {
    let Sealing::File(path) = sealing else { return Ok(()) };
    if path.exists() {
        return Ok(());
    }
    let mut key = Secret::new([0_u8; 32]);
    crate::random::generator()?.fill_bytes(key.expose_mut());
    let mut text = Secret::new([b'\n'; 65]);
    if let Some((_, digits)) = text.expose_mut().split_last_mut() {
        hex::encode_to_slice(key.expose(), digits).map_err(Failure::internal)?;
    }
    write_new(path, text.expose(), true)
}

impl From<StoreOpenError> for Failure {
    fn from(error: StoreOpenError) -> Self {
        match error {
            StoreOpenError::Store(error) => error.into(),
            error => Self::Usage(error.to_string()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::Locked(_) => {
                Self::Usage(format!("{text}: stop the node first, or ask it while it runs with --node"))
            }
            StoreError::Missing(_)
            | StoreError::Exists(_)
            | StoreError::Unfinished(_)
            | StoreError::NotAStore(_)
            | StoreError::FileMode { .. }
            | StoreError::FolderMode { .. }
            | StoreError::Format { .. }
            | StoreError::WrongKey(_)
            | StoreError::OtherKind { .. } => Self::Usage(text),
            _ => Self::Failed(text),
        }
    }
}

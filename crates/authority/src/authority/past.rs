//! The audit log's past: removed when somebody keeps it elsewhere, by leave; or written into files by the node itself, and removed
//! then.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Read, Write},
    num::NonZeroU64,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use prometheus_client::{metrics::gauge::Gauge, registry::Registry};
use theta_names::Operation;
use theta_statements::audit::{self, AuditRecord, BrokenLog, Checkpoint, LogEntry};
use theta_statements::{Digest, UnixTime};
use theta_store::{AuditChain, Store, StoreError};

use super::Authority;
use crate::{Granted, PruneAudit, Refusal};

/// Records that are held in memory at one time.
const PAGE: u64 = 1_024;
/// The most records of one file.
const MOST_OF_A_FILE: u64 = 65_536;

/// How long a node rests after a file could not be written.
const REST: Duration = Duration::from_secs(60);

/// From so many records on the operator is told, if nothing takes them out of the store: at about 1 KiB each they take 1 GiB. Nothing is
/// taken out without being told to: some have to keep what is on record, and where is theirs to say.
const MANY: i64 = 1_000_000;

/// What a node does with its log by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditKeeping {
    /// So many of the latest records stay in the store.
    pub keep: NonZeroU64,
    /// Files with the older ones go here. Nothing is ever removed from it.
    pub folder: PathBuf,
}

impl AuditKeeping {
    /// How many records a file has: as many as are worth one.
    fn records_of_a_file(&self) -> u64 {
        (self.keep.get() / 4).clamp(1, MOST_OF_A_FILE)
    }
}

/// What was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// How many records.
    pub removed: u64,
    /// After what the log begins now.
    pub after: Checkpoint,
}

/// Why nothing was removed.
#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    /// It covers no record.
    #[error("nothing was removed: the checkpoint is of an empty log")]
    Empty,
    /// Another log's, or one that was rewritten.
    #[error("nothing was removed: the checkpoint is of another log")]
    OtherLog,
    /// It covers records that are not there.
    #[error(
        "nothing was removed: the log does not have the checkpoint's last record: it was pruned before, or is shorter"
    )]
    NotThere,
    /// The log is not whole, which is worth more than its room.
    #[error("nothing was removed: {0}")]
    Broken(#[from] BrokenLog),
    /// A record that is none.
    #[error("nothing was removed: record {0} is no decision")]
    NoDecision(u64),
    /// What is done goes on record first, and cannot.
    #[error(transparent)]
    Unrecorded(#[from] Refusal),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder or a file in it.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// The file is there, with something else in it.
    #[error("{} is there and holds other records: is it another node's, or of this one's store before it was restored? Move it away", .0.display())]
    Taken(PathBuf),
}

/// Who removes, one at a time, and what goes wrong with what the node does by itself.
#[derive(Debug, Default)]
pub(super) struct Past {
    keeping: OnceLock<AuditKeeping>,
    turn: Mutex<()>,
    problem: Mutex<Option<String>>,
    /// Until when nothing is tried again after a failure.
    rests: Mutex<Option<Instant>>,
    /// How many records are in the store.
    stored: Gauge,
}

impl Past {
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn register(registry: &mut Registry) -> Self {
        let past = Self::default();
        let audit = registry.sub_registry_with_prefix("theta_audit");
        audit.register("stored", "Records of the audit log that are in the store", past.stored.clone());
        past
    }

    /// So many records are in the store. The log says once that they are many.
    fn measured(&self, stored: u64) {
        let stored = i64::try_from(stored).unwrap_or(i64::MAX);
        let before = self.stored.set(stored);
        if before < MANY
            && let Some(warning) = self.many()
        {
            tracing::warn!("{warning}");
        }
    }

    fn many(&self) -> Option<String> {
        let stored = self.stored.get();
        (stored >= MANY && self.keeping.get().is_none()).then(|| {
            format!(
                "its audit log has {stored} records in the store and nothing takes them out: say [audit] keep in node.toml, or export and \
                 prune it"
            )
        })
    }

    /// What the operator should look at.
    pub(super) fn warning(&self) -> Option<String> {
        self.many().or_else(|| self.problem())
    }

    fn problem(&self) -> Option<String> {
        let problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        problem.as_ref().map(|problem| format!("the past of its audit log cannot be written into files: {problem}"))
    }

    /// Notes how the last attempt ended; a problem is logged once.
    fn note(&self, now: Option<String>) {
        let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = now.as_ref().filter(|now| problem.as_ref() != Some(*now)) {
            tracing::error!(error, "the past of the audit log cannot be written into files: nothing of it is removed");
        }
        *problem = now;
    }
}

impl Authority {
    /// From now on the node writes the past of its log into files, and removes it then.
    pub fn keep_audit(&self, keeping: AuditKeeping) {
        // Said once, when the node starts.
        let _ = self.past.keeping.set(keeping);
    }

    /// Removes the records that the checkpoint covers: it must be of this very log, which must be whole so far. Blocks.
    ///
    /// # Errors
    /// [`PruneError`].
    pub fn prune(&self, granted: Granted<PruneAudit>) -> Result<Pruned, PruneError> {
        let _turn = self.past.turn();
        let PruneAudit { through } = granted.into_request();
        let last = through.count.checked_sub(1).ok_or(PruneError::Empty)?;
        match self.store.audit(last, 1)?.first().filter(|record| record.index == last) {
            Some(record) if record.hash == through.head.0 => {}
            Some(_) => return Err(PruneError::OtherLog),
            None => return Err(PruneError::NotThere),
        }
        pages(&self.store, checkpoint(&self.store.audit_start()?), through.count, &mut |_| Ok(()))?;
        let removed = self.store.prune_audit(through.count)?;
        let after = checkpoint(&self.store.audit_start()?);
        tracing::info!(removed, %after, "records were removed from the audit log");
        Ok(Pruned { removed, after })
    }

    /// Writes one file of the log's past and removes it from the store, if the node was told to and there is enough. Blocks.
    pub(super) fn put_past_away(&self) {
        // What cannot be read is found by whoever needs it.
        if let (Ok(start), Ok(end)) = (self.store.audit_start(), self.store.audit_end()) {
            self.past.measured(end.len().saturating_sub(start.len()));
        }
        let Some(keeping) = self.past.keeping.get() else { return };
        // Whoever looks after the policy and the disk does not wait for a long removal.
        let Ok(_turn) = self.past.turn.try_lock() else { return };
        let mut rests = self.past.rests.lock().unwrap_or_else(PoisonError::into_inner);
        if rests.is_some_and(|until| Instant::now() < until) {
            return;
        }
        let outcome = self.put_away(keeping);
        *rests = outcome.is_err().then(|| Instant::now() + REST);
        self.past.note(outcome.err().map(|error| error.to_string()));
    }

    fn put_away(&self, keeping: &AuditKeeping) -> Result<(), PruneError> {
        let (start, end) = (checkpoint(&self.store.audit_start()?), self.store.audit_end()?.len());
        let count = keeping.records_of_a_file();
        let past = end.saturating_sub(start.count).saturating_sub(keeping.keep.get());
        if past < count {
            return Ok(());
        }
        let to = start.count.saturating_add(count);
        let (path, reached) = self.write_file(&keeping.folder, start, to)?;
        self.audit.append(self.record_of_file(&path, start.count, reached), false);
        self.audit.flush().map_err(Refusal::from)?;
        let removed = self.store.prune_audit(to)?;
        tracing::info!(removed, file = %path.display(), checkpoint = %reached, "the past of the audit log is in a file");
        Ok(())
    }

    /// Writes the records from one checkpoint up to the one of this number, durably, and says how far they go.
    fn write_file(&self, folder: &Path, from: Checkpoint, to: u64) -> Result<(PathBuf, Checkpoint), PruneError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| PruneError::File { path, source }
        };
        if !folder.is_dir() {
            fs::DirBuilder::new().mode(0o700).create(folder).map_err(failed(folder))?;
        }
        let name = format!("audit-node-{}-{:012}-{:012}.jsonl", self.gate.node(), from.count, to.saturating_sub(1));
        let (path, part) = (folder.join(&name), folder.join(format!("{name}.part")));
        // What a crash left.
        let _ = fs::remove_file(&part);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part).map_err(failed(&part))?;
        let mut writer = BufWriter::new(file);
        let written = pages(&self.store, from, to, &mut |page| {
            let mut lines = page.iter().map(|entry| audit::to_line(entry).map_err(io::Error::other));
            lines.try_for_each(|line| writeln!(writer, "{}", line?)).map_err(failed(&part))
        });
        let synced = written.and_then(|reached| {
            let file = writer.into_inner().map_err(|error| failed(&part)(error.into_error()))?;
            file.sync_all().map_err(failed(&part)).map(|()| reached)
        });
        if synced.is_err() {
            // It may be the disk's last room that it takes.
            let _ = fs::remove_file(&part);
        }
        let reached = synced?;
        // A link is made only where there is nothing: no file is ever replaced.
        let placed = match fs::hard_link(&part, &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let same = same_contents(&part, &path).map_err(failed(&path))?;
                if same { Ok(()) } else { Err(PruneError::Taken(path.clone())) }
            }
            linked => linked.map_err(failed(&path)),
        };
        let removed = fs::remove_file(&part).map_err(failed(&part));
        placed.and(removed)?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder))?;
        Ok((path, reached))
    }

    /// What goes on record of it: nobody asked for it.
    fn record_of_file(&self, path: &Path, from: u64, reached: Checkpoint) -> AuditRecord {
        let last = reached.count.saturating_sub(1);
        AuditRecord {
            time: UnixTime::now(),
            node: self.gate.node().get(),
            client: None,
            recognised_by: Some("this node itself, by [audit] in node.toml".to_owned()),
            key: None,
            operation: Operation::AuditPrune.to_string(),
            statement: Digest::of(reached.to_string().as_bytes()),
            slot: None,
            allowed: true,
            rule: None,
            reason: "exported".to_owned(),
            detail: AuditRecord::cut(&format!("records {from} to {last} are in {} ({reached})", path.display())),
            approvers: Vec::new(),
            policy: self.policy().digest(),
        }
    }
}

fn checkpoint(chain: &AuditChain) -> Checkpoint {
    Checkpoint { count: chain.len(), head: Digest(*chain.head()) }
}

/// Gives the records after one checkpoint and before number `to`, checked, a page at a time, and says how far they go.
fn pages(
    store: &Store,
    from: Checkpoint,
    to: u64,
    take: &mut dyn FnMut(&[LogEntry]) -> Result<(), PruneError>,
) -> Result<Checkpoint, PruneError> {
    let mut reached = from;
    while reached.count < to {
        let count = usize::try_from(to.saturating_sub(reached.count).min(PAGE)).unwrap_or(usize::MAX);
        let page = store.audit(reached.count, count)?.into_iter().map(entry).collect::<Result<Vec<_>, _>>()?;
        if page.is_empty() {
            return Err(PruneError::NotThere);
        }
        reached = audit::verify(&page, reached, None)?;
        take(&page)?;
    }
    Ok(reached)
}

fn entry(record: theta_store::AuditRecord) -> Result<LogEntry, PruneError> {
    let theta_store::AuditRecord { index, previous, hash, body } = record;
    let record = AuditRecord::decode(&body).map_err(|_| PruneError::NoDecision(index))?;
    Ok(LogEntry { sequence: index, previous: Digest(previous), hash: Digest(hash), record })
}

fn same_contents(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        let read = (&mut one).take(1 << 16).read_to_end(&mut left)?;
        (&mut other).take(1 << 16).read_to_end(&mut right)?;
        if left != right {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_that_nothing_shortens_is_told() {
        let past = Past::register(&mut Registry::default());
        past.measured(999_999);
        assert_eq!(past.warning(), None);
        past.measured(1_000_000);
        let warning = past.warning().unwrap();
        assert!(warning.contains("1000000 records") && warning.contains("[audit] keep"), "{warning}");
        past.keeping.set(AuditKeeping { keep: NonZeroU64::MIN, folder: "audit".into() }).unwrap();
        assert_eq!(past.warning(), None, "the node takes them out by itself");
    }
}

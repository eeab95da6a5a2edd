//! A backup of the running node, on its way to whoever may have it.

use std::{
    fs,
    io::{self, Write},
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use theta_store::{BackedUp, Store};
use theta_wire::v1;
use tokio::sync::{Semaphore, mpsc};
use tonic::Status;

use crate::config::{BackupConfig, StoreOpenError};

/// Bytes of one part.
const PART: usize = 64 << 10;
/// Parts that wait for their receiver.
pub(super) const WAITING: usize = 4;
/// A backup holds a moment of the store, whose pages are not used again meanwhile: not longer than so.
const LONGEST: Duration = Duration::from_secs(3_600);

type Part = Result<v1::BackUpPart, Status>;

/// How this node makes backups.
pub(crate) struct Backups {
    pub(super) config: Option<BackupConfig>,
    /// One at a time.
    pub(super) turn: Arc<Semaphore>,
}

impl Backups {
    pub(crate) fn new(config: Option<BackupConfig>) -> Self {
        Self { config, turn: Arc::new(Semaphore::new(1)) }
    }
}

/// Why there is no backup, or no whole one.
enum Failure {
    Sealing(StoreOpenError),
    Store(theta_store::StoreError),
    /// Nobody takes it any more.
    Gone,
}

/// Makes one and sends it; whatever goes wrong is the last that is sent. Blocks.
pub(super) fn send(store: &Store, config: &BackupConfig, parts: &mpsc::Sender<Part>) {
    match make(store, config, parts) {
        Ok(BackedUp { keys, audit_records }) => tracing::info!(keys, audit_records, "a backup was made"),
        Err(Failure::Gone) => tracing::warn!("a backup was not taken to its end"),
        Err(Failure::Sealing(error)) => {
            tracing::error!(%error, "what seals backups cannot be read: see backup.sealing in node.toml");
            let _ = parts.blocking_send(Err(Status::failed_precondition(
                "what seals this node's backups cannot be read: see backup.sealing in its node.toml, and its log",
            )));
        }
        Err(Failure::Store(error)) => {
            tracing::error!(%error, "a backup failed");
            let _ = parts.blocking_send(Err(Status::unavailable("the store cannot be read: see the node's log")));
        }
    }
}

fn make(store: &Store, config: &BackupConfig, parts: &mpsc::Sender<Part>) -> Result<BackedUp, Failure> {
    // Read each time: the operator may have put another one there.
    let key = config.sealing.new_key().map_err(Failure::Sealing)?;
    let about = fs::metadata(store.place()).map_or(0, |file| file.len());
    let mut writer =
        Parts { parts, buffer: Vec::with_capacity(2 * PART), about, until: Instant::now() + LONGEST, gone: false };
    let made = store.backup(&mut writer, &key);
    match made {
        Ok(done) => {
            let BackedUp { keys, audit_records } = done;
            let told = v1::BackUpDone { keys: u32::try_from(keys).unwrap_or(u32::MAX), audit_records };
            writer.part(Some(told)).map(|()| done).map_err(|_| Failure::Gone)
        }
        Err(_) if writer.gone => Err(Failure::Gone),
        Err(error) => Err(Failure::Store(error)),
    }
}

/// What is written goes out in parts.
struct Parts<'a> {
    parts: &'a mpsc::Sender<Part>,
    buffer: Vec<u8>,
    about: u64,
    until: Instant,
    gone: bool,
}

impl Parts<'_> {
    fn part(&mut self, done: Option<v1::BackUpDone>) -> io::Result<()> {
        let part = v1::BackUpPart { data: mem::take(&mut self.buffer).into(), about: mem::take(&mut self.about), done };
        let sent = Instant::now() < self.until && self.parts.blocking_send(Ok(part)).is_ok();
        self.gone |= !sent;
        self.buffer.reserve(2 * PART);
        if sent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }
}

impl Write for Parts<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PART {
            self.part(None)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

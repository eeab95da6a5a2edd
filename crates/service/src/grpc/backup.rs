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
use tokio::{
    runtime::Handle,
    sync::{Semaphore, mpsc},
    time::timeout,
};
use tonic::Status;

use crate::config::{BackupConfig, StoreOpenError};

/// Bytes of one part.
const PART: usize = 64 << 10;
/// Parts that wait for their receiver.
const WAITING: usize = 4;
/// A backup holds a moment of the store, whose pages are not used again meanwhile, so that its file grows with all that the node does: not
/// longer than so, and one second more for each MiB of the store.
const SHORTEST: Duration = Duration::from_secs(60);

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
    /// It is taken too slowly.
    Late(Duration),
}

/// The channel of a backup's parts, with room for what is said last.
pub(super) fn channel() -> (mpsc::Sender<Part>, mpsc::Receiver<Part>) {
    mpsc::channel(WAITING.saturating_add(1))
}

/// How long the backup of a store of so many bytes may take.
fn time_for(bytes: u64) -> Duration {
    SHORTEST.saturating_add(Duration::from_secs(bytes >> 20))
}

/// Makes one and sends it; whatever goes wrong is the last that is sent. Blocks. Must be called within a Tokio runtime, on a thread that may block.
pub(super) fn send(store: &Store, config: &BackupConfig, parts: &mpsc::Sender<Part>) {
    let bytes = fs::metadata(store.place()).map_or(0, |file| file.len());
    send_within(time_for(bytes), (store, bytes), config, parts);
}

fn send_within(time: Duration, (store, bytes): (&Store, u64), config: &BackupConfig, parts: &mpsc::Sender<Part>) {
    // Held from the beginning: whoever does not read leaves no room at the end.
    let Ok(last) = parts.clone().try_reserve_owned() else { return };
    let say = |status| drop(last.send(Err(status)));
    match make((store, bytes), config, parts, time) {
        Ok(BackedUp { keys, audit_records }) => tracing::info!(keys, audit_records, "a backup was made"),
        Err(Failure::Gone) => tracing::warn!("a backup was not taken to its end"),
        Err(Failure::Late(time)) => {
            tracing::warn!(?time, "a backup was taken too slowly, and ended");
            say(Status::deadline_exceeded(format!(
                "the backup was not taken within {} s, for which this node holds a moment of its store (60 s, and 1 s for each MiB): ask from a \
                 machine with a faster way to the node, onto a faster disk, or stop the node and back it up there with --dir",
                time.as_secs()
            )));
        }
        Err(Failure::Sealing(error)) => {
            tracing::error!(%error, "what seals backups cannot be read: see backup.sealing in node.toml");
            say(Status::failed_precondition(
                "what seals this node's backups cannot be read: see backup.sealing in its node.toml, and its log",
            ));
        }
        Err(Failure::Store(error)) => {
            tracing::error!(%error, "a backup failed");
            say(Status::unavailable("the store cannot be read: see the node's log"));
        }
    }
}

fn make(
    (store, about): (&Store, u64),
    config: &BackupConfig,
    parts: &mpsc::Sender<Part>,
    time: Duration,
) -> Result<BackedUp, Failure> {
    // Read each time: the operator may have put another one there.
    let key = config.sealing.new_key().map_err(Failure::Sealing)?;
    let (buffer, until) = (Vec::with_capacity(2 * PART), Instant::now() + time);
    let mut writer = Parts { parts, buffer, about, until, end: None };
    let made = store.backup(&mut writer, &key);
    let ended = |end| match end {
        End::Gone => Failure::Gone,
        End::Late => Failure::Late(time),
    };
    match (made, writer.end.take()) {
        (Ok(done), None) => {
            let BackedUp { keys, audit_records } = done;
            let told = v1::BackUpDone { keys: u32::try_from(keys).unwrap_or(u32::MAX), audit_records };
            let sent = writer.part(Some(told));
            sent.map(|()| done).map_err(|_| ended(writer.end.unwrap_or(End::Gone)))
        }
        (_, Some(end)) => Err(ended(end)),
        (Err(error), None) => Err(Failure::Store(error)),
    }
}

/// Why no more parts go out.
#[derive(Clone, Copy)]
enum End {
    Gone,
    Late,
}

/// What is written goes out in parts.
struct Parts<'a> {
    parts: &'a mpsc::Sender<Part>,
    buffer: Vec<u8>,
    about: u64,
    until: Instant,
    end: Option<End>,
}

impl Parts<'_> {
    fn part(&mut self, done: Option<v1::BackUpDone>) -> io::Result<()> {
        let part = v1::BackUpPart { data: mem::take(&mut self.buffer).into(), about: mem::take(&mut self.about), done };
        let left = self.until.saturating_duration_since(Instant::now());
        // A send that has room is done before its timeout is looked at.
        if left.is_zero() {
            self.end = Some(End::Late);
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // Whoever stops reading is not waited for longer than whoever reads slowly.
        self.end = match Handle::current().block_on(timeout(left, self.parts.send(Ok(part)))) {
            Ok(Ok(())) => None,
            Ok(Err(_)) => Some(End::Gone),
            Err(_) => Some(End::Late),
        };
        self.buffer.reserve(2 * PART);
        self.end.map_or(Ok(()), |_| Err(io::ErrorKind::BrokenPipe.into()))
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

#[cfg(test)]
mod tests {
    use theta_schemes::groups::Secret;
    use theta_store::SealingKey;

    use super::*;
    use crate::config::Sealing;

    const RECORDS: u64 = 64;

    /// A store with a log of some MiB, far more than waits for a reader.
    fn store(folder: &std::path::Path) -> Store {
        let key = SealingKey::key(Secret::new([1; 32]));
        let store = Store::create(&folder.join("theta.redb"), &key).unwrap();
        for _ in 0..RECORDS {
            store.append_audit(vec![7; 60_000]).unwrap();
        }
        store
    }

    fn config(folder: &std::path::Path) -> BackupConfig {
        use std::os::unix::fs::PermissionsExt;
        let file = folder.join("backup.key");
        fs::write(&file, "5a".repeat(32)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        BackupConfig { sealing: Sealing::File(file) }
    }

    #[test]
    fn the_time_follows_the_size() {
        assert_eq!(time_for(0), Duration::from_secs(60));
        assert_eq!(time_for(300 << 20), Duration::from_secs(360));
        assert_eq!(time_for(u64::MAX).as_secs(), 60 + (u64::MAX >> 20));
    }

    /// The attack: a reader that takes one part and no more, and stays.
    #[tokio::test]
    async fn a_reader_that_stops_reading_is_left_and_told_why() {
        let folder = tempfile::tempdir().unwrap();
        let (store, config) = (Arc::new(store(folder.path())), config(folder.path()));
        let (parts, mut stream) = channel();
        let (held, about) = (Arc::clone(&store), config.clone());
        let time = Duration::from_millis(200);
        let backup = tokio::task::spawn_blocking(move || send_within(time, (&held, 1), &about, &parts));
        stream.recv().await.unwrap().unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(90), backup).await;
        ended.expect("it waits for its reader").unwrap();
        let mut read = Vec::new();
        while let Some(part) = stream.recv().await {
            read.push(part);
        }
        let told = read.pop().unwrap().unwrap_err();
        assert_eq!(told.code(), tonic::Code::DeadlineExceeded);
        assert!(told.message().contains("faster"), "{told}");
        assert!(read.iter().all(Result::is_ok) && read.len() <= WAITING);

        // One that reads gets all of it.
        let (parts, mut stream) = channel();
        let backup = tokio::task::spawn_blocking(move || send_within(SHORTEST, (&store, 1), &config, &parts));
        let mut done = None;
        while let Some(part) = stream.recv().await {
            done = part.unwrap().done;
        }
        assert_eq!(done.unwrap().audit_records, RECORDS);
        backup.await.unwrap();
    }
}

//! The audit log's writer: decisions wait in a bounded queue, and one thread chains them into the store in batches.
//!
//! A caller that lets something out waits for its record first ([`AuditLog::durable`]). The writer commits all waiting
//! records as soon as a caller waits and it is idle, so that all that came during one commit share the next. Records
//! for which nobody waits, mostly those of refusals, are written after [`GATHER`] and one commit at the latest. When
//! the log cannot be written, [`AuditLog::check`] returns an error and the node refuses requests: nothing happens that
//! is not recorded.

use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use prometheus_client::metrics::counter::Counter;
use theta_statements::audit::AuditRecord;
use theta_store::{Store, StoreError};
use tokio::sync::oneshot;

/// How long a record may wait for others to share its commit.
const GATHER: Duration = Duration::from_millis(40);
/// So many records are written without waiting for more.
const FULL_BATCH: usize = 512;
/// The most records that wait; those of requests that were let in meanwhile are added.
const MOST_WAITING: usize = 8_192;
/// The time from a failure to the next attempt.
const RETRY: Duration = Duration::from_secs(1);

/// Why no decision can be recorded now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditUnavailable {
    /// The disk fails; the text of its error is for the operator.
    #[error("the audit log cannot be written: {0}")]
    Broken(String),
    /// Too many records wait.
    #[error("{MOST_WAITING} decisions wait to be written to the audit log, its limit: try again in a moment")]
    Full,
    /// The node is stopping.
    #[error("this node is stopping")]
    Closed,
}

/// A record's place in the log of this process, to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// Whoever waits for a record without a thread.
type Caller = oneshot::Sender<Result<(), AuditUnavailable>>;

/// The log, as the code that decides uses it.
#[derive(Debug)]
pub(crate) struct AuditLog {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// For the writer: there is something to do.
    changed: Condvar,
    /// For threads that wait for records.
    over: Condvar,
    recorded: Counter,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<AuditRecord>,
    /// The tasks that wait, each for a record.
    callers: Vec<(Ticket, Caller)>,
    appended: u64,
    written: u64,
    /// Whether somebody waits, so that the records are written at once.
    urgent: bool,
    /// Whether the writer sleeps: to wake one that does not costs as much.
    asleep: bool,
    closed: bool,
    failure: Option<String>,
}

impl AuditLog {
    /// Starts the writer.
    ///
    /// # Errors
    /// The system's error, if it gives no thread.
    pub(crate) fn start(store: Arc<Store>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_writer = Arc::clone(&shared);
        let writer = thread::Builder::new().name("theta-audit".to_owned()).spawn(move || {
            let _guard = Gone(&of_writer);
            of_writer.write_all(&store);
        })?;
        Ok(Self { shared, writer: Mutex::new(Some(writer)) })
    }

    /// How many records were written.
    pub(crate) fn recorded(&self) -> Counter {
        self.shared.recorded.clone()
    }

    /// Whether decisions can be recorded; to be called before one is made.
    ///
    /// # Errors
    /// [`AuditUnavailable`].
    pub(crate) fn check(&self) -> Result<(), AuditUnavailable> {
        let queue = self.shared.lock();
        match &queue.failure {
            Some(failure) => Err(AuditUnavailable::Broken(failure.clone())),
            None if queue.closed => Err(AuditUnavailable::Closed),
            None if queue.waiting.len() >= MOST_WAITING => Err(AuditUnavailable::Full),
            None => Ok(()),
        }
    }

    /// Records a decision. `first`: its caller will wait for it ([`AuditLog::durable`]).
    pub(crate) fn append(&self, record: AuditRecord, first: bool) -> Ticket {
        self.queue([record], first)
    }

    /// Records decisions that were made together, to be written in one commit. `first`: somebody will wait for them. `None` if there
    /// are none.
    pub(crate) fn append_all(&self, records: Vec<AuditRecord>, first: bool) -> Option<Ticket> {
        (!records.is_empty()).then(|| self.queue(records, first))
    }

    /// Queues records, one at least, and wakes the writer if that changes what it waits for. The ticket is the last one's.
    fn queue(&self, records: impl IntoIterator<Item = AuditRecord>, first: bool) -> Ticket {
        let mut queue = self.shared.lock();
        let before = queue.waiting.len();
        queue.waiting.extend(records);
        let waiting = queue.waiting.len();
        let added = u64::try_from(waiting.saturating_sub(before)).unwrap_or(u64::MAX);
        queue.appended = queue.appended.saturating_add(added);
        let ticket = Ticket(queue.appended);
        let hurries = first && !std::mem::replace(&mut queue.urgent, true);
        if hurries || before == 0 || (before < FULL_BATCH && waiting >= FULL_BATCH) {
            self.shared.wake(queue);
        }
        ticket
    }

    /// Waits until a record is durable, without holding a thread.
    ///
    /// # Errors
    /// [`AuditUnavailable`]: the record may never be durable.
    pub(crate) async fn durable(&self, ticket: Ticket) -> Result<(), AuditUnavailable> {
        let told = {
            let mut queue = self.shared.lock();
            if let Some(outcome) = self.shared.hurry(&mut queue, ticket) {
                return outcome;
            }
            let (caller, told) = oneshot::channel();
            queue.callers.push((ticket, caller));
            told
        };
        // Whoever waits is always told.
        told.await.unwrap_or(Err(AuditUnavailable::Closed))
    }

    /// Blocks until a record is durable.
    fn wait(&self, ticket: Ticket) -> Result<(), AuditUnavailable> {
        let mut queue = self.shared.lock();
        loop {
            if let Some(outcome) = self.shared.hurry(&mut queue, ticket) {
                return outcome;
            }
            queue = self.shared.over.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Blocks until all records so far are durable.
    ///
    /// # Errors
    /// As [`AuditLog::durable`].
    pub(crate) fn flush(&self) -> Result<(), AuditUnavailable> {
        let last = Ticket(self.shared.lock().appended);
        self.wait(last)
    }

    /// Writes the waiting records and ends the writer.
    pub(crate) fn close(&self) {
        let mut queue = self.shared.lock();
        queue.closed = true;
        self.shared.tell(queue);
        self.shared.changed.notify_all();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The writer ends by itself; after a panic of it there is nothing to do.
        let _ = writer.map(JoinHandle::join);
    }
}

/// When the writer goes by a panic, as a database may cause that reads rotten pages, nobody waits for it for ever, and the node says that it cannot work.
struct Gone<'a>(&'a Shared);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let mut queue = self.0.lock();
            queue.failure = Some("a bug: its thread panicked; restart the node, and report it with its log".to_owned());
            self.0.tell(queue);
        }
    }
}

/// Writes a batch. After a failure, which part of it is in the store is unknown until the store has recovered: then
/// `begins` is the index of its first record, and records that are there are not written twice.
fn write(store: &Store, batch: &[AuditRecord], begins: &mut Option<u64>) -> Result<(), StoreError> {
    store.recover()?;
    let written = store.write(|transaction| {
        let len = transaction.audit_len()?;
        let there = len.saturating_sub(*begins.get_or_insert(len));
        let rest = batch.iter().skip(usize::try_from(there).unwrap_or(usize::MAX));
        rest.into_iter().try_for_each(|record| transaction.append_audit(record.encode()).map(|_| ()))
    });
    if written.is_ok() {
        *begins = None;
    }
    written
}

impl Queue {
    /// What has become of a record; `None` while that is unknown.
    fn outcome(&self, Ticket(place): Ticket) -> Option<Result<(), AuditUnavailable>> {
        match &self.failure {
            _ if self.written >= place => Some(Ok(())),
            Some(failure) => Some(Err(AuditUnavailable::Broken(failure.clone()))),
            None if self.closed => Some(Err(AuditUnavailable::Closed)),
            None => None,
        }
    }

    /// Takes out those who wait for what is known now.
    fn known(&mut self) -> Vec<(Caller, Result<(), AuditUnavailable>)> {
        let all = std::mem::take(&mut self.callers);
        let mut known = Vec::new();
        for (ticket, caller) in all {
            match self.outcome(ticket) {
                Some(outcome) => known.push((caller, outcome)),
                None => self.callers.push((ticket, caller)),
            }
        }
        known
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all who wait what has become of their records, as far as that is known: each task is woken for its own alone.
    fn tell(&self, mut queue: MutexGuard<'_, Queue>) {
        let callers = queue.known();
        drop(queue);
        self.over.notify_all();
        for (caller, outcome) in callers {
            // Some have gone away.
            let _ = caller.send(outcome);
        }
    }

    /// The state of a record; `None` while it is unknown, and then the writer is notified that somebody waits.
    fn hurry(&self, queue: &mut Queue, ticket: Ticket) -> Option<Result<(), AuditUnavailable>> {
        let outcome = queue.outcome(ticket);
        if outcome.is_some() {
            return outcome;
        }
        if !std::mem::replace(&mut queue.urgent, true) && queue.asleep {
            self.changed.notify_all();
        }
        None
    }

    /// Wakes the writer if it sleeps.
    fn wake(&self, queue: MutexGuard<'_, Queue>) {
        let asleep = queue.asleep;
        drop(queue);
        if asleep {
            self.changed.notify_all();
        }
    }

    /// Sleeps until there is something to do, or for so long.
    fn sleep<'q>(&self, mut queue: MutexGuard<'q, Queue>, most: Option<Duration>) -> MutexGuard<'q, Queue> {
        queue.asleep = true;
        let mut queue = match most {
            None => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            Some(most) => self.changed.wait_timeout(queue, most).unwrap_or_else(PoisonError::into_inner).0,
        };
        queue.asleep = false;
        queue
    }

    fn write_all(&self, store: &Store) {
        let mut begins = None;
        while let Some(batch) = self.next_batch() {
            let written = write(store, &batch, &mut begins);
            if !self.finish(batch, written) {
                return;
            }
        }
    }

    /// The next records to write; `None` when the log is closed and everything is written.
    fn next_batch(&self) -> Option<Vec<AuditRecord>> {
        let mut queue = self.lock();
        while queue.waiting.is_empty() {
            if queue.closed {
                return None;
            }
            queue.urgent = false;
            queue = self.sleep(queue, None);
        }
        let gathered_at = Instant::now() + GATHER;
        while !queue.urgent && !queue.closed && queue.waiting.len() < FULL_BATCH {
            let left = gathered_at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            queue = self.sleep(queue, Some(left));
        }
        queue.urgent = false;
        Some(std::mem::take(&mut queue.waiting))
    }

    /// Notifies those who wait. After a failure the batch waits again, for a limited time; `false` if it is given up.
    fn finish(&self, mut batch: Vec<AuditRecord>, written: Result<(), StoreError>) -> bool {
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let mut queue = self.lock();
        match written {
            Ok(()) => {
                queue.written = queue.written.saturating_add(count);
                if queue.failure.take().is_some() {
                    tracing::warn!("the audit log can be written again");
                }
                self.recorded.inc_by(count);
                self.tell(queue);
            }
            Err(error) => {
                let failure = Some(error.to_string());
                // Logged once, not at each attempt: the log may be on the same full disk.
                if queue.failure != failure {
                    tracing::error!(%error, "the audit log cannot be written: all requests are refused until it can");
                }
                queue.failure = failure;
                batch.append(&mut queue.waiting);
                queue.waiting = batch;
                self.tell(queue);
                queue = self.lock();
                let deadline = Instant::now() + RETRY;
                while !queue.closed && Instant::now() < deadline {
                    let left = deadline.saturating_duration_since(Instant::now());
                    queue = self.sleep(queue, Some(left));
                }
                if queue.closed {
                    tracing::error!(lost = queue.waiting.len(), "decisions are not in the audit log");
                    return false;
                }
            }
        }
        true
    }
}

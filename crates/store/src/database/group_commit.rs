//! Group commit: changes that arrive while a commit is under way go into the next one.

use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError,
    mpsc::{self, Receiver, TryRecvError},
};

use super::Transaction;
use crate::StoreError;

/// The most changes in one commit, so that nobody waits for ever.
const MOST_IN_ONE: usize = 4096;

type Deliver = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
pub(super) type Job = Box<dyn FnOnce(&mut Transaction<'_>) -> Deliver + Send>;

#[derive(Default)]
struct Queue {
    waiting: Vec<Job>,
    /// Whether a thread is committing for all.
    led: bool,
}

/// The changes that wait, and the lock of the thread that commits.
#[derive(Default)]
pub(super) struct GroupCommit {
    queue: Mutex<Queue>,
    /// Notified whenever a commit is over.
    over: Condvar,
    exclusive: Mutex<()>,
}

/// What a waiting thread does next.
pub(super) enum Turn<'g, T> {
    /// Takes its answer: another thread committed its change.
    Answered(Result<T, StoreError>),
    /// Commits all changes that wait now.
    Lead(Vec<Job>, Leadership<'g>),
}

/// Held by the thread that commits for all; dropping it lets the next one lead.
pub(super) struct Leadership<'g>(&'g GroupCommit);

impl Drop for Leadership<'_> {
    fn drop(&mut self) {
        self.0.queue().led = false;
        self.0.over.notify_all();
    }
}

impl GroupCommit {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to write, which one thread at a time has.
    pub(super) fn exclusive(&self) -> MutexGuard<'_, ()> {
        // A thread that panicked while it wrote left an aborted transaction, which does no harm.
        self.exclusive.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a change. Its answer comes when it is durable.
    pub(super) fn add<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> T + Send + 'static,
    ) -> Receiver<Result<T, StoreError>> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let job: Job = Box::new(move |transaction| {
            let answer = change(transaction);
            Box::new(move |committed| {
                // The receiver is gone if its thread panicked.
                let _ = sender.send(committed.map(|()| answer));
            })
        });
        self.queue().waiting.push(job);
        receiver
    }

    /// Waits until the change is answered, or it is this thread's turn to commit.
    pub(super) fn wait<T>(&self, receiver: &Receiver<Result<T, StoreError>>) -> Turn<'_, T> {
        let mut queue = self.queue();
        loop {
            match receiver.try_recv() {
                Ok(answer) => return Turn::Answered(answer),
                Err(TryRecvError::Disconnected) => return Turn::Answered(Err(StoreError::Lost)),
                Err(TryRecvError::Empty) => {}
            }
            if !queue.led {
                queue.led = true;
                let count = queue.waiting.len().min(MOST_IN_ONE);
                return Turn::Lead(queue.waiting.drain(..count).collect(), Leadership(self));
            }
            queue = self.over.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl core::fmt::Debug for GroupCommit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("GroupCommit(..)")
    }
}

//! Group commit: what arrives while a commit is under way goes into the next one.

use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError,
    mpsc::{self, Receiver, TryRecvError},
};

use super::Transaction;
use crate::StoreError;

/// No more changes than this go into one commit, so that nobody waits for ever.
const MOST_IN_ONE: usize = 4096;

type Deliver = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
pub(super) type Job = Box<dyn FnOnce(&mut Transaction<'_>) -> Deliver + Send>;

#[derive(Default)]
struct Queue {
    waiting: Vec<Job>,
    /// Whether a thread is committing for all.
    led: bool,
}

/// The changes that wait, and the right to commit.
#[derive(Default)]
pub(super) struct GroupCommit {
    queue: Mutex<Queue>,
    /// Told whenever a commit is over.
    over: Condvar,
    exclusive: Mutex<()>,
}

/// What becomes of a thread that waits.
pub(super) enum Turn<'g, T> {
    /// Another committed its change.
    Answered(Result<T, StoreError>),
    /// It commits for all that wait now.
    Lead(Vec<Job>, Leadership<'g>),
}

/// Held by the thread that commits for all; the next one leads when it is dropped.
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

    /// The right to write: one thread at a time has it.
    pub(super) fn exclusive(&self) -> MutexGuard<'_, ()> {
        // A thread that died while it wrote left an aborted transaction, which harms nobody.
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
                // Nobody waits any more if that thread died.
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

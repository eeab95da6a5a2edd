//! How an instance ends, and the callers that wait for it.

use std::sync::Arc;

use tokio::sync::{SetOnce, watch};

use super::command::Reply;
use crate::{Finished, InstanceError, InstanceId, InstanceSnapshot, InstanceState};

pub(crate) type Outcome = Result<Arc<Finished>, InstanceError>;

/// The outcome of one instance, once there is one. Any number of callers may wait; those that stop waiting cost
/// nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending(Arc<SetOnce<Outcome>>);

impl Ending {
    /// Sets the outcome and wakes all who wait. Later ones change nothing.
    pub(crate) fn set(&self, outcome: Outcome) {
        // The first outcome stays.
        let _ = self.0.set(outcome);
    }

    /// Waits for the outcome. Cancel-safe.
    pub(crate) async fn wait(&self) -> Outcome {
        self.0.wait().await.clone()
    }

    /// The outcome, if it is there.
    pub(crate) fn get(&self) -> Option<Outcome> {
        self.0.get().cloned()
    }

    /// Whether anybody else has it, and so may wait.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// The state to show, if the instance has ended.
    pub(crate) fn state(&self) -> Option<InstanceState> {
        self.0.get().map(|outcome| match outcome {
            Ok(finished) => InstanceState::Finished(Arc::clone(finished)),
            Err(error) => InstanceState::Failed(error.to_string()),
        })
    }
}

/// The callers that follow one instance.
pub(crate) struct Audience {
    pub(crate) ending: Ending,
    /// The first caller, if it waits for the end: it is woken once rather than twice.
    caller: Option<Reply>,
    /// Made for the first watcher.
    watch: Option<watch::Sender<InstanceSnapshot>>,
}

impl Audience {
    /// A caller that is answered now, or at the end if it waits for that anyway.
    pub(crate) fn new(id: InstanceId, waits: bool, reply: Reply) -> Self {
        let mut audience = Self::of(Ending::default());
        if waits {
            audience.caller = Some(reply);
        } else {
            drop(reply.send(Ok((id, audience.ending.clone()))));
        }
        audience
    }

    /// The callers that wait for this ending.
    pub(crate) const fn of(ending: Ending) -> Self {
        Self { ending, caller: None, watch: None }
    }

    /// Whether anybody still waits for the end, or watches.
    pub(crate) fn is_there(&self) -> bool {
        let caller = self.caller.as_ref().is_some_and(|caller| !caller.is_closed());
        let watched = self.watch.as_ref().is_some_and(|watch| watch.receiver_count() > 0);
        caller || watched || self.ending.is_shared()
    }

    /// Starts to watch, from the present `snapshot`.
    pub(crate) fn watch(&mut self, snapshot: impl FnOnce() -> InstanceSnapshot) -> watch::Receiver<InstanceSnapshot> {
        match &self.watch {
            Some(sender) => sender.subscribe(),
            None => {
                let (sender, receiver) = watch::channel(snapshot());
                self.watch = Some(sender);
                receiver
            }
        }
    }

    /// Shows watchers how many shares there are, and how many are needed.
    pub(crate) fn show(&self, contributions: (usize, usize)) {
        let Some(sender) = &self.watch else { return };
        sender.send_if_modified(|snapshot| {
            let before = (snapshot.shares, snapshot.needed);
            (snapshot.shares, snapshot.needed) = contributions;
            before != contributions
        });
    }

    /// Sets the outcome and answers the caller.
    pub(crate) fn end(&mut self, id: InstanceId, outcome: &Outcome) {
        self.ending.set(outcome.clone());
        if let Some(caller) = self.caller.take() {
            drop(caller.send(Ok((id, self.ending.clone()))));
        }
    }

    /// Shows watchers the last state.
    pub(crate) fn close(&mut self, snapshot: impl FnOnce() -> InstanceSnapshot) {
        if let Some(watch) = self.watch.take() {
            watch.send_replace(snapshot());
        }
    }
}

//! How an instance ends, and those who wait for it.

use std::sync::Arc;

use tokio::sync::SetOnce;

use crate::{Finished, InstanceError, InstanceState};

type Outcome = Result<Arc<Finished>, InstanceError>;

/// The outcome of one instance, once there is one. Any number may wait; one who stops waiting costs nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending(Arc<SetOnce<Outcome>>);

impl Ending {
    /// Sets the outcome and wakes all who wait. Later ones change nothing.
    pub(crate) fn set(&self, outcome: Outcome) {
        // A second outcome would be a bug of ours that the first one already answers.
        let _ = self.0.set(outcome);
    }

    /// Waits for the outcome. Cancel-safe.
    pub(crate) async fn wait(&self) -> Outcome {
        self.0.wait().await.clone()
    }

    /// The state to show, if it has ended.
    pub(crate) fn state(&self) -> Option<InstanceState> {
        self.0.get().map(|outcome| match outcome {
            Ok(finished) => InstanceState::Finished(Arc::clone(finished)),
            Err(error) => InstanceState::Failed(error.to_string()),
        })
    }
}

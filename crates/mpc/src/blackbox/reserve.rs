//! Random values that were drawn before they are needed, in the round of others: coins and masks of checks, each used once.

use std::sync::{Mutex, PoisonError};

use super::{BlackBox, Shared};
use crate::Stop;

/// Random values for coins and masks. All parties put in and take out the same ones in the same order.
pub(crate) struct Reserve<B: BlackBox>(Mutex<Shared<B>>);

impl<B: BlackBox> Default for Reserve<B> {
    fn default() -> Self {
        Self(Mutex::new(Shared::from_cells([])))
    }
}

impl<B: BlackBox> Reserve<B> {
    fn with<T>(&self, change: impl FnOnce(&mut Shared<B>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts values in.
    pub(crate) fn put(&self, values: &Shared<B>) {
        self.with(|kept| *kept = kept.then(values));
    }

    /// Takes so many out; draws them, which may take a round, if there are not as many.
    pub(crate) async fn take(&self, black_box: &B, count: usize) -> Result<Shared<B>, Stop> {
        let taken = self.with(|kept| {
            let taken = (kept.len() >= count).then(|| kept.part(0..count));
            if taken.is_some() {
                *kept = kept.part(count..kept.len());
            }
            taken
        });
        match taken {
            Some(taken) => Ok(taken),
            None => black_box.random(count).await,
        }
    }
}

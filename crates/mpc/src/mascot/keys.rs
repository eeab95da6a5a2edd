//! The MAC key and what makes triples and masked products: there until the first failure.

use core::{
    future::{Future, poll_fn},
    task::Poll,
};
use std::sync::{MutexGuard, PoisonError};

use theta_groups::{Group, Scalar, Secret};
use theta_ot::mascot::Transfers;

use super::{Check, MascotOf, inverses::Reserve};
use crate::{
    Stop,
    pairs::{HASH, Lease},
};

/// What a party of a black box has.
pub(super) enum State<S: Scalar> {
    /// It never had a key.
    WithoutKey,
    /// It has one.
    Keyed(Box<Keys<S>>),
    /// A check has failed, or a party was lost: nothing is left.
    Gone,
}

/// Our MAC key, and what belongs to it.
pub(super) struct Keys<S: Scalar> {
    pub(super) session: [u8; HASH],
    pub(super) key: Secret<S>,
    /// What makes triples and masked products; not there while it makes some.
    pub(super) maker: Option<theta_ot::mascot::Party<S>>,
    /// Triples that were made and not used.
    pub(super) ready: theta_ot::mascot::Triples<S>,
    /// Values with masked products, and random values, that were made and not used.
    pub(super) reserve: Reserve<S>,
    /// How many times all revealed something.
    pub(super) reveals: u64,
    /// The hold on the set-up: gone with the keys, it wipes the set-up.
    pub(super) lease: Lease<Transfers>,
}

impl<G: Group, C: Check> MascotOf<G, C> {
    fn state(&self) -> MutexGuard<'_, State<G::Scalar>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the keys, if they are there.
    pub(super) fn with_keys<T>(&self, take: impl FnOnce(&mut Keys<G::Scalar>) -> T) -> Result<T, Stop> {
        match &mut *self.state() {
            State::WithoutKey => Err(Stop::Input("this black box was made for openings only")),
            State::Keyed(keys) => Ok(take(keys)),
            State::Gone => Err(Stop::Cheated("nothing is done after a check that failed")),
        }
    }

    /// The program has ended, and nothing in it was found false: its set-up may serve others. The keys are dropped.
    pub(super) fn leave(&self) {
        if let State::Keyed(keys) = core::mem::replace(&mut *self.state(), State::Gone) {
            keys.lease.end_well();
        }
    }

    /// A copy of our MAC key.
    pub(super) fn key(&self) -> Result<Secret<G::Scalar>, Stop> {
        self.with_keys(|keys| Secret::new(*keys.key.expose()))
    }

    /// What makes triples and masked products; when another part of the program has it, waits until that is done.
    pub(super) async fn maker(&self) -> Result<theta_ot::mascot::Party<G::Scalar>, Stop> {
        poll_fn(|_| match self.with_keys(|keys| keys.maker.take()) {
            Ok(Some(maker)) => Poll::Ready(Ok(maker)),
            Ok(None) => Poll::Pending,
            Err(stop) => Poll::Ready(Err(stop)),
        })
        .await
    }

    /// Does a step; if it fails, the keys and all set-ups are dropped.
    pub(super) async fn guard<T>(&self, step: impl Future<Output = Result<T, Stop>> + Send) -> Result<T, Stop> {
        let result = step.await;
        if result.is_err() {
            let mut state = self.state();
            if matches!(*state, State::Keyed(_)) {
                *state = State::Gone;
            }
        }
        result
    }
}

//! The answers to a batch of requests, whose bytes count until the last answer has left.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use theta_wire::v1;
use tokio::task::JoinSet;
use tokio_stream::Stream;
use tonic::Status;

use super::admission::Place;

/// The answers to a batch, as they become ready. Dropping it ends what still runs for this caller.
pub(crate) struct Answers {
    ready: VecDeque<v1::BatchAnswer>,
    running: JoinSet<v1::BatchAnswer>,
    place: Option<Arc<Place>>,
    /// What the requests hold until the last answer has left. The call's own bytes were given back when its answer began.
    bytes: usize,
    held: bool,
}

impl Answers {
    /// Of a call with this place, whose requests hold so many bytes.
    pub(crate) fn new(place: Option<Arc<Place>>, bytes: usize) -> Self {
        Self { ready: VecDeque::new(), running: JoinSet::new(), place, bytes, held: false }
    }

    /// An answer that is there.
    pub(crate) fn push(&mut self, answer: v1::BatchAnswer) {
        self.ready.push_back(answer);
    }

    /// An answer that is being made.
    pub(crate) fn spawn(&mut self, answer: impl Future<Output = v1::BatchAnswer> + Send + 'static) {
        self.running.spawn(answer);
    }
}

impl Stream for Answers {
    type Item = Result<v1::BatchAnswer, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !core::mem::replace(&mut self.held, true)
            && let Some(Err(status)) = self.place.as_ref().map(|place| place.hold(self.bytes))
        {
            (self.ready, self.running) = (VecDeque::new(), JoinSet::new());
            self.bytes = 0;
            return Poll::Ready(Some(Err(status)));
        }
        if let Some(answer) = self.ready.pop_front() {
            return Poll::Ready(Some(Ok(answer)));
        }
        let next = ready!(self.running.poll_join_next(context));
        Poll::Ready(next.map(|answer| {
            answer.map_err(|error| Status::internal(format!("bug: a request of a batch panicked: {error}")))
        }))
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        if let Some(place) = self.place.as_ref().filter(|_| self.held) {
            place.release(self.bytes);
        }
    }
}

//! Waiting for the messages of a round.

use core::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use theta_rounds::Bug;

use super::{Party, Stop};

/// What this part of the program expects of each peer: where in the peer's message it begins, and how long it is.
type Places = Vec<(usize, usize)>;

/// A part of a peer's message.
fn part(message: Option<&Bytes>, (start, len): (usize, usize)) -> Bytes {
    message
        .filter(|message| message.len() >= start + len)
        .map_or_else(Bytes::new, |message| message.slice(start..start + len))
}

/// Waits for what all peers send in a round: the bytes of each, by position.
pub struct Exchange {
    party: Party,
    round: u16,
    places: Places,
}

impl Exchange {
    pub(super) const fn new(party: Party, round: u16, places: Places) -> Self {
        Self { party, round, places }
    }
}

impl Future for Exchange {
    type Output = Result<Vec<Bytes>, Stop>;

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Self::Output> {
        let state = self.party.state();
        let needed = |position: usize| self.places.get(position).is_some_and(|(_, len)| *len > 0);
        if (0..self.party.n()).any(|position| needed(position) && state.is_lost(position)) {
            return Poll::Ready(Err(Stop::Lost));
        }
        if state.round < self.round || !state.is_complete() {
            return Poll::Pending;
        }
        if state.round > self.round {
            return Poll::Ready(Err(Stop::Bug(Bug("a part of a program that was left behind"))));
        }
        let parts = self.places.iter().zip(&state.inbox).map(|(place, message)| part(message.as_ref(), *place));
        Poll::Ready(Ok(parts.collect()))
    }
}

/// Takes the messages of a round one by one, as they come.
pub struct Gather {
    party: Party,
    round: u16,
    places: Places,
    taken: Vec<bool>,
}

impl Gather {
    pub(super) fn new(party: Party, round: u16, places: Places) -> Self {
        let taken = vec![false; places.len()];
        Self { party, round, places, taken }
    }

    /// The next peer's bytes, and its position.
    ///
    /// # Errors
    /// [`Stop::Lost`] when nobody is left who could send.
    pub async fn next(&mut self) -> Result<(usize, Bytes), Stop> {
        poll_fn(|_| self.poll_next()).await
    }

    fn poll_next(&mut self) -> Poll<Result<(usize, Bytes), Stop>> {
        let state = self.party.state();
        if state.round < self.round {
            return Poll::Pending;
        }
        let mut may_come = false;
        for (position, (place, taken)) in self.places.iter().zip(&mut self.taken).enumerate() {
            if *taken || place.1 == 0 || state.is_lost(position) {
                continue;
            }
            match state.inbox.get(position) {
                Some(Some(message)) => {
                    *taken = true;
                    return Poll::Ready(Ok((position, part(Some(message), *place))));
                }
                _ => may_come = true,
            }
        }
        if may_come { Poll::Pending } else { Poll::Ready(Err(Stop::Lost)) }
    }
}

//! A party as its program sees it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_names::ShareIndex;
use theta_rounds::{Bug, KEPT_BYTES, PartyId};
use theta_sharing::Threshold;

use super::{Exchange, Gather, LONGEST_MESSAGE, Misbehaviour, Stop};

/// What a round sends and expects, by position of the peer.
#[derive(Default)]
pub(super) struct Building {
    pub(super) out: Vec<Vec<u8>>,
    pub(super) expected: Vec<usize>,
    /// Whether anything was added, be it empty.
    pub(super) used: bool,
}

impl Building {
    pub(super) fn new(n: usize) -> Self {
        Self { out: vec![Vec::new(); n], expected: vec![0; n], used: false }
    }
}

/// What program and machine share.
pub(super) struct State {
    pub(super) rng: ChaCha20Rng,
    /// The current round: its messages have left.
    pub(super) round: u16,
    /// What the current round expects, and what has come.
    pub(super) expected: Vec<usize>,
    pub(super) inbox: Vec<Option<Bytes>>,
    /// What the next round will be.
    pub(super) building: Building,
    pub(super) lost: Vec<bool>,
    pub(super) blames: Vec<(usize, Misbehaviour)>,
    /// Bytes expected of each peer in all rounds.
    total: Vec<usize>,
    /// A part of the program may go on before the round is complete. Other parties may not do so at the same point, so
    /// nothing may be sent after it.
    pub(super) ragged: bool,
}

impl State {
    /// Whether a peer's message of the current round is missing and may still come.
    pub(super) fn awaits(&self, position: usize) -> bool {
        let expected = self.expected.get(position).is_some_and(|expected| *expected > 0);
        expected && !self.is_lost(position) && self.inbox.get(position).is_some_and(Option::is_none)
    }

    pub(super) fn is_lost(&self, position: usize) -> bool {
        self.lost.get(position).copied().unwrap_or(true)
    }

    /// Whether any message of the current round is missing and may still come.
    pub(super) fn awaits_any(&self) -> bool {
        (0..self.inbox.len()).any(|position| self.awaits(position))
    }

    /// Whether all that the current round expects has come.
    pub(super) fn is_complete(&self) -> bool {
        self.expected.iter().zip(&self.inbox).all(|(expected, got)| *expected == 0 || got.is_some())
    }
}

/// One of n parties in a program: who it is, and its means to reach the others. Clones are the same party.
#[derive(Clone)]
pub struct Party {
    local: usize,
    threshold: Threshold,
    state: Arc<Mutex<State>>,
}

impl Party {
    /// Party `local` of a group.
    ///
    /// # Errors
    /// [`Stop::Input`] if it is not of the group, or alone in it.
    pub(super) fn new(local: ShareIndex, threshold: Threshold) -> Result<Self, Stop> {
        if !threshold.contains(local) {
            return Err(Stop::Input("the party is not of the group"));
        }
        let n = usize::from(threshold.n());
        let state = State {
            // Replaced before the program starts.
            rng: ChaCha20Rng::from_seed([0; 32]),
            round: 0,
            expected: vec![0; n],
            inbox: vec![None; n],
            building: Building::new(n),
            lost: vec![false; n],
            blames: Vec::new(),
            total: vec![0; n],
            ragged: false,
        };
        Ok(Self { local: local.position(), threshold, state: Arc::new(Mutex::new(state)) })
    }

    /// The state. The program and its machine are never active at the same time, so the lock is always free.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any message of the current round is missing and may still come.
    pub(super) fn awaits_any(&self) -> bool {
        self.state().awaits_any()
    }

    /// This party's position: its share index minus one.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.local
    }

    /// The number of parties.
    #[must_use]
    pub fn n(&self) -> usize {
        usize::from(self.threshold.n())
    }

    /// The number of parties that may be corrupt.
    #[must_use]
    pub fn t(&self) -> usize {
        usize::from(self.threshold.t())
    }

    /// How many of how many parties.
    #[must_use]
    pub const fn threshold(&self) -> Threshold {
        self.threshold
    }

    /// The position so many places after this party's, in a circle.
    #[must_use]
    pub fn after(&self, places: usize) -> usize {
        (self.local + places).checked_rem(self.n()).unwrap_or(0)
    }

    /// Draws random bytes for this party alone.
    pub fn draw<T>(&self, draw: impl FnOnce(&mut ChaCha20Rng) -> T) -> T {
        draw(&mut self.state().rng)
    }

    /// Sends `out[j]` to the party at position j, and waits for `expected[j]` bytes of it: nothing if zero. Entries at this
    /// party's own position are ignored. What else the program sends before it waits travels in the same messages.
    ///
    /// # Errors
    /// [`Stop::Lost`] if a party that is waited for was excluded; [`Stop::Input`] if messages become longer than
    /// [`LONGEST_MESSAGE`], or all together longer than an instance keeps.
    pub fn exchange(&self, out: &[Vec<u8>], expected: &[usize]) -> Result<Exchange, Stop> {
        let (round, places) = self.post(out, expected)?;
        Ok(Exchange::new(self.clone(), round, places))
    }

    /// As [`exchange`](Self::exchange), but the program takes messages as they come and can go on without the rest. This has
    /// to be the last that it sends.
    ///
    /// # Errors
    /// As [`exchange`](Self::exchange).
    pub fn gather(&self, out: &[Vec<u8>], expected: &[usize]) -> Result<Gather, Stop> {
        let (round, places) = self.post(out, expected)?;
        self.state().ragged = true;
        Ok(Gather::new(self.clone(), round, places))
    }

    /// Adds to the next round. Returns its number, and where in each message what is expected will be.
    fn post(&self, out: &[Vec<u8>], expected: &[usize]) -> Result<(u16, Vec<(usize, usize)>), Stop> {
        let mut guard = self.state();
        let state = &mut *guard;
        if state.ragged {
            return Err(Stop::Bug(Bug("a program that sends after it went on without all")));
        }
        let round = state.round.checked_add(1).ok_or(Stop::Input("a program of too many rounds"))?;
        state.building.used = true;
        for (position, (buffer, bytes)) in state.building.out.iter_mut().zip(out).enumerate() {
            if position != self.local {
                buffer.extend_from_slice(bytes);
                if buffer.len() > LONGEST_MESSAGE {
                    return Err(Stop::Input("a batch that is too large for one message"));
                }
            }
        }
        let mut places = Vec::with_capacity(expected.len());
        for (position, more) in expected.iter().enumerate() {
            let more = if position == self.local { 0 } else { *more };
            let (Some(sum), Some(total)) = (state.building.expected.get_mut(position), state.total.get_mut(position))
            else {
                return Err(Stop::Bug(Bug("more peers than parties")));
            };
            places.push((*sum, more));
            *sum += more;
            *total += more;
            if *sum > LONGEST_MESSAGE || *total > KEPT_BYTES {
                return Err(Stop::Input("a batch that is too large for one instance"));
            }
        }
        Ok((round, places))
    }

    /// Blames a party, which is excluded.
    pub fn blame(&self, position: usize, misbehaviour: Misbehaviour) {
        self.state().blames.push((position, misbehaviour));
    }

    /// The party at a position, as `theta-rounds` names it.
    pub(super) fn id(position: usize) -> Option<PartyId> {
        ShareIndex::at(position).map(PartyId::of_share)
    }
}

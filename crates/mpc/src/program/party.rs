//! A party as its program sees it.

use core::mem;
use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use theta_names::ShareIndex;
use theta_rounds::{Bug, EARLY_BYTES, EARLY_MESSAGES, PartyId};
use theta_sharing::Threshold;

use super::{Exchange, Gather, LONGEST_MESSAGE, Misbehaviour, SEED, Stop, view::Record};
use theta_groups::{Secret, SecretRng};

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
    pub(super) rng: SecretRng,
    /// The current round: its messages have left.
    pub(super) round: u16,
    /// What the current round expects, and what has come.
    pub(super) expected: Vec<usize>,
    pub(super) inbox: Vec<Option<Bytes>>,
    /// What the next round will be.
    pub(super) building: Building,
    pub(super) lost: Vec<bool>,
    pub(super) blames: Vec<(usize, Misbehaviour)>,
    /// Pairs of which one has lied, and it is not known which.
    pub(super) disputes: Vec<[usize; 2]>,
    /// What each peer may have sent without waiting for this party.
    ahead: Vec<Ahead>,
    /// The last round in which all met, and the bytes of a party that [`Party::keep_together`] has been told of since then.
    met: (u16, usize),
    /// The last round with messages whose senders chose what nobody else knows yet: shares that they dealt, seeds.
    dealt: u16,
    /// The last round whose messages all parties are known to have.
    settled: u16,
    /// The round that a part of the program may leave before it is complete. Other parties may not do so at the same point,
    /// so nothing may be sent after that round.
    pub(super) ragged: Option<u16>,
    /// What is kept of the program, if anything is.
    pub(super) record: Option<Record>,
    /// The name of the run, when all have begun it together.
    pub(super) run: Option<[u8; SEED]>,
    /// Whether the program has come to its border, if it has one.
    pub(super) is_past_border: bool,
}

/// The first round of a branch: programs have fewer before.
const BRANCH: u16 = 1 << 15;

/// For so many rounds all go on without having met.
const MOST_ROUNDS_APART: u16 = 16;

/// So many bytes of a party in all that time.
const MOST_BYTES_APART: usize = EARLY_BYTES / 2;

/// The messages of one peer in rounds after the last in which this party told it anything. A peer waits for what it is told, so of other rounds nothing
/// comes early.
#[derive(Clone, Copy, Default)]
struct Ahead {
    messages: usize,
    bytes: usize,
}

impl State {
    /// All randomness follows from a seed: this one, unless the program is done again from another.
    pub(super) fn begin(&mut self, drawn: Secret<[u8; SEED]>) {
        self.rng = match &mut self.record {
            Some(record) => SecretRng::new(record.begin(drawn)),
            None => SecretRng::new(&drawn),
        };
    }

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

    /// Whether a part of the program may go on without what is missing in the current round.
    pub(super) fn is_ragged(&self) -> bool {
        self.ragged == Some(self.round)
    }

    /// Begins the round that was collected, and returns its messages.
    pub(super) fn next_round(&mut self) -> Result<Vec<Vec<u8>>, Bug> {
        let round = self.round;
        if self.record.as_mut().is_some_and(|record| !record.note(round, &self.inbox)) {
            self.record = None;
        }
        self.round = self.round.checked_add(1).ok_or(Bug("a program of too many rounds"))?;
        let n = self.inbox.len();
        let Building { out, expected, .. } = mem::replace(&mut self.building, Building::new(n));
        for (ahead, _) in self.ahead.iter_mut().zip(&out).filter(|(_, told)| !told.is_empty()) {
            *ahead = Ahead::default();
        }
        self.expected = expected;
        self.inbox = vec![None; n];
        Ok(out)
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
            rng: SecretRng::new(&Secret::new([0; SEED])),
            round: 0,
            expected: vec![0; n],
            inbox: vec![None; n],
            building: Building::new(n),
            lost: vec![false; n],
            blames: Vec::new(),
            disputes: Vec::new(),
            ahead: vec![Ahead::default(); n],
            met: (0, 0),
            dealt: 0,
            settled: 0,
            ragged: None,
            record: None,
            run: None,
            is_past_border: false,
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
    pub fn draw<T>(&self, draw: impl FnOnce(&mut SecretRng) -> T) -> T {
        draw(&mut self.state().rng)
    }

    /// Sends `out[j]` to the party at position j, and waits for `expected[j]` bytes of it: nothing if zero. Entries at this
    /// party's own position are ignored. What else the program sends before it waits travels in the same messages.
    ///
    /// # Errors
    /// [`Stop::Lost`] if a party that is waited for was excluded; [`Stop::Input`] if messages become longer than
    /// [`LONGEST_MESSAGE`], or those of one party that waits for nothing of this one more than can wait here.
    pub fn exchange(&self, out: &[Vec<u8>], expected: &[usize]) -> Result<Exchange, Stop> {
        let (round, places) = self.post(out.iter().map(|bytes| bytes.as_slice().into()), expected)?;
        Ok(Exchange::new(self.clone(), round, places))
    }

    /// As [`exchange`](Self::exchange), for long messages: nothing is copied that is the first of its message.
    pub(crate) fn hand_over(&self, out: Vec<Vec<u8>>, expected: &[usize]) -> Result<Exchange, Stop> {
        let (round, places) = self.post(out.into_iter().map(Cow::Owned), expected)?;
        Ok(Exchange::new(self.clone(), round, places))
    }

    /// As [`exchange`](Self::exchange), but the program takes messages as they come and can go on without the rest. Nothing is
    /// sent after the round of this; what other parts send in the same round may be gathered as well.
    ///
    /// # Errors
    /// As [`exchange`](Self::exchange).
    pub fn gather(&self, out: &[Vec<u8>], expected: &[usize]) -> Result<Gather, Stop> {
        let (round, places) = self.post(out.iter().map(|bytes| bytes.as_slice().into()), expected)?;
        self.state().ragged = Some(round);
        Ok(Gather::new(self.clone(), round, places))
    }

    /// Notes that parties deal in the next round, so that [`Self::settle`] waits.
    pub(crate) fn note_dealing(&self) {
        let mut state = self.state();
        state.dealt = state.round.saturating_add(1);
    }

    /// Before something is opened: waits until all parties have received whatever was dealt. Costs a round, if anything was
    /// dealt since all were known to be at the same place.
    ///
    /// Messages take as long as the adversary likes. Without this, a corrupt party could keep its dealing back from one honest
    /// party, learn another one's share of what is opened, and then choose what it deals so that the value is as it likes.
    pub(crate) async fn settle(&self) -> Result<(), Stop> {
        let is_settled = {
            let state = self.state();
            state.dealt <= state.settled
        };
        if is_settled { Ok(()) } else { self.everybody_is_here().await }
    }

    /// Before a step in which not all tell all, with so many bytes of each: has all meet if somebody could be so far ahead of others by now that what it sends
    /// has no place there. All come to the same decision, as it depends on what all know.
    pub(crate) async fn keep_together(&self, bytes: usize) -> Result<(), Stop> {
        let meets = {
            let state = self.state();
            let (met, sent) = state.met;
            state.round.saturating_sub(met) >= MOST_ROUNDS_APART || sent + bytes > MOST_BYTES_APART
        };
        if meets {
            self.everybody_is_here().await?;
        }
        self.state().met.1 += bytes;
        Ok(())
    }

    /// Waits until all have come to this point: one byte of each.
    pub(crate) async fn everybody_is_here(&self) -> Result<(), Stop> {
        self.meet(&[0]).await.map(drop)
    }

    /// All tell all the same number of bytes. Whoever has everybody's knows that all have received what was sent before.
    pub(crate) async fn meet(&self, bytes: &[u8]) -> Result<Vec<Bytes>, Stop> {
        // A party's message of the next round leaves when it has received all of this one.
        let before = self.state().round;
        let got = self.exchange(&vec![bytes.to_vec(); self.n()], &vec![bytes.len(); self.n()])?.await?;
        let mut state = self.state();
        state.settled = state.settled.max(before);
        // What another part has been told of since it met in this round leaves after the round.
        if state.met.0 != state.round {
            state.met = (state.round, 0);
        }
        drop(state);
        Ok(got)
    }

    /// Whether all parties come here with the same digest.
    pub(crate) async fn agree(&self, digest: &[u8]) -> Result<bool, Stop> {
        Ok(self.who_differs(digest).await?.is_empty())
    }

    /// All tell all a digest that is the same at all who have not lied: whoever comes with another one is blamed.
    pub(crate) async fn agree_on_what_is_known(&self, digest: &[u8]) -> Result<(), Stop> {
        let others = self.who_differs(digest).await?;
        others.iter().for_each(|other| self.blame(*other, Misbehaviour::FalseConfirmation));
        if others.is_empty() { Ok(()) } else { Err(Stop::Lost) }
    }

    /// The positions of those who come here with another digest.
    async fn who_differs(&self, digest: &[u8]) -> Result<Vec<usize>, Stop> {
        let digests = self.meet(digest).await?;
        let others =
            digests.iter().enumerate().filter(|(position, other)| *position != self.local && **other != digest);
        Ok(others.map(|(position, _)| position).collect())
    }

    /// Checks that the values of a party are given by this party alone, as many as all expect. `given`: how many there are here.
    pub(crate) fn check_input(&self, dealer: usize, count: usize, given: Option<usize>) -> Result<(), Stop> {
        if dealer < self.n() && given == (dealer == self.local).then_some(count) {
            Ok(())
        } else {
            Err(Stop::Input("inputs are given by their dealer alone, as many as all expect"))
        }
    }

    /// Adds to the next round. Returns its number, and where in each message what is expected will be.
    fn post<'a>(
        &self,
        out: impl Iterator<Item = Cow<'a, [u8]>>,
        expected: &[usize],
    ) -> Result<(u16, Vec<(usize, usize)>), Stop> {
        let mut guard = self.state();
        let state = &mut *guard;
        let round = state.round.checked_add(1).ok_or(Stop::Input("a program of too many rounds"))?;
        if state.ragged.is_some_and(|ragged| ragged < round) {
            return Err(Stop::Bug(Bug("a program that sends after it went on without all")));
        }
        state.building.used = true;
        for (position, (buffer, bytes)) in state.building.out.iter_mut().zip(out).enumerate() {
            if position != self.local {
                if buffer.is_empty() {
                    *buffer = bytes.into_owned();
                } else {
                    buffer.extend_from_slice(&bytes);
                }
                if buffer.len() > LONGEST_MESSAGE {
                    return Err(Stop::Input("a batch that is too large for one message"));
                }
            }
        }
        let mut places = Vec::with_capacity(expected.len());
        for (position, more) in expected.iter().enumerate() {
            let more = if position == self.local { 0 } else { *more };
            let (Some(sum), Some(ahead)) = (state.building.expected.get_mut(position), state.ahead.get_mut(position))
            else {
                return Err(Stop::Bug(Bug("more peers than parties")));
            };
            places.push((*sum, more));
            ahead.messages += usize::from(*sum == 0 && more > 0);
            ahead.bytes += more;
            *sum += more;
            if *sum > LONGEST_MESSAGE {
                return Err(Stop::Input("a batch that is too large for one message"));
            }
            if ahead.messages > EARLY_MESSAGES || ahead.bytes > EARLY_BYTES {
                return Err(Stop::Input("a party sends too much without waiting for those who take it"));
            }
        }
        Ok((round, places))
    }

    /// Blames a party, which is excluded.
    pub fn blame(&self, position: usize, misbehaviour: Misbehaviour) {
        self.state().blames.push((position, misbehaviour));
    }

    /// Goes on with rounds of their own, which other parties may not take: liars may have told only some that there is a reason. Whoever does not come along sends
    /// and expects the rounds that follow, and neither side takes the other's messages for false ones.
    ///
    /// Says whether it did: nothing does beside other parts of a program that are in the middle of a round, nor twice.
    pub(crate) fn branches_off(&self) -> bool {
        let mut state = self.state();
        let may = !state.building.used && state.round < BRANCH;
        if may {
            state.round = BRANCH - 1;
        }
        may
    }

    /// Notes that one of two parties has lied.
    pub(crate) fn dispute(&self, one: usize, other: usize) {
        self.state().disputes.push([one, other]);
    }

    /// Pairs of parties, by position, of which one has lied, and this party cannot know which: with at most t liars, who is in many of them with different
    /// others is one.
    #[must_use]
    pub fn disputes(&self) -> Vec<[usize; 2]> {
        self.state().disputes.clone()
    }

    /// The party at a position, as `theta-rounds` names it.
    pub(super) fn id(position: usize) -> Option<PartyId> {
        ShareIndex::at(position).map(PartyId::of_share)
    }
}

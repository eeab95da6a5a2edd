//! Views: what a program came of at a party, so that others can do it again and see who said what it should not have.
//!
//! All that an honest party says follows from its seed and from what it was told. A party that records its program keeps both, the latter as hashes, until
//! the program comes to its [border](Party::border). From then on what it says depends on more than its seed, and the record is gone.

use std::collections::VecDeque;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use theta_groups::{Secret, SecretRng};
use theta_names::ShareIndex;
use theta_rounds::{Channel, Driver, Effect, Input, LockStep, Machine, PartyId, Recipient};
use theta_sharing::Threshold;

use super::{Party, Program, SEED, Stop};

/// The first bytes of SHA-256 of what a party was told in a round.
pub type Heard = [u8; 16];

/// Of a program with more rounds than this before its border there is no view.
pub const MOST_ROUNDS: usize = 128;

/// What a party has of its program: whoever has those of all parties knows all that was said.
#[derive(Debug)]
pub struct View {
    /// What all its randomness follows from.
    pub seed: Secret<[u8; SEED]>,
    /// What it heard in each round, from the first, of the party at each position. All of these rounds are complete but the last.
    pub rounds: Vec<Vec<Option<Heard>>>,
}

/// What is kept of a program while it runs.
pub(super) struct Record {
    view: View,
    /// Whether the program is done again, from a seed that was shown: it ends at its border.
    is_rehearsal: bool,
}

impl Record {
    const fn new(seed: Secret<[u8; SEED]>, is_rehearsal: bool) -> Self {
        Self { view: View { seed, rounds: Vec::new() }, is_rehearsal }
    }

    /// The program begins with this seed, or with the one that it is done again from.
    pub(super) fn begin(&mut self, drawn: Secret<[u8; SEED]>) -> &Secret<[u8; SEED]> {
        if !self.is_rehearsal {
            self.view.seed = drawn;
        }
        &self.view.seed
    }

    pub(super) const fn is_rehearsal(&self) -> bool {
        self.is_rehearsal
    }

    /// Notes what was heard in a round. Says whether there is room for it.
    pub(super) fn note(&mut self, inbox: &[Option<Bytes>]) -> bool {
        let hash = |message: &Bytes| {
            let mut heard = Heard::default();
            heard.iter_mut().zip(Sha256::digest(message)).for_each(|(to, from)| *to = from);
            heard
        };
        self.view.rounds.push(inbox.iter().map(|message| message.as_ref().map(hash)).collect());
        self.view.rounds.len() <= MOST_ROUNDS
    }
}

/// The record of a program, for whoever runs it.
pub struct Recording(Party);

impl Recording {
    /// Whether nothing has left that depends on more than the party's seed, or ever will once the record is [taken](Self::take) and the program dropped.
    #[must_use]
    pub fn is_before_border(&self) -> bool {
        self.0.state().record.is_some()
    }

    /// See [`Party::disputes`].
    #[must_use]
    pub fn disputes(&self) -> Vec<[usize; 2]> {
        self.0.disputes()
    }

    /// The view, once; `None` past the border. Whoever shows it must have thrown the program away, with whatever came of it.
    #[must_use]
    pub fn take(&self) -> Option<View> {
        let mut state = self.0.state();
        let mut record = state.record.take()?;
        let has_room = state.round == 0 || record.note(&state.inbox);
        has_room.then_some(record.view)
    }
}

impl<O: Send + 'static> Program<O> {
    /// Keeps a record from the start. Without this nothing is kept.
    pub fn record(&self) -> Recording {
        self.record_as(Record::new(Secret::new([0; SEED]), false))
    }

    fn record_as(&self, record: Record) -> Recording {
        let party = self.party().clone();
        party.state().record = Some(record);
        Recording(party)
    }
}

impl Party {
    /// From here on the program uses more than its seed. A record of it goes, so that nobody can ever show it.
    ///
    /// # Errors
    /// [`Stop::Input`] where a program is done again from its seed: it ends here.
    pub fn border(&self) -> Result<(), Stop> {
        let mut state = self.state();
        state.is_past_border = true;
        if state.record.as_ref().is_some_and(Record::is_rehearsal) {
            return Err(Stop::Input("whoever does a program again does it up to its border"));
        }
        state.record = None;
        Ok(())
    }
}

/// What all parties would have heard in a program up to its border if they had these seeds and none had lied, by position. `None` if it has no border, or
/// they do not come to it.
pub(crate) fn rehearse<O: Send + 'static>(
    threshold: Threshold,
    seeds: impl IntoIterator<Item = [u8; SEED]>,
    program: impl Fn(ShareIndex) -> Result<Program<O>, Stop>,
) -> Option<Vec<View>> {
    let members: Vec<PartyId> = threshold.indices().map(PartyId::of_share).collect();
    let (mut recordings, mut machines) = (Vec::new(), Vec::new());
    for (id, seed) in members.iter().zip(seeds) {
        let program = program(id.share()).ok()?;
        recordings.push(program.record_as(Record::new(Secret::new(seed), true)));
        machines.push(Driver::new(*id, members.iter().copied(), LockStep::new(program)));
    }
    // Seeds are given, and nothing else is drawn.
    let mut rng = SecretRng::new(&Secret::new([0; SEED]));
    let mut waiting: VecDeque<(usize, Input<_>)> = (0..machines.len()).map(|place| (place, Input::Start)).collect();
    while let Some((place, input)) = waiting.pop_front() {
        let from = *members.get(place)?;
        for effect in machines.get_mut(place)?.handle(input, &mut rng) {
            if let Effect::Send { to: Recipient::Party(to), slot, payload, .. } = effect {
                let message = Input::Message { from, slot, channel: Channel::Private, payload };
                waiting.push_back((to.share().position(), message));
            }
        }
    }
    let reached = |recording: &Recording| recording.0.state().is_past_border;
    if !recordings.iter().all(reached) {
        return None;
    }
    recordings.iter().map(Recording::take).collect()
}

//! Views: what a program came of at a party, so that others can do it again and see who said what it should not have.
//!
//! All that an honest party says follows from its seed and from what it was told. A party that records its program keeps both, the latter as hashes, from
//! where all know that they have begun together until the program comes to its [border](Party::border). From then on what it says depends on more than its seed, and the record is gone.

use std::collections::VecDeque;

use bytes::Bytes;
use rand_core::Rng as _;
use sha2::{Digest, Sha256};
use theta_groups::{Secret, SecretRng, Transcript};
use theta_names::ShareIndex;
use theta_rounds::{Channel, Driver, Effect, Input, LockStep, Machine, PartyId, Recipient};
use theta_sharing::Threshold;

use super::{Party, Program, SEED, Stop};

/// SHA-256 of what a party was told in a round. All of it: who found two messages with one hash could have honest parties contradict each other.
pub type Heard = [u8; 32];

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
    /// The first round that goes on record: none before all have begun together.
    first: Option<u16>,
    /// Whether the program is done again, from a seed that was shown: it ends at its border.
    is_rehearsal: bool,
}

impl Record {
    const fn new(seed: Secret<[u8; SEED]>, first: Option<u16>) -> Self {
        Self { view: View { seed, rounds: Vec::new() }, first, is_rehearsal: first.is_some() }
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
    pub(super) fn note(&mut self, round: u16, inbox: &[Option<Bytes>]) -> bool {
        if self.first.is_some_and(|first| round >= first) {
            let heard = |message: &Bytes| Sha256::digest(message).into();
            self.view.rounds.push(inbox.iter().map(|message| message.as_ref().map(heard)).collect());
        }
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
        let has_room = record.note(state.round, &state.inbox);
        (record.first.is_some() && has_room).then_some(record.view)
    }

    /// The name of the run, the same at all parties, when all have begun it together.
    #[must_use]
    pub fn run(&self) -> Option<[u8; SEED]> {
        self.0.state().run
    }
}

impl<O: Send + 'static> Program<O> {
    /// What has become of it, without a record.
    pub fn watch(&self) -> Recording {
        Recording(self.party().clone())
    }

    /// Keeps a record from the start. Without this nothing is kept.
    pub fn record(&self) -> Recording {
        self.record_as(Record::new(Secret::new([0; SEED]), None))
    }

    fn record_as(&self, record: Record) -> Recording {
        let party = self.party().clone();
        party.state().record = Some(record);
        Recording(party)
    }
}

impl Party {
    /// All have begun this run together: its name has come of what each of them has drawn for it. From here on all randomness follows from a seed of its own, which is as fresh as
    /// whatever any honest party has drawn, and that is what a view shows: a machine that was set back draws what it drew before.
    pub(crate) fn begin_run(&self, name: &[u8; SEED]) {
        let mut drawn = Secret::new([0; SEED]);
        self.draw(|rng| rng.fill_bytes(drawn.expose_mut()));
        let seed = Transcript::new("theta/mpc/run/v1").with("drawn", drawn.expose()).with("run", name).finish32();
        let seed = Secret::new(seed);
        let mut state = self.state();
        state.rng = SecretRng::new(&seed);
        state.run = Some(*name);
        let first = state.round.saturating_add(1);
        if let Some(record) = &mut state.record {
            *record = Record { view: View { seed, rounds: Vec::new() }, first: Some(first), is_rehearsal: false };
        }
    }

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
        recordings.push(program.record_as(Record::new(Secret::new(seed), Some(1))));
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

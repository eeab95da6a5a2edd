//! Who takes part.

use std::collections::{BTreeMap, BTreeSet};

use theta_groups::Transcript;
use theta_names::ShareIndex;

use super::Fault;
use crate::error::expect_len;
use crate::{Misbehaviour, Misuse, Session};

/// A message for each other party, or of each: bytes.
pub type Messages<T = Vec<u8>> = BTreeMap<ShareIndex, T>;

/// The parties of a run, and which of them we are.
#[derive(Clone, Debug)]
pub struct Parties {
    id: [u8; 32],
    me: ShareIndex,
    others: BTreeSet<ShareIndex>,
}

impl Parties {
    /// The parties of the run `id`, which must be new for each.
    ///
    /// # Errors
    /// [`Misuse::OneParty`], if we are alone or among the others.
    pub fn new(id: [u8; 32], me: ShareIndex, others: BTreeSet<ShareIndex>) -> Result<Self, Misuse> {
        if others.is_empty() || others.contains(&me) { Err(Misuse::OneParty) } else { Ok(Self { id, me, others }) }
    }

    /// Which of them we are.
    #[must_use]
    pub const fn me(&self) -> ShareIndex {
        self.me
    }

    /// The id of the run.
    #[must_use]
    pub const fn id(&self) -> [u8; 32] {
        self.id
    }

    /// All others.
    pub fn others(&self) -> impl Iterator<Item = ShareIndex> + '_ {
        self.others.iter().copied()
    }

    /// The same parties in another run.
    pub(super) fn for_run(&self, id: [u8; 32]) -> Self {
        Self { id, ..self.clone() }
    }

    /// The session in which we send to a party.
    pub(super) fn to(&self, party: ShareIndex) -> Result<Session, Misuse> {
        Session::new(self.id, self.me, party)
    }

    /// Begins a hash for a batch, in which `place` tells hashes of one kind apart.
    pub(super) fn transcript(&self, domain: &'static str, batch: u64, place: &'static str) -> Transcript {
        let mut transcript = Transcript::new(domain).with("run", &self.id);
        for party in self.others.iter().chain([&self.me]).collect::<BTreeSet<_>>() {
            transcript.append("party", &party.get().to_be_bytes());
        }
        transcript.with("batch", &batch.to_be_bytes()).with("place", place.as_bytes())
    }

    /// The messages of a round, if there is one of each other party and none else.
    pub(super) fn received<'a, T: AsRef<[u8]>>(
        &self,
        messages: &'a Messages<T>,
    ) -> Result<impl Iterator<Item = (ShareIndex, &'a [u8])> + use<'a, T>, Misuse> {
        if messages.keys().eq(&self.others) {
            Ok(messages.iter().map(|(party, bytes)| (*party, bytes.as_ref())))
        } else {
            Err(Misuse::Parties)
        }
    }

    /// The same message for each other party.
    pub(super) fn to_all(&self, message: &[u8]) -> Messages {
        self.others().map(|party| (party, message.to_vec())).collect()
    }
}

/// Divides a message of a known length after `at` bytes.
pub(super) fn split(party: ShareIndex, bytes: &[u8], at: usize, length: usize) -> Result<(&[u8], &[u8]), Fault> {
    expect_len(bytes, length).map_err(Fault::theirs(party))?;
    bytes
        .split_at_checked(at)
        .ok_or(Fault::Party { party, misbehaviour: Misbehaviour::Length { got: 0, expected: at } })
}

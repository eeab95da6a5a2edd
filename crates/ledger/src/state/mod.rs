//! What follows from a history.

mod ceremonies;
mod demand;
mod keys;
mod members;
mod refusal;
mod signing;
mod states;
mod warrants;

use std::collections::BTreeMap;

use theta_agreement::{Digest, Electorate, Member, VoteKind};
use theta_names::{KeyName, KeyState, Version};

use crate::sitting::Sitting;
use crate::{Action, AdoptedKey, CertifiedEntry, Entry, Genesis, LedgerId, Outcome, WarrantRefusal};
use members::Roll;

pub use ceremonies::{Begun, Ended, RequestHistory, Source};
use keys::MOST_VERSIONS;
pub use keys::{Epochs, KeyHistory, VersionHistory};
pub use members::Seat;
pub use refusal::{MemberRefusal, Refusal};
pub use signing::{SignedWarrant, SigningRefusal};
pub use states::SHORTEST_WAIT;

/// Why a certified entry is not the next one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// Another height than the next.
    #[error("the next entry is number {expected}, not {got}")]
    Height {
        /// The next height.
        expected: u64,
        /// The entry's.
        got: u64,
    },
    /// It follows another history.
    #[error("entry {0} follows another history than this one")]
    Fork(u64),
    /// It is older than the entry before.
    #[error("entry {0} says that it is older than the one before")]
    Time(u64),
    /// Its votes are not those of a quorum, or for something else.
    #[error("the votes for entry {0} are false, or too few")]
    Certificate(u64),
    /// Machines voted for members that they do not stand in for.
    #[error("a warrant under which entry {0} was decided does not serve: {1}")]
    Warrant(u64, WarrantRefusal),
    /// It does not follow.
    #[error("entry {0} cannot be: {1}")]
    Refused(u64, Refusal),
}

/// A group as of one height: all that follows from the genesis and the entries up to there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerState {
    id: LedgerId,
    group: String,
    roll: Roll,
    faulty: usize,
    height: u64,
    head: Digest,
    time: u64,
    keys: BTreeMap<KeyName, KeyHistory>,
    running: BTreeMap<u64, Begun>,
    /// The height of the newest entry about each key.
    moved: BTreeMap<KeyName, u64>,
    /// What became of each request, by its digest.
    requests: BTreeMap<Digest, RequestHistory>,
}

impl LedgerState {
    /// The group as it was founded.
    #[must_use]
    pub fn new(genesis: &Genesis) -> Self {
        let id = genesis.id();
        Self {
            id,
            group: genesis.name().to_owned(),
            roll: Roll::new(genesis),
            faulty: usize::from(genesis.k().saturating_sub(1)),
            height: 0,
            head: *id.as_bytes(),
            time: 0,
            keys: BTreeMap::new(),
            running: BTreeMap::new(),
            moved: BTreeMap::new(),
            requests: BTreeMap::new(),
        }
    }

    /// The ledger's id.
    #[must_use]
    pub const fn id(&self) -> &LedgerId {
        &self.id
    }

    /// The group's name.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The members by rising number.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        self.roll.members()
    }

    /// How many members may do what they like.
    #[must_use]
    pub const fn faulty(&self) -> usize {
        self.faulty
    }

    /// How many members decide.
    #[must_use]
    pub fn quorum(&self) -> usize {
        self.sitting().quorum()
    }

    /// The number of the last entry; 0 if there is none.
    #[must_use]
    pub const fn height(&self) -> u64 {
        self.height
    }

    /// The digest of the last entry; the ledger's id if there is none.
    #[must_use]
    pub const fn head(&self) -> &Digest {
        &self.head
    }

    /// When the last entry was proposed, in seconds since 1970.
    #[must_use]
    pub const fn time(&self) -> u64 {
        self.time
    }

    /// All keys that there are or were.
    #[must_use]
    pub const fn keys(&self) -> &BTreeMap<KeyName, KeyHistory> {
        &self.keys
    }

    /// The ceremonies that run, by their numbers.
    #[must_use]
    pub const fn running(&self) -> &BTreeMap<u64, Begun> {
        &self.running
    }

    /// What became of a request for a ceremony, by the request's digest; `None` if none has begun.
    #[must_use]
    pub fn request(&self, request: &Digest) -> Option<&RequestHistory> {
        self.requests.get(request)
    }

    pub(crate) fn sitting(&self) -> Sitting {
        Sitting::new(self.id, self.height.saturating_add(1), self.head, self.members(), self.faulty)
    }

    /// The entry that an action would be if it were decided next, without consents. `now` is in seconds since 1970.
    #[must_use]
    pub fn next_entry(&self, action: Action, reason: Vec<u8>, now: u64) -> Entry {
        let (time, consents) = (now.max(self.time), Vec::new());
        Entry { height: self.height.saturating_add(1), previous: self.head, time, action, reason, consents }
    }

    /// Whether an action can follow.
    ///
    /// # Errors
    /// [`Refusal`] with the reason.
    pub fn check(&self, action: &Action) -> Result<(), Refusal> {
        match action {
            Action::Adopt(adopted) => self.check_adopted(adopted),
            Action::Begin(request) => self.begun(request).map(drop),
            Action::End { ceremony, outcome } => self.ended(*ceremony, outcome).map(drop),
            Action::SetState(change) => self.check_state(change),
            Action::Members(change) => self.check_member_change(change),
        }
    }

    /// Whether an entry can be the next one, whoever votes for it.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn check_entry(&self, entry: &Entry) -> Result<(), LedgerError> {
        self.check_place(entry)?;
        self.check_consented(entry)
    }

    /// Place and action, without signatures.
    fn check_place(&self, entry: &Entry) -> Result<(), LedgerError> {
        let expected = self.height.saturating_add(1);
        if entry.height != expected {
            return Err(LedgerError::Height { expected, got: entry.height });
        }
        if entry.previous != self.head {
            return Err(LedgerError::Fork(entry.height));
        }
        if entry.time < self.time {
            return Err(LedgerError::Time(entry.height));
        }
        let refused = |refusal| LedgerError::Refused(entry.height, refusal);
        self.check(&entry.action).map_err(refused)?;
        match &entry.action {
            Action::Members(change) => self.check_member_time(change, &entry.reason, entry.time).map_err(refused),
            Action::SetState(change) => self.check_state_time(change, entry.time).map_err(refused),
            _ => Ok(()),
        }
    }

    fn check_consented(&self, entry: &Entry) -> Result<(), LedgerError> {
        self.check_consents(entry).map_err(|refusal| LedgerError::Refused(entry.height, refusal))
    }

    /// Takes the next entry.
    ///
    /// # Errors
    /// [`LedgerError`]; nothing changes then.
    pub fn advance(&mut self, certified: &CertifiedEntry) -> Result<(), LedgerError> {
        let CertifiedEntry { entry, certificate, warrants } = certified;
        self.check_place(entry)?;
        let sitting = self.under_warrants(warrants, entry.time);
        let sitting = sitting.map_err(|refusal| LedgerError::Warrant(entry.height, refusal))?;
        let digest = entry.digest(&self.id);
        let decided = certificate.kind() == VoteKind::Precommit && *certificate.digest() == digest;
        if !decided || !certificate.is_valid(&sitting) {
            return Err(LedgerError::Certificate(entry.height));
        }
        self.check_consented(entry)?;
        self.apply(entry, digest).map_err(|refusal| LedgerError::Refused(entry.height, refusal))
    }

    /// Takes the next entry of a history whose votes were checked before, such as a node's own store.
    ///
    /// # Errors
    /// [`LedgerError`]; nothing changes then.
    pub fn restore(&mut self, entry: &Entry) -> Result<(), LedgerError> {
        self.check_place(entry)?;
        let digest = entry.digest(&self.id);
        self.apply(entry, digest).map_err(|refusal| LedgerError::Refused(entry.height, refusal))
    }

    fn apply(&mut self, entry: &Entry, digest: Digest) -> Result<(), Refusal> {
        let key = self.key_of(&entry.action).cloned();
        match &entry.action {
            Action::Adopt(adopted) => self.adopt(adopted, entry.height),
            Action::Begin(request) => {
                let begun = self.begun(request)?;
                let (number, change) = (entry.height, request.change.clone());
                let Begun { version, epoch, .. } = begun;
                let history = RequestHistory { number, change, version, epoch, ended: None };
                self.requests.insert(request.digest(), history);
                self.running.insert(entry.height, begun);
            }
            Action::End { ceremony, outcome } => self.end(*ceremony, outcome, entry.height)?,
            Action::SetState(change) => self.set_state(change),
            Action::Members(change) => self.change_members(change, &entry.reason, (entry.height, entry.time))?,
        }
        if let Some(key) = key {
            self.moved.insert(key, entry.height);
        }
        (self.height, self.head, self.time) = (entry.height, digest, entry.time);
        self.destroy_due(entry.time);
        Ok(())
    }

    /// The key that an action is about.
    fn key_of<'a>(&'a self, action: &'a Action) -> Option<&'a KeyName> {
        match action {
            Action::Adopt(adopted) => Some(&adopted.key),
            Action::Begin(request) => Some(request.change.key()),
            Action::End { ceremony, .. } => self.running.get(ceremony).map(|begun| begun.request.change.key()),
            Action::SetState(change) => Some(&change.key),
            Action::Members(_) => None,
        }
    }

    fn check_adopted(&self, adopted: &AdoptedKey) -> Result<(), Refusal> {
        let AdoptedKey { key, version, k, holders, .. } = adopted;
        self.check_holders(*k, holders)?;
        if version.get() > MOST_VERSIONS {
            return Err(Refusal::Exhausted("versions of this key"));
        }
        if holders.len() <= self.faulty {
            return Err(Refusal::Holders("so few nodes hold it that all of them may lie"));
        }
        if let Some(number) = self.running_ceremony(key) {
            return Err(Refusal::Busy(number));
        }
        let Some(line) = self.keys.get(key) else { return Ok(()) };
        if let Some(known) = line.versions.get(version) {
            let newer = known.serving().is_none_or(|serving| adopted.epoch > serving.epoch);
            return if newer { Ok(()) } else { Err(Refusal::Exists(key.clone())) };
        }
        // Versions are adopted in their order; a gap is a version that was destroyed.
        let next = line.next_version().ok_or(Refusal::Exhausted("versions of this key"))?;
        if *version < next { Err(Refusal::Exists(key.clone())) } else { Ok(()) }
    }

    fn adopt(&mut self, adopted: &AdoptedKey, height: u64) {
        let AdoptedKey { key, version, epoch, suite, delivery, k, holders, public } = adopted.clone();
        let serving = Epochs { epoch, since: height, k, holders, public, certificate: Vec::new() };
        if let Some(known) = self.keys.get_mut(&key).and_then(|line| line.versions.get_mut(&version)) {
            known.serve(serving);
            return;
        }
        let history = VersionHistory::first(suite, delivery, serving);
        // It may have served since before this ledger knew of it: those who founded the group promise its slots.
        self.add_version((key, version), history, (0, self.founders()));
    }

    /// A new version takes the place of the one before, which serves no new signatures from then on.
    fn add_version(&mut self, (key, version): (KeyName, Version), history: VersionHistory, born: (u64, usize)) {
        let line = self.keys.entry(key).or_insert_with(|| KeyHistory::new(born));
        for older in line.versions.values_mut().filter(|older| older.state == KeyState::Active) {
            older.state = KeyState::Retired;
        }
        line.versions.insert(version, history);
    }

    fn end(&mut self, number: u64, outcome: &Outcome, height: u64) -> Result<(), Refusal> {
        let serving = self.ended(number, outcome)?.map(|epochs| Epochs { since: height, ..epochs });
        let begun = self.running.remove(&number).ok_or(Refusal::NoCeremony(number))?;
        let ended = match outcome {
            Outcome::Activated { .. } => Ended::Activated,
            Outcome::Recovered => Ended::Recovered,
            Outcome::Aborted => Ended::Aborted,
            Outcome::Cancelled => Ended::Cancelled,
        };
        self.note_end(&begun.request.digest(), ended);
        let (Some(serving), Begun { request, version, suite, delivery, source, .. }) = (serving, begun) else {
            return Ok(());
        };
        let key = request.change.key().clone();
        if source.is_none() {
            let history = VersionHistory::first(suite, delivery, serving);
            self.add_version((key, version), history, (height, self.members().len()));
        } else if let Some(history) = self.keys.get_mut(&key).and_then(|line| line.versions.get_mut(&version)) {
            history.serve(serving);
        }
        Ok(())
    }

    fn note_end(&mut self, request: &Digest, ended: Ended) {
        if let Some(history) = self.requests.get_mut(request) {
            history.ended = Some(ended);
        }
    }
}

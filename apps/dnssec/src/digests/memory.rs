//! What a recogniser remembers.

use std::collections::{HashMap, VecDeque};

use sha2::{Digest as _, Sha256};

use super::{
    Current, Guesses,
    budget::{Budget, Budgets},
    candidates::{Candidates, Digest, Which},
    moments::{Moment, Style},
    search::{Found, Outline},
    work::Work,
};
use crate::keys::Signer;

/// What is said of a digest that is none of the zone's.
pub(super) fn none(current: Current<'_>) -> String {
    let times = if current.offline.is_some() { "now, or of the key signing request" } else { "now" };
    format!("no record set of the zone has this digest with times of {times}")
}

/// So many times of an offline key are tried first.
const MOST_OFFLINE: usize = 8;

/// How many events are remembered.
const MOST_EVENTS: usize = 4;
/// How many ways of signing are tried first.
const MOST_FAMILIAR: usize = 8;
/// The most digests of events that are kept, of some 36 bytes each.
const MOST_PLACES: usize = 4_000_000;
/// The digests of all sets in one event under one key, by their first bytes, each with the place of its set.
#[derive(Debug)]
pub(super) struct Table {
    moment: Moment,
    signer: Signer,
    places: HashMap<u64, usize>,
}

fn beginning(digest: &Digest) -> u64 {
    digest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

impl Table {
    pub(super) fn new(candidates: &Candidates, signer: Signer, moment: Moment, work: &mut Work) -> Self {
        let digests = candidates.digests(signer, moment, work);
        Self { moment, signer, places: digests.map(|(place, digest)| (beginning(&digest), place)).collect() }
    }

    /// Bytes of which only the beginning of the digest is known are hashed again.
    fn find(&self, digest: &Digest, candidates: &Candidates) -> Option<Recognised> {
        let which = Which::Set(*self.places.get(&beginning(digest))?);
        let (signer, moment) = (self.signer, self.moment);
        let bytes = candidates.bytes(which, signer, moment)?;
        let found = Found { which, signer, moment };
        (Digest::from(Sha256::digest(&bytes)) == *digest).then_some(Recognised { found: Some(found), bytes })
    }
}

/// What a digest is of.
#[derive(Debug)]
pub(super) struct Recognised {
    /// Which set of the zone, and when; `None`: an offline key signs it.
    pub(super) found: Option<Found>,
    /// What is signed.
    pub(super) bytes: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Which candidates the tables and what was looked for in vain are of.
    number: u64,
    /// The newest first, as all that follows.
    events: VecDeque<Moment>,
    tables: VecDeque<Table>,
    styles: VecDeque<Style>,
    signers: VecDeque<Signer>,
    serial: Option<u32>,
    offline: VecDeque<Moment>,
    budgets: Budgets,
    hashed: u64,
}

/// Puts something first; of what is old the oldest is forgotten.
fn remember<T: PartialEq>(all: &mut VecDeque<T>, one: T, most: usize) {
    all.retain(|other| *other != one);
    all.push_front(one);
    all.truncate(most);
}

impl Memory {
    /// The answer, if nothing has to be searched for it.
    pub(super) fn look_up(
        &mut self,
        client: &str,
        digest: &Digest,
        current: Current<'_>,
        now: u64,
    ) -> Option<Result<Recognised, String>> {
        if self.number != current.number {
            self.number = current.number;
            // The events are the same; their sets may be others.
            self.tables.clear();
            self.budgets.forgive();
        }
        if self.budgets.of(client, now).is_miss(digest, now) {
            return Some(Err(none(current)));
        }
        self.tables.iter().find_map(|table| table.find(digest, current.candidates)).map(Ok)
    }

    pub(super) fn outline(&self, current: Current<'_>) -> Outline {
        let signers = current.candidates.signers();
        Outline {
            events: self.events.iter().copied().collect(),
            tabled: self.tables.iter().map(|table| (table.moment, table.signer)).collect(),
            styles: self.styles.iter().copied().collect(),
            signers: self.signers.iter().filter(|signer| signers.contains(signer)).copied().collect(),
            serial: self.serial,
            offline: self.offline.iter().copied().collect(),
        }
    }

    /// What a client has used.
    pub(super) fn budget(&mut self, client: &str, now: u64) -> &mut Budget {
        self.budgets.of(client, now)
    }

    /// Counts what a client's search, and the tables of what it found, have cost.
    pub(super) fn count(&mut self, client: &str, now: u64, search: &Work, tables: &Work) {
        self.hashed = self.hashed.saturating_add(search.done());
        let budget = self.budgets.of(client, now);
        budget.spend(search);
        budget.spend(tables);
    }

    pub(super) const fn hashed(&self) -> u64 {
        self.hashed
    }

    pub(super) fn learn(&mut self, found: Found, tables: Vec<Table>, current: Current<'_>) {
        remember(&mut self.events, found.moment, MOST_EVENTS);
        remember(&mut self.styles, found.moment.style, MOST_FAMILIAR);
        remember(&mut self.signers, found.signer, MOST_FAMILIAR);
        if let Which::Start(serial) = found.which {
            self.serial = Some(serial);
        }
        if self.number == current.number {
            tables.into_iter().for_each(|table| self.tables.push_front(table));
        }
        let mut places = 0_usize;
        self.tables.retain(|table| {
            places = places.saturating_add(table.places.len());
            places <= MOST_PLACES && self.events.contains(&table.moment)
        });
    }

    /// Remembers when an offline key signs: it signs other sets then, too.
    pub(super) fn learn_offline(&mut self, moment: Moment) {
        remember(&mut self.offline, moment, MOST_OFFLINE);
    }

    /// Remembers that a digest is none in the copy in which it was looked for, if that is still in force; what is said of it.
    pub(super) fn miss(
        &mut self,
        (client, digest): (&str, Digest),
        work: &Work,
        guesses: &Guesses,
        (current, now): (Current<'_>, u64),
    ) -> String {
        let budget = self.budgets.of(client, now);
        if self.number == current.number {
            budget.miss(digest, now);
        }
        budget.spend_in_vain(work);
        let none = none(current);
        if work.was_short() {
            format!("{none}, as far as {} million hashes go (--most-hashes)", guesses.most_blocks / 1_000_000)
        } else {
            none
        }
    }
}

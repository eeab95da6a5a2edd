//! The result of a run.

use core::convert::Infallible;
use std::collections::{BTreeMap, BTreeSet};

use crate::{Abort, Blame, Evidence, Input, PartyId};

/// The result of a run.
pub struct Report<O, M: Evidence> {
    /// The seed of the run.
    pub seed: u64,
    /// A digest of every event in order: equal runs have equal digests.
    pub trace: u64,
    /// The result at each party.
    pub parties: BTreeMap<PartyId, PartyReport<O, M>>,
}

/// The result of a run at one party.
pub struct PartyReport<O, M: Evidence> {
    /// Whether the adversary did not control it.
    pub honest: bool,
    /// Whether it was restarted. Earlier messages are not sent to it again, so it may wait for ever.
    pub restarted: bool,
    /// Its outcome; `None` if it still waits.
    pub result: Option<Result<O, Abort>>,
    /// Whom it blamed.
    pub blames: Vec<Blame<M>>,
}

impl<O, M: Evidence> Report<O, M> {
    /// The honest parties.
    pub fn honest(&self) -> impl Iterator<Item = (PartyId, &PartyReport<O, M>)> {
        self.parties.iter().filter(|(_, party)| party.honest).map(|(id, party)| (*id, party))
    }

    /// All blames of `party` by honest parties, each with the party that raised it.
    pub fn blames_of(&self, party: PartyId) -> impl Iterator<Item = (PartyId, &Blame<M>)> {
        let all = self.honest().flat_map(|(by, report)| report.blames.iter().map(move |blame| (by, blame)));
        all.filter(move |(_, blame)| blame.party == party)
    }

    /// Checks that no honest party blames an honest one.
    ///
    /// # Errors
    /// The false accusation, in words.
    pub fn check_blame(&self) -> Result<(), String> {
        let honest: BTreeSet<_> = self.honest().map(|(id, _)| id).collect();
        for (by, report) in self.honest() {
            if let Some(blame) = report.blames.iter().find(|blame| honest.contains(&blame.party)) {
                return Err(format!("honest party {by} blames an honest one: {blame}"));
            }
        }
        Ok(())
    }

    /// Checks that every honest party that was not restarted has a result, and that `view` of it is the same at all.
    /// Returns that value.
    ///
    /// # Errors
    /// The party that has no result and why, or whose result differs.
    pub fn agreed<T: PartialEq>(&self, view: impl Fn(&O) -> T) -> Result<T, String> {
        let mut agreed: Option<(PartyId, T)> = None;
        for (id, report) in self.honest() {
            let value = match &report.result {
                None if report.restarted => continue,
                None => return Err(format!("honest party {id} still waits")),
                Some(Err(abort)) => return Err(format!("honest party {id} gave up: {abort}")),
                Some(Ok(output)) => view(output),
            };
            match &agreed {
                None => agreed = Some((id, value)),
                Some((_, first)) if *first == value => {}
                Some((first, _)) => return Err(format!("honest parties {first} and {id} have different results")),
            }
        }
        agreed.map(|(_, value)| value).ok_or_else(|| "nobody is honest".to_owned())
    }
}

/// FNV-1a, 64 bit, over every event: its digests are stable across releases, unlike those of the standard library's
/// hasher.
pub(super) struct Trace(u64);

impl Default for Trace {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Trace {
    fn absorb(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(super) fn input(&mut self, at: PartyId, input: &Input<Infallible>) {
        self.absorb(&at.get().to_le_bytes());
        match input {
            Input::Start => self.absorb(b"start"),
            Input::Tick => self.absorb(b"tick"),
            Input::Supply(nothing) => match *nothing {},
            Input::Message { from, slot, payload, .. } => {
                self.absorb(&from.get().to_le_bytes());
                self.absorb(&slot.number.to_le_bytes());
                self.absorb(&slot.kind.to_le_bytes());
                self.absorb(payload);
            }
        }
    }

    pub(super) fn blame<M: Evidence>(&mut self, at: PartyId, blame: &Blame<M>) {
        self.absorb(format!("{at} {blame}").as_bytes());
    }

    pub(super) fn finished(&mut self, at: PartyId, well: bool) {
        self.absorb(format!("{at} {well}").as_bytes());
    }

    pub(super) const fn finish(self) -> u64 {
        self.0
    }
}

//! What a host has asked for of which nothing was known: whether it is a part of something larger.

use std::{
    collections::{HashSet, VecDeque},
    time::{Duration, Instant},
};

use theta_look_ahead::Digest;

/// After so many it is asked what they are parts of. A change of one name is four or five.
pub(super) const FEW: usize = 8;
/// So many of them have to belong together. Others may be single changes at about the same time.
const TOGETHER: usize = FEW / 2;
/// The most that are remembered, and for how long. Events of many seconds have none so far from each other.
const MOST: usize = 64;
pub(super) const LONG_AGO: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Recent {
    digests: VecDeque<(Digest, Instant)>,
    /// How many there were since it was asked last.
    since: usize,
}

impl Recent {
    pub(super) fn add(&mut self, digest: Digest, now: Instant) {
        self.digests.push_back((digest, now));
        let too_many = self.digests.len().saturating_sub(MOST);
        self.digests.drain(..too_many);
        self.digests.retain(|(_, at)| now.saturating_duration_since(*at) < LONG_AGO);
        self.since = self.since.saturating_add(1);
    }

    /// The digest that is asked about, if it is time to.
    pub(super) fn question(&self) -> Option<Digest> {
        let first = self.digests.front().filter(|_| self.since >= FEW)?;
        Some(first.0)
    }

    /// It is asked.
    pub(super) const fn asked(&mut self) {
        self.since = 0;
    }

    /// Takes all of them, of which nothing is asked any more; whether they are parts of what follows from the one that was asked about.
    pub(super) fn take_if_part(&mut self, asked: &Digest, digests: &[Digest]) -> Option<Vec<Digest>> {
        let part: HashSet<&Digest> = digests.iter().chain([asked]).collect();
        let all: Vec<Digest> = self.digests.drain(..).map(|(digest, _)| digest).collect();
        let found = all.iter().filter(|digest| part.contains(digest)).count();
        (found >= TOGETHER).then_some(all)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

//! An event in which a host signs one digest after the other with one key: what of it is asked about, and signed before the host asks. The threads of
//! `crew` do what is due here; nothing in this file waits or asks anybody.

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use bytes::Bytes;
use theta_look_ahead::{Digest, Question};

use super::{
    pace::Pace,
    recent::Recent,
    shelf::{Shelf, Taken},
};

/// How many digests before the first one are asked for: threads of a host begin at names beside each other, in any order.
const BEFORE: u16 = 128;
/// How many digests are asked for at a time, and with how few left for more.
const PAGE: u16 = 1_024;
const LOW: usize = 512;
/// How many signatures are made ahead of the host at first; two more for each that it has asked for; and at most.
const FIRST: usize = 64;
const MOST_AHEAD: usize = 4_096;
/// How many calls and questions may be under way.
const MOST_WORKERS: usize = 4;
/// What is not asked for so long is forgotten.
const IDLE: Duration = Duration::from_secs(600);
/// For how long nothing is tried after a failure; twice as long after each further one; and at most.
const PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// What a thread is to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Ask what else will be signed.
    Ask(Question),
    /// Have these signed.
    Sign(Vec<Digest>),
    /// End: there is nothing to do for now.
    Rest,
}

/// How much was signed when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Ahead, and given to the host.
    pub(super) ahead: usize,
    /// When the host asked.
    pub(super) asked: usize,
    /// Ahead, and for nothing so far.
    pub(super) left: usize,
}

#[derive(Debug, Default)]
pub(super) struct Event {
    shelf: Shelf,
    recent: Recent,
    /// What is listed, in its order; some of it may have been asked for meanwhile.
    queue: VecDeque<Digest>,
    /// What follows this one is not listed yet. `None`: everything is listed, or there is no event.
    last: Option<Digest>,
    pace: Pace,
    counts: Counts,
    is_reported: bool,
    is_asking: bool,
    /// Threads.
    pub(super) workers: usize,
    /// When the host asked last.
    used: Option<Instant>,
    /// Nothing is tried before that, and how long it was.
    pause: Option<(Instant, Duration)>,
}

impl Event {
    /// The host asks for a signature.
    pub(super) fn take(&mut self, digest: &Digest, now: Instant) -> Taken {
        if self.is_idle(now) {
            self.forget();
        }
        self.used = Some(now);
        let taken = self.shelf.take(digest);
        let counted = match &taken {
            Taken::UnderWay => return taken,
            Taken::Made(_) => &mut self.counts.ahead,
            Taken::Known => &mut self.counts.asked,
            Taken::Unknown => {
                self.recent.add(*digest, now);
                &mut self.counts.asked
            }
        };
        *counted = counted.saturating_add(1);
        taken
    }

    /// Whether one more thread has something to do.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.workers < MOST_WORKERS && (self.question(now).is_some() || self.call() > 0)
    }

    /// What the thread that asks is to do. One that rests is no worker any more.
    pub(super) fn next(&mut self, now: Instant) -> Step {
        loop {
            if let Some(question) = self.question(now) {
                self.is_asking = true;
                self.recent.asked();
                return Step::Ask(question);
            }
            let (mut call, most, is_first) = (Vec::new(), self.call(), self.shelf.under_way() == 0);
            while call.len() < most
                && let Some(digest) = self.queue.pop_front()
            {
                call.extend(self.shelf.start(&digest).then_some(digest));
            }
            if !call.is_empty() {
                self.pace.begin(is_first, now);
                return Step::Sign(call);
            }
            // All that was listed has been asked for meanwhile; then there may be more to be listed.
            if most == 0 || self.question(now).is_none() {
                self.workers = self.workers.saturating_sub(1);
                return Step::Rest;
            }
        }
    }

    fn question(&self, now: Instant) -> Option<Question> {
        if self.is_asking || self.pause.is_some_and(|(until, _)| now < until) {
            return None;
        }
        if let Some(digest) = self.recent.question() {
            return Some(Question { digest, before: BEFORE, most: PAGE });
        }
        let digest = self.last.filter(|_| self.queue.len() < LOW)?;
        Some(Question { digest, before: 0, most: PAGE })
    }

    /// How many requests the next call has. One of few is made at the end alone.
    fn call(&self) -> usize {
        let (waiting, under_way) = (self.shelf.waiting(), self.shelf.under_way());
        let goal = self.counts.ahead.saturating_mul(2).saturating_add(FIRST).min(MOST_AHEAD);
        let room =
            goal.saturating_sub(waiting.saturating_add(under_way)).min(self.pace.size().saturating_sub(under_way));
        let call = self.pace.call().min(self.queue.len());
        if call <= room { call } else { 0 }
    }

    /// What was answered to a question.
    pub(super) fn listed(&mut self, question: &Question, digests: &[Digest]) {
        self.is_asking = false;
        if question.before == 0 {
            // Unless another event has begun.
            if self.last == Some(question.digest) {
                self.append(question, digests);
            }
            return;
        }
        let Some(parts) = self.recent.take_if_part(&question.digest, digests) else { return };
        if !digests.iter().any(|digest| self.shelf.knows(digest)) {
            // Another event: nothing of the last one is asked for any more.
            self.forget_event();
            self.counts.asked = parts.len();
        }
        parts.into_iter().for_each(|digest| self.shelf.give(digest));
        self.pause = None;
        self.is_reported = false;
        self.queue.clear();
        self.append(question, digests);
    }

    fn append(&mut self, question: &Question, digests: &[Digest]) {
        self.shelf.shrink();
        let before = self.queue.len();
        self.queue.extend(digests.iter().filter(|digest| self.shelf.list(**digest)));
        // A service that says the same again and again is asked no more.
        let is_last = self.queue.len() == before || digests.len() < usize::from(question.most);
        self.last = digests.last().copied().filter(|_| !is_last);
    }

    /// What came of a call: signatures, or none.
    pub(super) fn made(&mut self, signatures: Vec<(Digest, Option<Bytes>)>, now: Instant) {
        self.pace.made(signatures.len(), now);
        signatures.into_iter().for_each(|(digest, signature)| self.shelf.made(&digest, signature));
    }

    /// Something failed: nothing is looked ahead for a while. What is made or under way stays.
    pub(super) fn pause(&mut self, now: Instant) {
        let last = self.pause.map(|(_, long)| long.saturating_mul(2).min(LONGEST_PAUSE));
        let long = last.unwrap_or(PAUSE);
        self.pause = Some((now + long, long));
        (self.is_asking, self.last) = (false, None);
        self.recent.clear();
        self.queue.clear();
        self.shelf.unlist();
    }

    /// What there is to say of an event once all of it is signed, and given to the host; or the host asks for what was not listed, as at the end
    /// for the start of authority.
    pub(super) fn report(&mut self, is_unknown: bool) -> Option<Counts> {
        let is_signed = self.last.is_none() && self.queue.is_empty() && self.shelf.under_way() == 0;
        let left = self.shelf.waiting();
        if self.is_reported || !is_signed || self.counts.ahead == 0 || !(is_unknown || left == 0) {
            return None;
        }
        self.is_reported = true;
        Some(Counts { left, ..self.counts })
    }

    /// Whether the host has asked for nothing for long.
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        self.used.is_some_and(|used| now.saturating_duration_since(used) >= IDLE)
    }

    /// Forgets everything that was signed or will be. Who waits for a signature gets none.
    pub(super) fn forget(&mut self) {
        self.recent.clear();
        self.forget_event();
    }

    fn forget_event(&mut self) {
        self.shelf.clear();
        self.queue.clear();
        self.last = None;
        (self.counts, self.is_reported) = (Counts::default(), false);
    }
}

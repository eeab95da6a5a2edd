//! Virtual time: when messages arrive, and when parties are free for them.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BinaryHeap},
    time::Duration,
};

use theta::exit::Failure;
use theta_rounds::PartyId;
use theta_wan::{Fate, Line, Link, Profile};

use crate::ecdsa::job::Message;

/// What happens at a party.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It is asked to begin.
    Start(PartyId),
    /// A message has come.
    Arrival(Message),
}

impl Event {
    /// At whom.
    pub(super) const fn party(&self) -> PartyId {
        match self {
            Self::Start(party) => *party,
            Self::Arrival(message) => message.to,
        }
    }
}

/// What will happen: by time, and in the order in which it was caused. Nanoseconds.
#[derive(Debug, PartialEq, Eq)]
struct Due {
    at: u64,
    number: u64,
    event: Event,
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A group in virtual time, from its beginning on.
pub(super) struct Timeline<'a> {
    profile: &'a Profile,
    links: BTreeMap<(PartyId, PartyId), Link>,
    /// Until when each party is busy.
    free: BTreeMap<PartyId, u64>,
    due: BinaryHeap<Reverse<Due>>,
    number: u64,
}

impl<'a> Timeline<'a> {
    /// Parties, each a node of the profile, that are all asked to begin at the beginning of time.
    pub(super) fn new(profile: &'a Profile, parties: impl IntoIterator<Item = PartyId>) -> Self {
        let (links, free, due) = (BTreeMap::new(), BTreeMap::new(), BinaryHeap::new());
        let mut timeline = Self { profile, links, free, due, number: 0 };
        parties.into_iter().for_each(|party| timeline.happens(0, Event::Start(party)));
        timeline
    }

    fn happens(&mut self, at: u64, event: Event) {
        self.number += 1;
        self.due.push(Reverse(Due { at, number: self.number, event }));
    }

    /// The next event and when its party turns to it: when it comes, or when the party is free.
    pub(super) fn next(&mut self) -> Option<(Duration, Event)> {
        let Reverse(Due { at, event, .. }) = self.due.pop()?;
        let free = self.free.entry(event.party()).or_default();
        *free = at.max(*free);
        Some((Duration::from_nanos(*free), event))
    }

    /// The party is busy for so long with the event that it turned to.
    pub(super) fn busy(&mut self, party: PartyId, time: Duration) {
        let free = self.free.entry(party).or_default();
        *free = free.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// A message leaves when its sender has done what it is busy with.
    pub(super) fn send(&mut self, message: Message) -> Result<(), Failure> {
        let (from, to) = (message.from, message.to);
        let line = self.profile.between(from.get(), to.get());
        let line = line.ok_or_else(|| Failure::internal("a party that is in no region"))?;
        // What is lost would have to be sent again, and jitter makes two runs differ: neither is part of the model.
        let line = Line { jitter: Duration::ZERO, loss: 0.0, queue: Duration::MAX, ..line };
        let link = self.links.entry((from, to)).or_insert_with(|| Link::new(line, 0, from.get(), to.get()));
        let now = self.free.get(&from).copied().unwrap_or_default();
        let Fate::Arrives(at) = link.send(now, message.payload.len()) else {
            return Err(Failure::internal("a message that a line without loss has lost"));
        };
        self.happens(at, Event::Arrival(message));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use theta_rounds::Slot;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn party(number: u16) -> PartyId {
        PartyId::of_node(number.try_into().unwrap())
    }

    fn message(from: u16, to: u16, bytes: usize) -> Message {
        let slot = Slot { kind: 1, number: 1 };
        Message { from: party(from), to: party(to), slot, payload: vec![0; bytes].into() }
    }

    /// 40 ms there, 8 Mbit/s: a kilobyte takes a millisecond.
    fn far() -> Profile {
        let line = Line { delay: 40 * MS, jitter: 5 * MS, loss: 0.9, rate: Some(8_000_000), ..Line::IDEAL };
        Profile::uniform("far", line)
    }

    #[test]
    fn a_message_takes_latency_and_bytes_by_rate_and_waits_until_its_receiver_is_free() {
        let profile = far();
        let mut time = Timeline::new(&profile, [party(1), party(2)]);
        assert_eq!(time.next(), Some((Duration::ZERO, Event::Start(party(1)))));
        time.busy(party(1), 3 * MS);
        time.send(message(1, 2, 10_000)).unwrap();
        assert_eq!(time.next(), Some((Duration::ZERO, Event::Start(party(2)))));
        time.busy(party(2), 2 * MS);
        // 3 ms of work, 10 ms for ten kilobytes, 40 ms on the way.
        assert_eq!(time.next(), Some((53 * MS, Event::Arrival(message(1, 2, 10_000)))));
        time.busy(party(2), MS);
        time.send(message(2, 1, 1_000)).unwrap();
        assert_eq!(time.next(), Some((95 * MS, Event::Arrival(message(2, 1, 1_000)))));
        assert_eq!(time.next(), None);
    }

    #[test]
    fn one_link_sends_one_message_after_another_and_a_busy_party_lets_them_wait() {
        let profile = far();
        let mut time = Timeline::new(&profile, [party(1), party(2), party(3)]);
        time.send(message(1, 2, 1_000)).unwrap();
        time.send(message(1, 2, 1_000)).unwrap();
        time.send(message(1, 3, 1_000)).unwrap();
        for number in 1..=3 {
            assert_eq!(time.next(), Some((Duration::ZERO, Event::Start(party(number)))));
        }
        time.busy(party(2), 60 * MS);
        assert_eq!(time.next(), Some((60 * MS, Event::Arrival(message(1, 2, 1_000)))));
        time.busy(party(2), 5 * MS);
        assert_eq!(time.next(), Some((41 * MS, Event::Arrival(message(1, 3, 1_000)))), "another link, another party");
        assert_eq!(time.next(), Some((65 * MS, Event::Arrival(message(1, 2, 1_000)))));
    }

    #[test]
    fn parties_are_in_the_regions_of_the_profile_in_turn() {
        let profile = Profile::find("continents").unwrap();
        let mut time = Timeline::new(&profile, []);
        time.send(message(1, 2, 0)).unwrap();
        assert_eq!(time.next().map(|(at, _)| at), Some(Duration::from_micros(45_500)), "Washington to Frankfurt");
        time.send(message(1, 6, 0)).unwrap();
        assert_eq!(time.next().map(|(at, _)| at), Some(Duration::from_micros(50)), "the sixth is in Washington again");
    }
}

//! Signed requests that have been counted. Whoever has seen one can bring a copy of it until its validity ends: a copy has the same effect as the first,
//! so it must not cost its signer anything more.

use std::collections::{HashMap, VecDeque};

use theta_statements::{Digest, Name, UnixTime};

/// The most requests that are remembered of one client, which has signed them all: more of them are forgotten, the first ones first.
const MOST_COPIES: usize = 16_384;
/// The most clients of which any are remembered. A policy file names fewer, but files change.
const MOST_CLIENTS: usize = 16_384;

/// The requests of all clients.
#[derive(Debug, Default)]
pub(crate) struct Copies(HashMap<Name, Counted>);

/// A request that has been counted.
#[derive(Debug)]
struct Copied {
    until: UnixTime,
    is_admitted: bool,
}

/// The requests of one client.
#[derive(Debug, Default)]
struct Counted {
    by_id: HashMap<Digest, Copied>,
    /// In the order in which they came.
    order: VecDeque<Digest>,
}

impl Counted {
    fn forget_invalid(&mut self, now: UnixTime) {
        let by_id = &mut self.by_id;
        by_id.retain(|_, copied| copied.until >= now);
        self.order.retain(|id| by_id.contains_key(id));
    }
}

impl Copies {
    /// Whether this request of the client has been counted.
    pub(crate) fn contains(&self, client: &Name, id: &Digest) -> bool {
        self.0.get(client).is_some_and(|counted| counted.by_id.contains_key(id))
    }

    /// Whether it has been admitted as well.
    pub(crate) fn is_admitted(&self, client: &Name, id: &Digest) -> bool {
        self.0.get(client).and_then(|counted| counted.by_id.get(id)).is_some_and(|copied| copied.is_admitted)
    }

    /// Notes that a counted request was admitted.
    pub(crate) fn admit(&mut self, client: &Name, id: &Digest) {
        if let Some(copied) = self.0.get_mut(client).and_then(|counted| counted.by_id.get_mut(id)) {
            copied.is_admitted = true;
        }
    }

    /// Remembers a request until it is valid no more.
    pub(crate) fn add(&mut self, client: &Name, id: Digest, until: UnixTime, now: UnixTime) {
        if !self.0.contains_key(client) && self.0.len() >= MOST_CLIENTS {
            self.0.values_mut().for_each(|counted| counted.forget_invalid(now));
            self.0.retain(|_, counted| !counted.order.is_empty());
            if self.0.len() >= MOST_CLIENTS {
                return;
            }
        }
        let counted = self.0.entry(client.clone()).or_default();
        if counted.by_id.contains_key(&id) {
            return;
        }
        if counted.order.len() >= MOST_COPIES {
            counted.forget_invalid(now);
        }
        if counted.order.len() >= MOST_COPIES
            && let Some(first) = counted.order.pop_front()
        {
            counted.by_id.remove(&first);
        }
        counted.by_id.insert(id, Copied { until, is_admitted: false });
        counted.order.push_back(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> Digest {
        Digest::of(&number.to_be_bytes())
    }

    #[test]
    fn requests_are_remembered_while_they_are_valid_and_there_is_room() {
        let (mut copies, ann, bob): (_, Name, Name) =
            (Copies::default(), "ann".parse().unwrap(), "bob".parse().unwrap());
        copies.add(&ann, id(0), UnixTime(10), UnixTime(5));
        copies.add(&ann, id(1), UnixTime(100), UnixTime(5));
        assert!(copies.contains(&ann, &id(0)) && copies.contains(&ann, &id(1)) && !copies.contains(&bob, &id(0)));
        (2..MOST_COPIES).for_each(|number| copies.add(&ann, id(number), UnixTime(100), UnixTime(5)));
        assert!(copies.contains(&ann, &id(0)));
        // The invalid one goes first, then the one that came first.
        copies.add(&ann, id(MOST_COPIES), UnixTime(100), UnixTime(50));
        assert!(!copies.contains(&ann, &id(0)) && copies.contains(&ann, &id(1)));
        copies.add(&ann, id(MOST_COPIES + 1), UnixTime(100), UnixTime(50));
        assert!(!copies.contains(&ann, &id(1)) && copies.contains(&ann, &id(2)));
        assert_eq!((copies.0[&ann].by_id.len(), copies.0[&ann].order.len()), (MOST_COPIES, MOST_COPIES));
        assert!(!copies.is_admitted(&ann, &id(2)));
        copies.admit(&ann, &id(2));
        copies.admit(&bob, &id(2));
        assert!(
            copies.is_admitted(&ann, &id(2)) && !copies.is_admitted(&bob, &id(2)) && !copies.is_admitted(&ann, &id(3))
        );
    }
}

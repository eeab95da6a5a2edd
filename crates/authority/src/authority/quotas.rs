//! What each client uses of this node: running instances, streams, requests a second.
//!
//! The policy sets each client's limits. Beyond these, clients that have many instances do not get the last places:
//! when seven eighths of all instances run, only a client with less than an even share gets another one. So a client
//! that fills a node is the first to be refused, and the others still find room for a few requests.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use theta_policy::{Limits, Rate, RateAnswer, RateLimiter};
use theta_statements::{Name, UnixTime};

/// What a client uses.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    instances: usize,
    statement_bytes: usize,
    streams: usize,
    computations: usize,
}

impl Held {
    const fn plus(self, other: Self) -> Self {
        Self {
            instances: self.instances.saturating_add(other.instances),
            statement_bytes: self.statement_bytes.saturating_add(other.statement_bytes),
            streams: self.streams.saturating_add(other.streams),
            computations: self.computations.saturating_add(other.computations),
        }
    }

    const fn minus(self, other: Self) -> Self {
        Self {
            instances: self.instances.saturating_sub(other.instances),
            statement_bytes: self.statement_bytes.saturating_sub(other.statement_bytes),
            streams: self.streams.saturating_sub(other.streams),
            computations: self.computations.saturating_sub(other.computations),
        }
    }
}

/// Why a client gets no more for now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuotaError {
    /// Too many running instances.
    #[error(
        "client {client} has {most} running instances at this node, as many as the policy gives it: wait for some of them"
    )]
    Instances {
        /// The client.
        client: Name,
        /// The most that it may have.
        most: usize,
    },
    /// The requests of its running instances are too long together.
    #[error(
        "client {client} may have {most} bytes of requests in running instances at this node: wait for some of them"
    )]
    Bytes {
        /// The client.
        client: Name,
        /// The most bytes that it may have.
        most: usize,
    },
    /// Too many streams.
    #[error("client {client} has {most} streams at this node, as many as the policy gives it: end some of them")]
    Streams {
        /// The client.
        client: Name,
        /// The most that it may have.
        most: usize,
    },
    /// The node is nearly full of computations, and clients with fewer come first.
    #[error(
        "this node computes as much as it may, and client {client} has {held} of its computations, an even share or more: wait \
         for some of them or ask another node"
    )]
    Computations {
        /// The client.
        client: Name,
        /// How many of its computations run or wait.
        held: usize,
    },
    /// It sends requests too often.
    #[error("client {client} may send {rate}: again in {wait} ms")]
    TooOften {
        /// The client.
        client: Name,
        /// The rate that it may use.
        rate: Rate,
        /// The time until the next request, in milliseconds.
        wait: u64,
    },
    /// The node is nearly full, and clients with fewer instances come first.
    #[error(
        "this node is nearly full, and client {client} has {held} of its running instances, an even share or more: wait for \
         some of them or ask another node"
    )]
    Full {
        /// The client.
        client: Name,
        /// How many of its instances run.
        held: usize,
    },
}

impl QuotaError {
    /// Stable names for metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Instances { .. } => "client_instances",
            Self::Bytes { .. } => "client_statement_bytes",
            Self::Streams { .. } => "client_streams",
            Self::Computations { .. } => "client_computations",
            Self::TooOften { .. } => "client_rate",
            Self::Full { .. } => "uneven_share",
        }
    }
}

/// What all clients use. Only clients of the policy are counted, so there are no more than it names.
#[derive(Debug, Default)]
pub(crate) struct Quotas(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    held: HashMap<Name, Held>,
    rates: RateLimiter,
}

impl Table {
    /// Counts one request of a client that makes this node compute. Each client has one bucket, under its own name.
    fn submit(&mut self, client: &Name, limits: &Limits, now: UnixTime) -> Result<(), QuotaError> {
        let rate = limits.submissions;
        within(self.rates.take(client, client, rate, now), client, rate)
    }

    /// Whether a client may have one more of what the node has `capacity` places for: it may until seven eighths are taken, and with less than an even
    /// share after that. One that is alone may have all that its limits allow.
    fn leaves_room(&self, client: &Name, of: impl Fn(&Held) -> usize, (taken, capacity): (usize, usize)) -> bool {
        if taken < capacity.saturating_sub(capacity.div_ceil(8)) {
            return true;
        }
        let others = self.held.iter().filter(|(name, held)| *name != client && of(held) > 0).count();
        // One share is for whoever comes next.
        let even = capacity.checked_div(others.saturating_add(2)).unwrap_or(capacity);
        let own = self.held.get(client).map_or(0, of);
        others == 0 || own < even.max(1)
    }
}

fn within(answer: RateAnswer, client: &Name, rate: Rate) -> Result<(), QuotaError> {
    let wait = match answer {
        RateAnswer::Taken => return Ok(()),
        RateAnswer::Wait(wait) => wait,
        RateAnswer::NoRoom => 1_000,
    };
    Err(QuotaError::TooOften { client: client.clone(), rate, wait })
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({} clients)", self.held.len())
    }
}

/// A place of a client, which is given back when this is dropped.
#[derive(Debug)]
pub struct Place {
    table: Arc<Mutex<Table>>,
    client: Name,
    part: Held,
}

impl Quotas {
    /// The table. No code panics while it holds the lock.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for one more instance of a client, with a statement of so many bytes; `running` of at most
    /// `capacity` instances run at this node.
    ///
    /// # Errors
    /// [`QuotaError`]: it has too many, or the node is nearly full and others come first.
    pub(crate) fn instance(
        &self,
        client: &Name,
        limits: &Limits,
        bytes: usize,
        (running, capacity): (usize, usize),
    ) -> Result<Place, QuotaError> {
        let mut table = self.table();
        let Held { instances: held, statement_bytes, .. } = table.held.get(client).copied().unwrap_or_default();
        if held >= limits.instances {
            return Err(QuotaError::Instances { client: client.clone(), most: limits.instances });
        }
        if statement_bytes.saturating_add(bytes) > limits.statement_bytes {
            return Err(QuotaError::Bytes { client: client.clone(), most: limits.statement_bytes });
        }
        if !table.leaves_room(client, |held| held.instances, (running, capacity)) {
            return Err(QuotaError::Full { client: client.clone(), held });
        }
        Ok(self.place(&mut table, client, Held { instances: 1, statement_bytes: bytes, ..Held::default() }))
    }

    /// Takes a place for one more computation of a client that is no instance; `running` of at most `capacity` run at this node or wait.
    ///
    /// # Errors
    /// [`QuotaError::Computations`]: it has so many that others would find no place.
    pub(crate) fn computation(&self, client: &Name, load: (usize, usize)) -> Result<Place, QuotaError> {
        let mut table = self.table();
        let held = table.held.get(client).copied().unwrap_or_default().computations;
        if !table.leaves_room(client, |held| held.computations, load) {
            return Err(QuotaError::Computations { client: client.clone(), held });
        }
        Ok(self.place(&mut table, client, Held { computations: 1, ..Held::default() }))
    }

    /// Counts a request that has this node compute for a client.
    ///
    /// # Errors
    /// [`QuotaError::TooOften`].
    pub(crate) fn submission(&self, client: &Name, limits: &Limits, now: UnixTime) -> Result<(), QuotaError> {
        self.table().submit(client, limits, now)
    }

    /// Whether one more such request would be within the client's rate. Counts nothing.
    ///
    /// # Errors
    /// [`QuotaError::TooOften`].
    pub(crate) fn look_at_submissions(&self, client: &Name, limits: &Limits, now: UnixTime) -> Result<(), QuotaError> {
        let rate = limits.submissions;
        within(self.table().rates.look(client, client, rate, now), client, rate)
    }

    /// Takes a place for one more stream of a client.
    ///
    /// # Errors
    /// [`QuotaError::Streams`].
    pub(crate) fn stream(&self, client: &Name, limits: &Limits) -> Result<Place, QuotaError> {
        let mut table = self.table();
        let held = table.held.get(client).copied().unwrap_or_default().streams;
        if held >= limits.streams {
            return Err(QuotaError::Streams { client: client.clone(), most: limits.streams });
        }
        Ok(self.place(&mut table, client, Held { streams: 1, ..Held::default() }))
    }

    fn place(&self, table: &mut Table, client: &Name, part: Held) -> Place {
        let held = table.held.entry(client.clone()).or_default();
        *held = held.plus(part);
        Place { table: Arc::clone(&self.0), client: client.clone(), part }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(held) = table.held.get_mut(&self.client) else { return };
        *held = held.minus(self.part);
        if held.instances == 0 && held.streams == 0 && held.computations == 0 {
            table.held.remove(&self.client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixTime = UnixTime(1_795_249_800_000);

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn limits(instances: usize, streams: usize, rate: &str) -> Limits {
        Limits { instances, streams, submissions: rate.parse().unwrap(), ..Limits::DEFAULT }
    }

    #[test]
    fn a_client_holds_what_the_policy_gives_it_and_gives_it_back() {
        let (quotas, limits, ann) = (Quotas::default(), limits(3, 2, "1000000/s"), name("ann"));
        let instance = |client: &Name| quotas.instance(client, &limits, 10, (0, 100));
        let places: Vec<Place> = (0..3).map(|_| instance(&ann).unwrap()).collect();
        assert_eq!(instance(&ann).unwrap_err(), QuotaError::Instances { client: ann.clone(), most: 3 });
        let bob = instance(&name("bob")).unwrap();
        drop(places);
        drop(instance(&ann).unwrap());
        let streams: Vec<Place> = (0..2).map(|_| quotas.stream(&ann, &limits).unwrap()).collect();
        assert_eq!(quotas.stream(&ann, &limits).unwrap_err().name(), "client_streams");
        drop((streams, bob));
        assert!(quotas.table().held.is_empty());
    }

    /// One client submits a hundred thousand requests without waiting, at a node with room for 800 instances.
    #[test]
    fn whoever_fills_the_node_is_refused_first() {
        let (quotas, limits) = (Quotas::default(), limits(1_000_000, 10, "1000000/s"));
        let (many, few) = (name("many"), name("few"));
        let running = std::cell::Cell::new(0);
        let ask = |client: &Name| {
            let place = quotas.instance(client, &limits, 10, (running.get(), 800));
            // The node itself runs no more than 800.
            let place = place.ok().filter(|_| running.get() < 800);
            running.set(running.get() + usize::from(place.is_some()));
            place
        };
        let first = ask(&few).unwrap();
        let flood: Vec<Place> = (0..100_000).filter_map(|_| ask(&many)).collect();
        assert_eq!(flood.len(), 699, "the last eighth is for those who have less than half");
        let others: Vec<Place> = (0..100).filter_map(|_| ask(&few)).collect();
        assert_eq!(others.len(), 100);
        // A client that is alone may use the whole node.
        drop(others);
        drop(first);
        running.set(699);
        assert_eq!((0..200).filter_map(|_| ask(&many)).count(), 101);
    }

    /// A few requests of fifteen megabytes each, without waiting.
    #[test]
    fn bytes_of_statements_are_counted() {
        let (quotas, ann) = (Quotas::default(), name("ann"));
        let ask = |client: &Name| quotas.instance(client, &Limits::DEFAULT, 15 << 20, (0, 10_000));
        let places: Vec<Place> = (0..100).filter_map(|_| ask(&ann).ok()).collect();
        assert_eq!(places.len(), 4);
        assert_eq!(ask(&ann).unwrap_err().name(), "client_statement_bytes");
        ask(&name("bob")).unwrap();
        drop(places);
        ask(&ann).unwrap();
    }

    #[test]
    fn submissions_have_a_rate_and_no_place() {
        let (quotas, limits, ann) = (Quotas::default(), limits(1_000, 10, "10/s"), name("ann"));
        let ask = |client: &Name, now| quotas.submission(client, &limits, now);
        assert_eq!((0..100_000).filter(|_| ask(&ann, NOW).is_ok()).count(), 10);
        assert!(quotas.table().held.is_empty());
        let refused = QuotaError::TooOften { client: ann.clone(), rate: limits.submissions, wait: 100 };
        assert_eq!(ask(&ann, NOW), Err(refused));
        assert_eq!((ask(&name("bob"), NOW), ask(&ann, UnixTime(NOW.0 + 100))), (Ok(()), Ok(())));
    }

    /// Two clients fill a node with computations that take long: a third one has its share all the same.
    #[test]
    fn computations_leave_room_for_others() {
        let (quotas, running) = (Quotas::default(), std::cell::Cell::new(0));
        let compute = |client: &str| {
            let place =
                quotas.computation(&name(client), (running.get(), 1_024)).ok().filter(|_| running.get() < 1_024);
            running.set(running.get() + usize::from(place.is_some()));
            place
        };
        let taken: Vec<Option<Place>> = (0..10_000).flat_map(|_| [compute("ann"), compute("bob")]).collect();
        let eves: Vec<Place> = (0..100).filter_map(|_| compute("eve")).collect();
        assert_eq!((taken.iter().flatten().count(), eves.len()), (896, 100));
        drop((taken, eves));
        assert!(quotas.table().held.is_empty());
    }
}

//! Records the requests and bytes that each caller holds.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use theta_statements::Name;
use tokio::sync::oneshot;

use super::connections::Connection;

/// The caller of a request, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A caller whom the policy does not know, or whose signature is in a body that has not been read yet.
    Stranger,
    Client(Name),
}

/// The bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Requests of all clients above the reserved ones, and their bytes.
    pub(crate) requests: usize,
    pub(crate) bytes: usize,
    /// Requests of one client, and their bytes.
    pub(crate) client_requests: usize,
    pub(crate) client_bytes: usize,
    /// Requests and bytes that are reserved for each client.
    pub(crate) reserved_requests: usize,
    pub(crate) reserved_bytes: usize,
    /// Requests of all strangers together, and their bytes; at most three quarters from one address.
    pub(crate) stranger_requests: usize,
    pub(crate) stranger_bytes: usize,
    /// How long a body may take, and how many bytes give it one more second.
    pub(crate) body: Duration,
    pub(crate) body_rate: usize,
    /// How long an answer may wait until its receiver takes some of it.
    pub(crate) response: Duration,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The node holds as many requests as it may.
    Requests,
    /// The caller holds as many requests as it may.
    OwnRequests,
    /// As [`Refused::Requests`], in bytes.
    Bytes,
    /// As [`Refused::OwnRequests`], in bytes.
    OwnBytes,
    /// The request was ended to make room for others.
    Shed,
}

/// The progress of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The body is not complete.
    Arriving,
    /// The request is being answered.
    Working,
    /// The answer is leaving. `pieces` of it wait to be taken; at `moved` one was taken, or the first of them came.
    Leaving { pieces: usize, moved: Instant },
}

#[derive(Debug)]
struct Entry {
    owner: Owner,
    connection: Arc<Connection>,
    /// As how many requests it counts.
    requests: usize,
    bytes: usize,
    since: Instant,
    received: usize,
    stage: Stage,
    /// Whether a stranger brought it, and its client is known by its signature alone: it may be held up by whom its client does not know.
    is_brought: bool,
    /// Dropping it notifies the body.
    _shed: oneshot::Sender<()>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    requests: usize,
    bytes: usize,
}

/// All requests that this node holds.
#[derive(Debug)]
pub(super) struct Book {
    bounds: Bounds,
    next: u64,
    /// By age, oldest first.
    entries: BTreeMap<u64, Entry>,
    clients: HashMap<Name, Usage>,
    strangers: Usage,
    /// What clients hold above their reserved part.
    common: Usage,
    shed: u64,
}

impl Book {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            next: 0,
            entries: BTreeMap::new(),
            clients: HashMap::new(),
            strangers: Usage::default(),
            common: Usage::default(),
            shed: 0,
        }
    }

    pub(super) fn requests(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.clients.values().fold(self.strangers.bytes, |sum, usage| sum.saturating_add(usage.bytes))
    }

    /// The number of requests that were ended for others, or for lack of progress.
    pub(super) const fn shed(&self) -> u64 {
        self.shed
    }

    /// Takes a place. The receiver fires when the place is taken away.
    pub(super) fn enter(
        &mut self,
        owner: Owner,
        connection: &Arc<Connection>,
        now: Instant,
    ) -> Result<(u64, oneshot::Receiver<()>), Refused> {
        self.room_for_request(&owner, connection.address())?;
        let (shed, told) = oneshot::channel();
        let number = self.next;
        self.next = number.wrapping_add(1);
        connection.begin();
        self.change(&owner, |usage| usage.requests = usage.requests.saturating_add(1));
        let connection = Arc::clone(connection);
        let stage = Stage::Arriving;
        let is_brought = false;
        let entry =
            Entry { owner, connection, requests: 1, bytes: 0, since: now, received: 0, stage, is_brought, _shed: shed };
        self.entries.insert(number, entry);
        Ok((number, told))
    }

    /// Releases the place.
    pub(super) fn leave(&mut self, number: u64, now: Instant) {
        let Some(entry) = self.entries.remove(&number) else { return };
        self.change(&entry.owner, |usage| {
            usage.requests = usage.requests.saturating_sub(entry.requests);
            usage.bytes = usage.bytes.saturating_sub(entry.bytes);
        });
        entry.connection.finish(now);
    }

    /// Counts a request of a client as so many from now on: it is a batch of them. Nobody else is ended for it.
    pub(super) fn widen(&mut self, number: u64, requests: usize) -> Result<(), Refused> {
        let entry = self.entries.get(&number).ok_or(Refused::Shed)?;
        let (owner, more) = (entry.owner.clone(), requests.saturating_sub(entry.requests));
        let Owner::Client(name) = &owner else { return Err(Refused::OwnRequests) };
        let Bounds { requests: most, client_requests, reserved_requests, .. } = self.bounds;
        let before = self.usage(name).requests;
        let held = before.saturating_add(more);
        if held > client_requests {
            return Err(Refused::OwnRequests);
        }
        let added = held.saturating_sub(before.max(reserved_requests));
        if self.common.requests.saturating_add(added) > most {
            return Err(Refused::Requests);
        }
        self.change(&owner, |usage| usage.requests = held);
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.requests = entry.requests.saturating_add(more);
        }
        Ok(())
    }

    /// Counts bytes of a request's body.
    pub(super) fn receive(&mut self, number: u64, bytes: usize) -> Result<(), Refused> {
        self.hold(number, bytes)?;
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.received = entry.received.saturating_add(bytes);
        }
        Ok(())
    }

    /// Counts bytes.
    pub(super) fn hold(&mut self, number: u64, bytes: usize) -> Result<(), Refused> {
        let owner = self.entries.get(&number).ok_or(Refused::Shed)?.owner.clone();
        self.room_for_bytes(number, &owner, bytes)?;
        self.change(&owner, |usage| usage.bytes = usage.bytes.saturating_add(bytes));
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.bytes = entry.bytes.saturating_add(bytes);
        }
        Ok(())
    }

    /// Releases bytes.
    pub(super) fn release(&mut self, number: u64, bytes: usize) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let bytes = bytes.min(entry.bytes);
        entry.bytes = entry.bytes.saturating_sub(bytes);
        let owner = entry.owner.clone();
        self.change(&owner, |usage| usage.bytes = usage.bytes.saturating_sub(bytes));
    }

    /// The time by which the body must have arrived; `None` if it has, or if there is no such request any more.
    pub(super) fn body_due(&self, number: u64) -> Option<Instant> {
        let entry = self.entries.get(&number).filter(|entry| entry.stage == Stage::Arriving)?;
        Some(entry.due(&self.bounds))
    }

    /// The body is complete. Returns `false` if the request had been ended.
    pub(super) fn arrived(&mut self, number: u64) -> bool {
        let Some(entry) = self.entries.get_mut(&number) else { return false };
        if entry.stage == Stage::Arriving {
            entry.stage = Stage::Working;
        }
        true
    }

    /// The answer begins: the bytes of the request are released.
    pub(super) fn answered(&mut self, number: u64, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.stage = Stage::Leaving { pieces: 0, moved: now };
            let bytes = entry.bytes;
            self.release(number, bytes);
        }
    }

    /// A piece of the answer waits to be taken.
    pub(super) fn offered(&mut self, number: u64, now: Instant) {
        if let Some(Entry { stage: Stage::Leaving { pieces, moved }, .. }) = self.entries.get_mut(&number) {
            if *pieces == 0 {
                *moved = now;
            }
            *pieces = pieces.saturating_add(1);
        }
    }

    /// The caller has taken one piece of the answer.
    pub(super) fn taken(&mut self, number: u64, now: Instant) {
        if let Some(Entry { stage: Stage::Leaving { pieces, moved }, .. }) = self.entries.get_mut(&number) {
            (*pieces, *moved) = (pieces.saturating_sub(1), now);
        }
    }

    /// Counts the request as this client's from now on.
    pub(super) fn recognise(&mut self, number: u64, name: &Name) -> Result<(), Refused> {
        let entry = self.entries.get(&number).ok_or(Refused::Shed)?;
        let (before, after) = (entry.owner.clone(), Owner::Client(name.clone()));
        if before == after {
            return Ok(());
        }
        let (requests, bytes, address) = (entry.requests, entry.bytes, entry.connection.address());
        self.room_for_request(&after, address)?;
        self.room_for_bytes(number, &after, bytes)?;
        let Some(entry) = self.entries.get_mut(&number) else { return Err(Refused::Shed) };
        entry.owner = after.clone();
        entry.is_brought = true;
        self.change(&before, |usage| {
            *usage =
                Usage { requests: usage.requests.saturating_sub(requests), bytes: usage.bytes.saturating_sub(bytes) };
        });
        self.change(&after, |usage| {
            *usage =
                Usage { requests: usage.requests.saturating_add(requests), bytes: usage.bytes.saturating_add(bytes) };
        });
        Ok(())
    }

    /// Ends requests without progress: overdue bodies that nobody reads, and answers that nobody takes.
    pub(super) fn patrol(&mut self, now: Instant) {
        let stuck = |entry: &Entry| match entry.stage {
            // A body with a reader checks its time itself; the reader of this one waits for something else.
            Stage::Arriving => now.saturating_duration_since(entry.due(&self.bounds)) > Duration::from_secs(2),
            Stage::Working => false,
            Stage::Leaving { pieces, moved } => {
                pieces > 0 && now.saturating_duration_since(moved) > self.bounds.response
            }
        };
        let stuck: Vec<u64> =
            self.entries.iter().filter(|(_, entry)| stuck(entry)).map(|(number, _)| *number).collect();
        for number in stuck {
            if let Some(entry) = self.entries.get(&number) {
                entry.connection.end();
            }
            self.end(number, now);
        }
    }

    fn room_for_request(&mut self, owner: &Owner, address: IpAddr) -> Result<(), Refused> {
        let Bounds { requests, client_requests, reserved_requests, stranger_requests, .. } = self.bounds;
        match owner {
            Owner::Stranger => {
                let strangers = self.entries.values().filter(|entry| entry.owner == Owner::Stranger);
                let here = strangers.filter(|entry| entry.connection.address() == address).count();
                let has_room = if here >= three_quarters(stranger_requests) {
                    self.shed_stranger(|entry| entry.connection.address() == address)
                } else {
                    self.strangers.requests < stranger_requests || self.shed_stranger(|_| true)
                };
                if has_room { Ok(()) } else { Err(Refused::OwnRequests) }
            }
            Owner::Client(name) => {
                let held = self.usage(name).requests;
                if held < reserved_requests {
                    return Ok(());
                }
                if held >= client_requests {
                    let has_room = self.shed_arriving(name) || self.shed_brought(name);
                    return if has_room { Ok(()) } else { Err(Refused::OwnRequests) };
                }
                if self.common.requests < requests || self.shed_richer(name, |usage| usage.requests) {
                    return Ok(());
                }
                Err(Refused::Requests)
            }
        }
    }

    fn room_for_bytes(&mut self, number: u64, owner: &Owner, bytes: usize) -> Result<(), Refused> {
        let Bounds { bytes: most, client_bytes, reserved_bytes, stranger_bytes, .. } = self.bounds;
        match owner {
            Owner::Stranger => {
                while self.strangers.bytes.saturating_add(bytes) > stranger_bytes {
                    // The oldest of the other requests that holds any bytes.
                    let other = self
                        .entries
                        .iter()
                        .find(|(other, entry)| **other != number && entry.owner == Owner::Stranger && entry.bytes > 0);
                    let Some(other) = other.map(|(other, _)| *other) else { return Err(Refused::OwnBytes) };
                    self.end(other, Instant::now());
                }
                Ok(())
            }
            Owner::Client(name) => {
                let before = self.usage(name).bytes;
                let held = before.saturating_add(bytes);
                if held <= reserved_bytes {
                    return Ok(());
                }
                if held > client_bytes {
                    return Err(Refused::OwnBytes);
                }
                let added = held.saturating_sub(before.max(reserved_bytes));
                while self.common.bytes.saturating_add(added) > most {
                    if !self.shed_richer(name, |usage| usage.bytes) {
                        return Err(Refused::Bytes);
                    }
                }
                Ok(())
            }
        }
    }

    /// Ends the oldest of these strangers' requests: streams on which nothing is to be said first, which may last for ever, then those with an
    /// incomplete body, then those whose answer is leaving.
    fn shed_stranger(&mut self, candidate: impl Fn(&Entry) -> bool) -> bool {
        let now = Instant::now();
        let waits = |stage: Stage| match stage {
            Stage::Leaving { pieces: 0, moved } if now.saturating_duration_since(moved) > IDLE => 0,
            Stage::Arriving | Stage::Working => 1,
            Stage::Leaving { .. } => 2,
        };
        let worst = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.owner == Owner::Stranger && entry.stage != Stage::Working && candidate(entry))
            .min_by_key(|(number, entry)| (waits(entry.stage), **number))
            .map(|(number, _)| *number);
        worst.is_some_and(|number| self.end(number, Instant::now()))
    }

    /// Ends the oldest request of this client with an incomplete body.
    fn shed_arriving(&mut self, name: &Name) -> bool {
        let owner = Owner::Client(name.clone());
        let oldest = self.entries.iter().find(|(_, entry)| entry.owner == owner && entry.stage == Stage::Arriving);
        oldest.map(|(number, _)| *number).is_some_and(|number| self.end(number, Instant::now()))
    }

    /// Ends the oldest request of this client that a stranger has brought, and whose answer it does not take.
    fn shed_brought(&mut self, name: &Name) -> bool {
        let (owner, now) = (Owner::Client(name.clone()), Instant::now());
        let is_held_up = |entry: &Entry| match entry.stage {
            Stage::Leaving { pieces, moved } => pieces > 0 && now.saturating_duration_since(moved) > UNTAKEN,
            Stage::Arriving | Stage::Working => false,
        };
        let mut brought = self.entries.iter().filter(|(_, entry)| entry.owner == owner && entry.is_brought);
        let oldest = brought.find(|(_, entry)| is_held_up(entry)).map(|(number, _)| *number);
        oldest.is_some_and(|number| self.end(number, now))
    }

    /// Of the client that holds most, if more than this one, ends the oldest request with an incomplete body.
    fn shed_richer(&mut self, name: &Name, measure: impl Fn(&Usage) -> usize) -> bool {
        let own = measure(&self.usage(name));
        let mut richer: Vec<(usize, Name)> = self
            .clients
            .iter()
            .filter(|(_, usage)| measure(usage) > own)
            .map(|(name, usage)| (measure(usage), name.clone()))
            .collect();
        richer.sort_by(|(some, _), (other, _)| other.cmp(some));
        richer.iter().any(|(_, name)| self.shed_arriving(name))
    }

    fn end(&mut self, number: u64, now: Instant) -> bool {
        let Some(entry) = self.entries.get(&number) else { return false };
        if entry.owner == Owner::Stranger {
            // The connection belongs to nobody whom this node knows, and its other requests are as slow: close it.
            entry.connection.end_unless_recognised();
        }
        self.leave(number, now);
        self.shed = self.shed.saturating_add(1);
        true
    }

    fn usage(&self, name: &Name) -> Usage {
        self.clients.get(name).copied().unwrap_or_default()
    }

    fn change(&mut self, owner: &Owner, change: impl FnOnce(&mut Usage)) {
        let Owner::Client(name) = owner else { return change(&mut self.strangers) };
        let before = self.usage(name);
        let mut after = before;
        change(&mut after);
        let Bounds { reserved_requests, reserved_bytes, .. } = self.bounds;
        let over = |all: usize, before: usize, after: usize, reserved: usize| {
            all.saturating_sub(before.saturating_sub(reserved)).saturating_add(after.saturating_sub(reserved))
        };
        self.common = Usage {
            requests: over(self.common.requests, before.requests, after.requests, reserved_requests),
            bytes: over(self.common.bytes, before.bytes, after.bytes, reserved_bytes),
        };
        if after.requests == 0 {
            self.clients.remove(name);
        } else {
            self.clients.insert(name.clone(), after);
        }
    }
}

impl Entry {
    /// The time by which the body must be complete. Each byte that arrives extends it.
    fn due(&self, bounds: &Bounds) -> Instant {
        let brought = u64::try_from(self.received / bounds.body_rate.max(1)).unwrap_or(u64::MAX);
        let patience = bounds.body.saturating_add(Duration::from_secs(brought.min(MOST_BODY_SECONDS)));
        self.since.checked_add(patience).unwrap_or(self.since)
    }
}

/// The most seconds that a body of any length may take.
const MOST_BODY_SECONDS: u64 = 3_600;

/// After so long a stranger's stream on which nothing was said makes room first.
const IDLE: Duration = Duration::from_secs(5);
/// After so long an answer that nobody takes makes room for its client's own requests, where a stranger has brought the request.
const UNTAKEN: Duration = Duration::from_secs(1);

/// The part of a common bound that one address may use.
pub(super) const fn three_quarters(all: usize) -> usize {
    let most = all.saturating_sub(all / 4);
    if most == 0 { 1 } else { most }
}

#[cfg(test)]
mod tests;

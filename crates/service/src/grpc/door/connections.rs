//! Bounds the connections of the API by caller, and closes some when there are too many.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use theta_statements::Name;
use tokio::sync::oneshot;

use super::book::three_quarters;

/// The bounds on connections, and how long these may be idle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionBounds {
    pub(crate) all: usize,
    /// Connections of one client.
    pub(crate) client: usize,
    /// Connections of all strangers; at most three quarters from one address.
    pub(crate) strangers: usize,
    /// How long a client's connection may be without a request.
    pub(crate) idle: Duration,
    /// How long a stranger's connection may be without a request.
    pub(crate) stranger_idle: Duration,
}

/// A connection whose handshake is done.
#[derive(Debug)]
pub(crate) struct Connection {
    number: u64,
    address: IpAddr,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Its client, once a certificate or a request has identified one.
    client: Option<Name>,
    /// The number of its requests being answered.
    requests: usize,
    idle_since: Instant,
    /// Sending or dropping it closes the connection.
    end: Option<oneshot::Sender<()>>,
}

/// All connections.
#[derive(Debug)]
pub(crate) struct Connections {
    bounds: ConnectionBounds,
    open: Mutex<Open>,
    ended: AtomicU64,
}

#[derive(Debug)]
struct Open {
    /// How many there may be.
    most: usize,
    next: u64,
    /// By age, oldest first.
    connections: BTreeMap<u64, Arc<Connection>>,
}

/// The node has as many connections as it may, and none of them can be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// The entry of an open connection; dropping it removes the entry.
#[derive(Debug)]
pub(crate) struct Listed {
    connections: Arc<Connections>,
    pub(crate) connection: Arc<Connection>,
    /// Fires when the connection is to be closed.
    pub(crate) ended: oneshot::Receiver<()>,
}

impl Connection {
    /// Where it comes from.
    pub(crate) const fn address(&self) -> IpAddr {
        self.address
    }

    /// A request begins.
    pub(super) fn begin(&self) {
        let mut inner = self.inner();
        inner.requests = inner.requests.saturating_add(1);
    }

    /// A request is over.
    pub(super) fn finish(&self, now: Instant) {
        let mut inner = self.inner();
        inner.requests = inner.requests.saturating_sub(1);
        inner.idle_since = now;
    }

    /// Closes it.
    pub(super) fn end(&self) {
        self.inner().end = None;
    }

    /// Closes it if its client is not known.
    pub(super) fn end_unless_recognised(&self) {
        let mut inner = self.inner();
        if inner.client.is_none() {
            inner.end = None;
        }
    }

    fn client(&self) -> Option<Name> {
        self.inner().client.clone()
    }

    fn is_busy(&self) -> bool {
        self.inner().requests > 0
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connections {
    pub(crate) fn new(bounds: ConnectionBounds) -> Arc<Self> {
        let open = Open { most: bounds.all, next: 0, connections: BTreeMap::new() };
        Arc::new(Self { bounds, open: Mutex::new(open), ended: AtomicU64::new(0) })
    }

    /// Enters a new connection, of the client of its certificate or of a stranger; if necessary another one is closed for
    /// it.
    ///
    /// # Errors
    /// [`TooMany`].
    pub(crate) fn enter(self: &Arc<Self>, client: Option<Name>, address: IpAddr) -> Result<Listed, TooMany> {
        let mut open = self.open();
        self.room_for(&mut open, client.as_ref(), address, u64::MAX);
        if open.connections.len() >= open.most && !self.room_at_all(&mut open) {
            return Err(TooMany);
        }
        let (end, ended) = oneshot::channel();
        let number = open.next;
        open.next = number.wrapping_add(1);
        let inner = Inner { client, requests: 0, idle_since: Instant::now(), end: Some(end) };
        let connection = Arc::new(Connection { number, address, inner: Mutex::new(inner) });
        open.connections.insert(number, Arc::clone(&connection));
        drop(open);
        Ok(Listed { connections: Arc::clone(self), connection, ended })
    }

    /// A request identified this client: the connection counts as this client's from now on, if it had no client.
    pub(crate) fn recognise(&self, connection: &Connection, name: &Name) {
        if connection.client().is_some() {
            return;
        }
        let mut open = self.open();
        if !open.connections.contains_key(&connection.number) {
            return;
        }
        self.room_for(&mut open, Some(name), connection.address, connection.number);
        connection.inner().client = Some(name.clone());
    }

    /// Closes connections that have been idle for too long.
    pub(super) fn patrol(&self, now: Instant) {
        let mut open = self.open();
        let idle = |connection: &Connection| {
            let inner = connection.inner();
            let patience = if inner.client.is_some() { self.bounds.idle } else { self.bounds.stranger_idle };
            inner.requests == 0 && now.saturating_duration_since(inner.idle_since) > patience
        };
        let idle: Vec<u64> =
            open.connections.values().filter(|connection| idle(connection)).map(|idle| idle.number).collect();
        for number in idle {
            self.close(&mut open, number);
        }
    }

    /// Closes the connection that would be closed first for another one, so that its file descriptor is free; `false` if none may be closed.
    pub(super) fn give_way(&self) -> bool {
        self.room_at_all(&mut self.open())
    }

    /// Has room for so many from now on. Those that have none any more are closed, in the order in which they make room for others; where all
    /// are at work, the oldest.
    pub(crate) fn resize(&self, most: usize) {
        let mut open = self.open();
        open.most = most;
        while open.connections.len() > most && (self.room_at_all(&mut open) || self.close_worst(&mut open, &|_| true)) {
        }
    }

    /// The number of open connections.
    pub(crate) fn count(&self) -> usize {
        self.open().connections.len()
    }

    /// The number of connections that were closed because they were idle or others needed their places.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Makes room among the connections of the same client, or of strangers, without closing number `but`.
    fn room_for(&self, open: &mut Open, client: Option<&Name>, address: IpAddr, but: u64) {
        let same = |connection: &Connection| connection.client().as_ref() == client && connection.number != but;
        let here = |connection: &Connection| same(connection) && connection.address == address;
        let count = |open: &Open, which: &dyn Fn(&Connection) -> bool| {
            open.connections.values().filter(|connection| which(connection)).count()
        };
        match client {
            Some(_) if count(open, &same) >= self.bounds.client => self.close_worst(open, &same),
            None if count(open, &here) >= three_quarters(self.bounds.strangers) => self.close_worst(open, &here),
            None if count(open, &same) >= self.bounds.strangers => self.close_worst(open, &same),
            _ => false,
        };
    }

    /// Makes room among all connections: closes a stranger's, or the oldest idle one of the client with the most.
    fn room_at_all(&self, open: &mut Open) -> bool {
        if self.close_worst(open, &|connection: &Connection| connection.client().is_none()) {
            return true;
        }
        let mut counts: BTreeMap<Name, usize> = BTreeMap::new();
        for client in open.connections.values().filter_map(|connection| connection.client()) {
            let count = counts.entry(client).or_default();
            *count = count.saturating_add(1);
        }
        let mut clients: Vec<(usize, Name)> = counts.into_iter().map(|(name, count)| (count, name)).collect();
        clients.sort_by(|some, other| other.cmp(some));
        clients.iter().any(|(_, name)| {
            self.close_worst(open, &|connection: &Connection| {
                !connection.is_busy() && connection.client().as_ref() == Some(name)
            })
        })
    }

    /// Closes the oldest of these, idle ones first.
    fn close_worst(&self, open: &mut Open, candidate: &dyn Fn(&Connection) -> bool) -> bool {
        let candidates = open.connections.values().filter(|connection| candidate(connection));
        let worst = candidates.min_by_key(|connection| (connection.is_busy(), connection.number));
        worst.map(|worst| worst.number).is_some_and(|number| self.close(open, number))
    }

    fn close(&self, open: &mut Open, number: u64) -> bool {
        let Some(connection) = open.connections.remove(&number) else { return false };
        connection.end();
        self.ended.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.connections.open().connections.remove(&self.connection.number);
    }
}

#[cfg(test)]
mod tests;

//! What is known of each neighbour: its connections, and how it behaves; and who is to be one ([`Dialer`]).

mod dialer;

pub(crate) use dialer::{Dialer, View};

use core::time::Duration;
use std::{collections::HashMap, time::Instant};

use libp2p_identity::PeerId;
use libp2p_swarm::ConnectionId;
use theta_network::doorway::Occasionally;

use crate::rate::{Rate, Spent};

/// Connections between two nodes: each may have dialled the other at the same time.
const MOST_CONNECTIONS: usize = 2;
/// How long a neighbour may take no messages, which keeps them in memory here.
const SLOW_FOR: Duration = Duration::from_secs(10);
/// Signs of slowness that are further apart are of two times, not of one.
const SLOW_GAP: Duration = Duration::from_secs(3);
/// For how long a neighbour that is gone is remembered, so that to come again does not make up for anything.
const REMEMBERED: Duration = Duration::from_secs(60);

/// One neighbour.
#[derive(Debug)]
pub(crate) struct Neighbour {
    /// Its connections, the oldest first, and whether this node has dialled them.
    connections: Vec<(ConnectionId, bool)>,
    /// The messages that it has passed on.
    passed: Spent,
    /// How many false messages it has passed on, less one a second, and since when that is counted.
    falsehoods: (u32, Instant),
    /// Since when it takes no messages, and the last sign of it.
    slow: Option<(Instant, Instant)>,
    seen: Instant,
    /// Lines about its coming and its going, which it can do as often as it likes.
    pub(crate) arrivals: Occasionally,
    pub(crate) departures: Occasionally,
}

/// All neighbours, those who have just gone as well.
#[derive(Debug, Default)]
pub(crate) struct Neighbours(HashMap<PeerId, Neighbour>);

impl Neighbour {
    fn new(now: Instant) -> Self {
        let (arrivals, departures) = (Occasionally::default(), Occasionally::default());
        let connections = Vec::new();
        let passed = Spent::new(now);
        Self { connections, passed, falsehoods: (0, now), slow: None, seen: now, arrivals, departures }
    }

    /// A connection stands: whether it is the first, and one that is to be closed for it. Of too many that is the oldest, which the
    /// neighbour's last life may have left behind.
    pub(crate) fn connected(&mut self, connection: ConnectionId, dialled: bool) -> (bool, Option<ConnectionId>) {
        let first = self.connections.is_empty();
        self.connections.push((connection, dialled));
        let too_many = self.connections.len() > MOST_CONNECTIONS;
        (first, too_many.then(|| self.connections.remove(0).0))
    }

    /// Counts a message that it has passed on. Whether it may: a neighbour that does not attack passes on what authors may say.
    pub(crate) fn passes(&mut self, rate: &Rate, now: Instant) -> bool {
        self.passed.take(rate, 0, now);
        self.passed.may(rate, now)
    }

    /// Counts a false message; how many there were of late.
    pub(crate) fn lied(&mut self, now: Instant) -> u32 {
        let (count, since) = self.falsehoods;
        let forgiven = u32::try_from(now.duration_since(since).as_secs()).unwrap_or(u32::MAX);
        self.falsehoods = (count.saturating_sub(forgiven).saturating_add(1), if forgiven > 0 { now } else { since });
        self.falsehoods.0
    }

    /// It has taken messages too slowly again: whether it has for so long that it is left.
    pub(crate) fn is_slow(&mut self, now: Instant) -> bool {
        let (since, last) = self.slow.unwrap_or((now, now));
        let since = if now.duration_since(last) > SLOW_GAP { now } else { since };
        self.slow = Some((since, now));
        let left = now.duration_since(since) >= SLOW_FOR;
        if left {
            self.slow = None;
        }
        left
    }

    /// The connections that this node has dialled.
    fn dialled(&self) -> impl Iterator<Item = ConnectionId> {
        self.connections.iter().filter(|(_, dialled)| *dialled).map(|(connection, _)| *connection)
    }
}

impl Neighbours {
    /// The neighbour, known from now on if it was not.
    pub(crate) fn of(&mut self, peer: PeerId, now: Instant) -> &mut Neighbour {
        let neighbour = self.0.entry(peer).or_insert_with(|| Neighbour::new(now));
        neighbour.seen = now;
        neighbour
    }

    /// A connection has ended.
    pub(crate) fn ended(&mut self, peer: &PeerId, connection: ConnectionId) {
        if let Some(neighbour) = self.0.get_mut(peer) {
            neighbour.connections.retain(|(one, _)| *one != connection);
        }
    }

    /// Those with which a connection stands.
    pub(crate) fn present(&self) -> impl Iterator<Item = &PeerId> {
        self.0.iter().filter(|(_, neighbour)| !neighbour.connections.is_empty()).map(|(peer, _)| peer)
    }

    /// The neighbours that this node has dialled, each with one such connection.
    pub(crate) fn dialled(&self) -> Vec<ConnectionId> {
        self.0.values().filter_map(|neighbour| neighbour.dialled().next()).collect()
    }

    /// Forgets those who are long gone.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.0.retain(|_, neighbour| {
            !neighbour.connections.is_empty() || now.duration_since(neighbour.seen) < REMEMBERED
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> ConnectionId {
        ConnectionId::new_unchecked(number)
    }

    #[test]
    fn connections_are_counted_and_the_oldest_makes_room() {
        let (mut neighbours, now, peer) = (Neighbours::default(), Instant::now(), PeerId::random());
        assert_eq!(neighbours.of(peer, now).connected(id(1), false), (true, None));
        assert!(neighbours.dialled().is_empty(), "who dials this node does not count");
        assert_eq!(neighbours.of(peer, now).connected(id(2), true), (false, None));
        assert_eq!(neighbours.dialled(), [id(2)]);
        assert_eq!(neighbours.of(peer, now).connected(id(3), false), (false, Some(id(1))));
        for connection in [2, 3] {
            assert_eq!(neighbours.present().count(), 1);
            neighbours.ended(&peer, id(connection));
        }
        assert_eq!(neighbours.present().count(), 0);
        neighbours.forget(now + REMEMBERED / 2);
        assert_eq!(neighbours.0.len(), 1);
        neighbours.forget(now + REMEMBERED);
        assert!(neighbours.0.is_empty());
    }

    #[test]
    fn a_neighbour_is_left_when_it_has_been_slow_all_the_time() {
        let start = Instant::now();
        let mut neighbour = Neighbour::new(start);
        let mut slow = |millis: u64| neighbour.is_slow(start + Duration::from_millis(millis));
        assert!((0..20).all(|heartbeat| !slow(heartbeat * 500)));
        assert!(slow(10_000));
        assert!(!slow(10_500), "and counts anew");
        assert!(!slow(14_000) && !slow(16_500) && !slow(19_500), "a pause is a pause");
    }

    #[test]
    fn lies_are_forgiven_with_time() {
        let start = Instant::now();
        let mut neighbour = Neighbour::new(start);
        assert_eq!((0..5).map(|_| neighbour.lied(start)).last(), Some(5));
        assert_eq!(neighbour.lied(start + Duration::from_secs(3)), 3);
        assert_eq!(neighbour.lied(start + Duration::from_secs(60)), 1);
    }
}

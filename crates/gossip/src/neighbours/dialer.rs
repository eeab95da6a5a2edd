//! To whom a node connects, and when again.

use core::time::Duration;
use std::{
    collections::{HashMap, HashSet},
    time::Instant,
};

use theta_names::NodeId;
use theta_network::{Fingerprint, mesh::MeshPeer};

use crate::config::{Degree, GossipLimits};

/// Nodes that were not reached for so long are connected to, though there are neighbours enough: the group may have fallen apart.
const APART: Duration = Duration::from_secs(5);
/// A connection that has stood for so long was one. Who shakes hands and goes at once is dialled no more often than one who does not answer.
const STOOD: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Tried {
    /// Not before.
    next: Instant,
    pause: Duration,
    /// Since when a connection stands.
    stands: Option<Instant>,
}

/// Chooses whom to connect to.
#[derive(Debug)]
pub(crate) struct Dialer {
    wanted: HashSet<NodeId>,
    limits: GossipLimits,
    tried: HashMap<Fingerprint, Tried>,
    /// Since when some node is not reached.
    apart_since: Option<Instant>,
}

/// What the dialer looks at.
pub(crate) struct View<'a> {
    /// Connected, or about to be.
    pub(crate) neighbours: &'a HashSet<Fingerprint>,
    /// How many of them this node has dialled itself. Those who dial it choose it, and may all be of one party.
    pub(crate) dialled: usize,
    /// Nodes with which no session stands.
    pub(crate) unreached: &'a HashSet<Fingerprint>,
    pub(crate) degree: Degree,
    pub(crate) now: Instant,
}

impl Dialer {
    /// `wanted`: the nodes to connect to; empty: any.
    pub(crate) fn new(wanted: HashSet<NodeId>, limits: GossipLimits) -> Self {
        Self { wanted, limits, tried: HashMap::new(), apart_since: None }
    }

    /// A connection with this node came up.
    pub(crate) fn connected(&mut self, key: &Fingerprint, now: Instant) {
        if let Some(tried) = self.tried.get_mut(key) {
            tried.stands = Some(now);
        }
    }

    /// Forgets the failures of those with whom a connection has stood for long enough.
    fn forgive(&mut self, neighbours: &HashSet<Fingerprint>, now: Instant) {
        self.tried.retain(|key, tried| {
            tried.stands = tried.stands.filter(|_| neighbours.contains(key));
            tried.stands.is_none_or(|since| now.duration_since(since) < STOOD)
        });
    }

    /// Whom to dial now: one at most, unless nodes are listed. `random` draws a number below its argument.
    pub(crate) fn due<'a>(
        &mut self,
        peers: impl Iterator<Item = &'a MeshPeer>,
        view: &View<'_>,
        random: impl FnOnce(usize) -> usize,
    ) -> Vec<Fingerprint> {
        let View { neighbours, dialled, unreached, degree, now } = *view;
        self.forgive(neighbours, now);
        if unreached.is_empty() {
            self.apart_since = None;
        }
        let apart = !unreached.is_empty() && now.duration_since(*self.apart_since.get_or_insert(now)) >= APART;
        let rests = |key: &Fingerprint| self.tried.get(key).is_some_and(|tried| tried.next > now);
        let candidates = peers
            .filter(|peer| self.wanted.is_empty() || self.wanted.contains(&peer.id))
            .map(|peer| peer.certificate)
            .filter(|key| !neighbours.contains(key) && !rests(key));
        let chosen = if !self.wanted.is_empty() {
            candidates.collect()
        } else if neighbours.len() < degree.aim || dialled < degree.low {
            draw(candidates.collect(), random)
        } else if apart {
            self.apart_since = Some(now);
            draw(candidates.filter(|key| unreached.contains(key)).collect(), random)
        } else {
            Vec::new()
        };
        for key in &chosen {
            let tried =
                self.tried.entry(*key).or_insert(Tried { next: now, pause: self.limits.backoff_min, stands: None });
            tried.stands = None;
            tried.next = now + tried.pause;
            tried.pause = tried.pause.saturating_mul(2).min(self.limits.backoff_max);
        }
        chosen
    }

    /// Whether it chooses by itself.
    pub(crate) fn is_free(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Forgets those who are members no more.
    pub(crate) fn keep(&mut self, is_member: impl Fn(&Fingerprint) -> bool) {
        self.tried.retain(|key, _| is_member(key));
    }
}

fn draw(mut candidates: Vec<Fingerprint>, random: impl FnOnce(usize) -> usize) -> Vec<Fingerprint> {
    if candidates.is_empty() {
        return candidates;
    }
    let place = random(candidates.len()).min(candidates.len() - 1);
    vec![candidates.swap_remove(place)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> Fingerprint {
        Fingerprint::from([number; 32])
    }

    fn peers(n: u8) -> Vec<MeshPeer> {
        let peer = |number: u8| MeshPeer {
            id: NodeId::try_from(u16::from(number)).unwrap(),
            address: String::new(),
            certificate: key(number),
        };
        (2..=n).map(peer).collect()
    }

    const DEGREE: Degree = Degree { low: 2, aim: 3, high: 6 };

    #[test]
    fn neighbours_are_looked_for_until_there_are_enough() {
        let (peers, mut dialer) = (peers(9), Dialer::new(HashSet::new(), GossipLimits::default()));
        let (mut neighbours, unreached, now) = (HashSet::new(), HashSet::new(), Instant::now());
        for round in 0..6 {
            let view =
                View { neighbours: &neighbours, dialled: DEGREE.low, unreached: &unreached, degree: DEGREE, now };
            let due = dialer.due(peers.iter(), &view, |below| below / 2);
            assert_eq!(due.len(), usize::from(round < 3), "{round}");
            neighbours.extend(due);
        }
    }

    #[test]
    fn the_listed_ones_and_no_others_are_dialled_with_pauses() {
        let wanted = [2, 5].map(|number| NodeId::try_from(number).unwrap());
        let mut dialer = Dialer::new(HashSet::from(wanted), GossipLimits::default());
        let (peers, none, start) = (peers(9), HashSet::new(), Instant::now());
        let mut due = |after: u64| {
            let now = start + Duration::from_millis(after);
            let view = View { neighbours: &none, dialled: 0, unreached: &none, degree: DEGREE, now };
            dialer.due(peers.iter(), &view, |_| 0).len()
        };
        assert_eq!([due(0), due(50), due(100), due(200), due(300)], [2, 0, 2, 0, 2]);
    }

    /// The attack: a member shakes hands, closes the connection, and does so again and again.
    #[test]
    fn who_comes_and_goes_is_dialled_no_more_often_than_who_is_away() {
        let wanted = [NodeId::try_from(2).unwrap()];
        let (peers, start) = (peers(3), Instant::now());
        let dials = |stands_for: u64| {
            let mut dialer = Dialer::new(HashSet::from(wanted), GossipLimits::default());
            let (mut dials, mut until) = (0, 0);
            for look in (0..60_000).step_by(200) {
                let now = start + Duration::from_millis(look);
                let neighbours = if look < until { HashSet::from([key(2)]) } else { HashSet::new() };
                let view = View { neighbours: &neighbours, dialled: 0, unreached: &neighbours, degree: DEGREE, now };
                if let [due] = dialer.due(peers.iter(), &view, |_| 0)[..] {
                    dials += 1;
                    dialer.connected(&due, now);
                    until = look + stands_for;
                }
            }
            dials
        };
        assert!((1..=20).contains(&dials(100)), "{} dials in a minute", dials(100));
        assert_eq!(dials(5_800), 11, "one that has stood is looked for at once");
    }

    #[test]
    fn a_group_that_has_fallen_apart_finds_together() {
        let (peers, mut dialer) = (peers(9), Dialer::new(HashSet::new(), GossipLimits::default()));
        let neighbours = HashSet::from([key(2), key(3), key(4)]);
        let unreached = HashSet::from([key(7), key(8)]);
        let start = Instant::now();
        let mut due = |after: u64, unreached: &HashSet<Fingerprint>| {
            let now = start + Duration::from_secs(after);
            dialer.due(
                peers.iter(),
                &View { neighbours: &neighbours, dialled: DEGREE.low, unreached, degree: DEGREE, now },
                |_| 0,
            )
        };
        assert!(due(0, &unreached).is_empty());
        assert!(due(4, &unreached).is_empty());
        assert!(unreached.contains(&due(5, &unreached)[0]));
        assert!(due(6, &unreached).is_empty(), "once in a while");
        assert!(due(20, &HashSet::new()).is_empty());
        assert!(due(21, &unreached).is_empty(), "the time begins anew");
    }
}

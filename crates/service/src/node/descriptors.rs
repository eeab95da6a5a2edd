//! The file descriptors of this process: as many as the system gives, and places for no more connections than there are.
//!
//! Every connection takes one. A process that has none left accepts nobody, also no peer, and may not open its own files. Most systems
//! give a process 1,024 at first and let it ask for hundreds of thousands; a node with the places of its defaults needs some thousands.
//!
//! What the node itself and its connections with members take is set apart first; clients, and those whose handshake is not done, share
//! the rest. So clients never take what members need, also where the limit falls while the node runs: then the places become fewer, and
//! connections beyond them are closed.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc, Weak,
        atomic::{AtomicU16, Ordering::Relaxed},
    },
    time::Duration,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
#[cfg(feature = "gossip")]
use theta_gossip::GossipLimits;
use theta_network::{GroupTransport, doorway::Doorway, mesh::MeshLimits};
use tokio::time::interval;

use crate::{
    config::{LimitsConfig, TransportKind},
    grpc::Connections,
};

/// What a node holds besides the connections counted here: its store, its log, files that it reads, listeners, what its threads wait on,
/// 32 connections of the monitoring system, four readers of the archive, a connection to a host.
const OWN: usize = 96;
/// What each node of the group takes: a connection in each direction, and one more in each while one takes the place of another.
const PER_NODE: usize = 4;
/// Each of the kinds of places has at least so many.
const FEWEST: usize = 8;
/// How often the limit is looked at: it may be lowered from outside while the node runs, and members wait no longer than this.
const LOOK: Duration = Duration::from_secs(1);

/// How many connections of each kind there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Places {
    /// Of the API, with their handshake done.
    connections: NonZeroUsize,
    /// Of the API, in the handshake.
    handshakes: NonZeroUsize,
    /// Those at the address for members, in the handshake. None where a host carries the messages.
    of_members: usize,
}

/// The places as the configuration wants them, and as there are descriptors.
#[derive(Debug)]
pub(super) struct Shares {
    wanted: Places,
    per_node: usize,
    /// From what the present places follow.
    known: (Option<usize>, usize),
    places: Places,
}

impl Shares {
    /// Raises the limit of this process, and shares what there is out in a group of so many nodes: `limits` have as many places from now on.
    pub(super) fn of(limits: &mut LimitsConfig, transport: TransportKind, nodes: usize) -> Self {
        let of_members = match transport {
            TransportKind::Mesh => MeshLimits::default().handshakes,
            #[cfg(feature = "gossip")]
            TransportKind::Gossip => GossipLimits::default().handshakes,
            #[cfg(not(feature = "gossip"))]
            TransportKind::Gossip => 0,
            TransportKind::P2pProxy => 0,
        };
        let per_node = if transport == TransportKind::P2pProxy { 0 } else { PER_NODE };
        let wanted = Places { connections: limits.max_connections, handshakes: limits.max_handshakes, of_members };
        let before = getrlimit(Resource::Nofile).current;
        let mut shares = Self { wanted, per_node, known: (None, 0), places: wanted };
        shares.follows(raise(), nodes);
        tracing::info!(before, now = shares.known.0, "file descriptors");
        limits.max_connections = shares.places.connections;
        limits.max_handshakes = shares.places.handshakes;
        shares
    }

    /// How many connections may be in the handshake at the address for members.
    pub(super) const fn handshakes_of_members(&self) -> usize {
        self.places.of_members
    }

    /// Lets the places follow the limit and the number of nodes until the network is gone.
    pub(super) async fn follow(
        mut self,
        (connections, doorway): (Arc<Connections>, Arc<Doorway>),
        network: Weak<dyn GroupTransport>,
        nodes: Arc<AtomicU16>,
    ) {
        let mut looks = interval(LOOK);
        loop {
            looks.tick().await;
            let Some(network) = network.upgrade() else { return };
            if self.follows(raise(), usize::from(nodes.load(Relaxed))) {
                doorway.resize(self.places.handshakes);
                connections.resize(self.places.connections.get());
                if let Some(of_members) = NonZeroUsize::new(self.places.of_members) {
                    network.limit_handshakes(of_members);
                }
            }
        }
    }

    /// Takes note of the descriptors that there may be, and of the number of nodes. Returns whether there are other places than before.
    fn follows(&mut self, descriptors: Option<usize>, nodes: usize) -> bool {
        if self.known == (descriptors, nodes) {
            return false;
        }
        self.known = (descriptors, nodes);
        let fixed = OWN.saturating_add(self.per_node.saturating_mul(nodes));
        let before = core::mem::replace(&mut self.places, self.wanted.within(fixed, descriptors));
        if before == self.places {
            return false;
        }
        let Places { connections, handshakes, .. } = self.places;
        if self.places == self.wanted {
            tracing::info!(
                max_connections = connections,
                max_handshakes = handshakes,
                "there are file descriptors for all places again"
            );
        } else {
            tracing::warn!(
                descriptors,
                needed = fixed.saturating_add(self.wanted.all()),
                max_connections = connections,
                max_handshakes = handshakes,
                "this process may have fewer file descriptors than its places for connections need, so it has fewer places: raise its \
                 hard limit (LimitNOFILE= in its unit, or `ulimit -Hn`)"
            );
        }
        true
    }
}

impl Places {
    fn all(&self) -> usize {
        self.connections.get().saturating_add(self.handshakes.get()).saturating_add(self.of_members)
    }

    /// As many as there are descriptors beside `fixed` ones, all kinds in proportion.
    fn within(self, fixed: usize, descriptors: Option<usize>) -> Self {
        let (wanted, Some(descriptors)) = (self.all(), descriptors) else { return self };
        let left = descriptors.saturating_sub(fixed);
        if left >= wanted {
            return self;
        }
        let share = |of: usize| {
            let part = of.saturating_mul(left).checked_div(wanted).unwrap_or_default();
            part.max(FEWEST).min(of)
        };
        let places = |of: NonZeroUsize| NonZeroUsize::new(share(of.get())).unwrap_or(NonZeroUsize::MIN);
        Self {
            connections: places(self.connections),
            handshakes: places(self.handshakes),
            of_members: share(self.of_members),
        }
    }
}

/// Raises the process's limit as far as the system lets it, and returns it; `None` if there is none or nobody knows it. A limit that
/// cannot be raised stays, and the log says so.
fn raise() -> Option<usize> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let all = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, all) {
            tracing::debug!(%error, "the limit of file descriptors cannot be raised");
        }
    }
    getrlimit(Resource::Nofile).current.map(|now| usize::try_from(now).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Places {
        let places = NonZeroUsize::new(1_024).unwrap();
        Places { connections: places, handshakes: places, of_members: 1_024 }
    }

    fn fitted(descriptors: Option<usize>) -> (usize, usize, usize) {
        let Places { connections, handshakes, of_members } = wanted().within(OWN + PER_NODE * 6, descriptors);
        (connections.get(), handshakes.get(), of_members)
    }

    #[test]
    fn places_are_no_more_than_descriptors() {
        for enough in [None, Some(usize::MAX), Some(3 * 1_024 + 120)] {
            assert_eq!(fitted(enough), (1_024, 1_024, 1_024));
        }
        let (connections, handshakes, of_members) = fitted(Some(1_024));
        assert!(connections + handshakes + of_members <= 1_024 - 120, "{connections} {handshakes} {of_members}");
        assert!([connections, handshakes, of_members].iter().all(|places| *places >= 300));
        assert_eq!(fitted(Some(0)), (8, 8, 8), "a node with next to none has places all the same");
    }

    #[test]
    fn a_limit_that_falls_takes_places_and_one_that_rises_gives_them_back() {
        let mut shares = Shares { wanted: wanted(), per_node: PER_NODE, known: (None, 6), places: wanted() };
        assert!(!shares.follows(Some(usize::MAX), 6), "there are enough");
        assert!(shares.follows(Some(1_024), 6));
        assert!(!shares.follows(Some(1_024), 6), "it is said once");
        let before = shares.places;
        assert!(shares.follows(Some(1_024), 100), "more members have more set apart for them");
        assert!(shares.places.connections < before.connections && shares.places.all() <= 1_024 - OWN - 400);
        assert!(shares.follows(None, 100) && shares.places == wanted());
    }

    /// Those at the door of a node that gossips take descriptors, too, and nobody comes to one whose host carries its messages.
    #[test]
    fn each_transport_has_what_it_takes() {
        let of = |transport| Shares::of(&mut LimitsConfig::default(), transport, 6);
        assert!(of(TransportKind::Mesh).wanted.of_members > 0);
        #[cfg(feature = "gossip")]
        assert_eq!(of(TransportKind::Gossip).wanted.of_members, GossipLimits::default().handshakes);
        let host = of(TransportKind::P2pProxy);
        assert_eq!((host.wanted.of_members, host.per_node), (0, 0));
    }

    #[test]
    fn the_process_gets_what_the_system_gives() {
        let before = getrlimit(Resource::Nofile);
        assert_eq!(raise().map(|now| now as u64), before.maximum);
    }
}

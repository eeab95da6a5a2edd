//! The file descriptors of this process: as many as the system gives, and places for no more connections than there are.
//!
//! Every connection takes one. A process that has none left accepts nobody, also no peer, and may not open its own files. Most systems
//! give a process 1,024 at first and let it ask for hundreds of thousands; a node with the places of its defaults needs some thousands.

use std::num::NonZeroUsize;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use theta_network::mesh::MeshLimits;

use crate::config::LimitsConfig;

/// What a node holds besides the connections counted here: its store, its log, files that it reads, listeners, what its threads wait on,
/// 32 connections of the monitoring system, four readers of the archive.
const OWN: usize = 96;
/// What each peer takes: a connection in each direction, and one more in each while one takes the place of another.
const PER_PEER: usize = 4;
/// Each of the kinds of places has at least so many.
const FEWEST: usize = 8;

/// Raises the limit, and shares what there is out among those who connect; of peers there are so many.
pub(super) fn share_out(limits: &mut LimitsConfig, peers: usize) -> MeshLimits {
    let mesh = MeshLimits::default();
    let handshakes = fit(limits, peers, mesh.handshakes, raise());
    MeshLimits { handshakes, ..mesh }
}

/// Raises the process's limit as far as the system lets it, and returns it; `None` if there is none or nobody knows it. A limit that
/// cannot be raised stays, and the log says so.
fn raise() -> Option<usize> {
    let limit = getrlimit(Resource::Nofile);
    let before = limit.current;
    if before != limit.maximum {
        let all = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, all) {
            tracing::warn!(%error, "the limit of file descriptors cannot be raised");
        }
    }
    let now = getrlimit(Resource::Nofile).current;
    tracing::info!(before, now, "file descriptors");
    now.map(|now| usize::try_from(now).unwrap_or(usize::MAX))
}

/// Lets the places for connections be as many as there are descriptors, all kinds in proportion, and says so if they become fewer. Returns
/// how many handshakes of peers there may be at once, of those that were wanted.
fn fit(limits: &mut LimitsConfig, peers: usize, handshakes: usize, descriptors: Option<usize>) -> usize {
    let Some(descriptors) = descriptors else { return handshakes };
    let fixed = OWN.saturating_add(PER_PEER.saturating_mul(peers));
    let (clients, entering) = (limits.max_connections.get(), limits.max_handshakes.get());
    let places = clients.saturating_add(entering).saturating_add(handshakes);
    let needed = fixed.saturating_add(places);
    if descriptors >= needed {
        return handshakes;
    }
    let left = descriptors.saturating_sub(fixed);
    let share = |wanted: usize| {
        let part = wanted.saturating_mul(left).checked_div(places).unwrap_or_default();
        part.max(FEWEST).min(wanted)
    };
    let places = |wanted: NonZeroUsize| NonZeroUsize::new(share(wanted.get())).unwrap_or(NonZeroUsize::MIN);
    limits.max_connections = places(limits.max_connections);
    limits.max_handshakes = places(limits.max_handshakes);
    tracing::warn!(
        descriptors,
        needed,
        max_connections = limits.max_connections,
        max_handshakes = limits.max_handshakes,
        "this process may have fewer file descriptors than its places for connections need, so it has fewer places: raise its hard limit \
         (LimitNOFILE= in its unit, or `ulimit -Hn`)"
    );
    share(handshakes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(descriptors: Option<usize>) -> (usize, usize, usize) {
        let mut limits = LimitsConfig::default();
        let handshakes = fit(&mut limits, 6, 1_024, descriptors);
        (limits.max_connections.get(), limits.max_handshakes.get(), handshakes)
    }

    #[test]
    fn places_are_no_more_than_descriptors() {
        for enough in [None, Some(usize::MAX), Some(3 * 1_024 + 120)] {
            assert_eq!(fitted(enough), (1_024, 1_024, 1_024));
        }
        let (connections, handshakes, of_peers) = fitted(Some(1_024));
        assert!(connections + handshakes + of_peers <= 1_024 - 120, "{connections} {handshakes} {of_peers}");
        assert!([connections, handshakes, of_peers].iter().all(|places| *places >= 300));
        assert_eq!(fitted(Some(0)), (8, 8, 8), "a node with next to none has places all the same");
    }

    #[test]
    fn the_process_gets_what_the_system_gives() {
        let before = getrlimit(Resource::Nofile);
        assert_eq!(raise().map(|now| now as u64), before.maximum);
    }
}

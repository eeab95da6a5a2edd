//! Whether the nodes are there that a key takes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Serialize;
use theta_client::{ListedKey, NodeStatus, Problem};
use theta_names::{Delivery, NodeId};
use theta_schemes::keys::AnyPublicKey;
use theta_wire::v1;
use tonic::Code;

use crate::{connect::nodes, exit};

/// What signatures with a key take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Need {
    /// The key's name.
    key: String,
    /// Who holds it; all members if nobody tells.
    holders: Option<BTreeSet<u16>>,
    /// How many of them.
    takes: usize,
}

/// Why a key has too few nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Shortage {
    /// The key; `None` if it is the group itself that lacks nodes.
    key: Option<String>,
    /// How many nodes it takes.
    takes: usize,
    /// Those that are there, and connected to as many others.
    present: BTreeSet<u16>,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, takes, present } = self;
        let present: Vec<u16> = present.iter().copied().collect();
        let there = if present.is_empty() { "no node is".to_owned() } else { format!("{} alone", nodes(&present)) };
        let what = key.as_ref().map_or_else(|| "the group".to_owned(), |key| format!("key {key}"));
        write!(f, "{what} takes {takes} nodes that reach each other; there: {there}")
    }
}

/// What signatures with a key take, whose holders these nodes list. Holders that multiply shared values with an honest majority are 2k - 1, though
/// k of them sign as long as they have presignatures in common; all others are k. The group's ledger says which delivery the key has; what nodes tell counts
/// where it does not know the key.
pub(super) fn need(public: &AnyPublicKey, certified: Option<Delivery>, listed: &[ListedKey]) -> Need {
    let (k, id) = (usize::from(public.threshold().k()), public.key_id());
    // Of several forms, the one that the most nodes tell.
    let told = listed.iter().filter(|key| key.info.key_id.as_ref() == id.as_bytes()).max_by_key(|key| key.nodes.len());
    let delivery = certified.or_else(|| told?.info.delivery.parse().ok()).unwrap_or_default();
    let multiplies = public.suite().takes_honest_majority() && !Delivery::has_dishonest_majority(delivery);
    let takes = if multiplies { k.saturating_mul(2).saturating_sub(1) } else { k };
    let holders = told.map(|key| key.info.holders.iter().filter_map(|it| u16::try_from(*it).ok()).collect());
    let key = told.map_or_else(|| id.to_string(), |key| exit::tidy(&key.info.name));
    Need { key, holders, takes }
}

/// The nodes that answer, each with those that it is connected to; `None` if it does not tell this client.
pub(super) fn present(statuses: &[NodeStatus]) -> BTreeMap<u16, Option<BTreeSet<u16>>> {
    let connected = |peer: &&v1::PeerStatus| peer.state() == v1::PeerState::Connected;
    let is_away = |problem: &Problem| {
        matches!(
            problem,
            Problem::Unreachable(_)
                | Problem::Silent(_)
                | Problem::NotReady(_)
                | Problem::Refused { code: Code::Cancelled, .. }
        )
    };
    let seen = |status: &NodeStatus| match &status.status {
        Ok((response, _)) => {
            let peers = response.peers.iter().filter(connected).filter_map(|peer| u16::try_from(peer.node).ok());
            Some((status.node.get(), Some(peers.collect())))
        }
        // One that refuses to tell is there.
        Err(error) => (!is_away(&error.problem)).then(|| (NodeId::get(status.node), None)),
    };
    statuses.iter().filter_map(seen).collect()
}

/// The first of these keys for which too few nodes are there, and, if there is none, whether the group has as many as it takes.
pub(super) fn shortage(
    threshold: u16,
    needs: &[Need],
    present: &BTreeMap<u16, Option<BTreeSet<u16>>>,
) -> Option<Shortage> {
    let group = Need { key: String::new(), holders: None, takes: usize::from(threshold) };
    let all = needs.iter().map(|need| (Some(&need.key), need)).chain([(None, &group)]);
    all.into_iter().find_map(|(key, Need { holders, takes, .. })| {
        let is_holder = |node: &u16| holders.as_ref().is_none_or(|holders| holders.contains(node));
        let mut reached: BTreeSet<u16> = present.keys().copied().filter(is_holder).collect();
        // A node that has just started is not connected yet, and without those that it does not reach others may have too few.
        loop {
            let reaches = |node: &u16| {
                let peers = present.get(node).and_then(Option::as_ref);
                let are_both =
                    |peer: &&u16| present.get(peer).and_then(Option::as_ref).is_none_or(|it| it.contains(node));
                let count = |peers: &BTreeSet<u16>| peers.intersection(&reached).filter(are_both).count();
                peers.is_none_or(|peers| count(peers).saturating_add(1) >= *takes)
            };
            let left: BTreeSet<u16> = reached.iter().copied().filter(reaches).collect();
            if left.len() == reached.len() {
                break;
            }
            reached = left;
        }
        (reached.len() < *takes).then(|| Shortage { key: key.cloned(), takes: *takes, present: reached })
    })
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng as _};
    use theta_schemes::{Suite, keys::deal_any};
    use theta_sharing::Threshold;

    use super::*;

    fn listed(suite: Suite, delivery: Delivery) -> (AnyPublicKey, ListedKey) {
        let (public, _) = deal_any(suite, Threshold::new(2, 4).unwrap(), &mut ChaCha20Rng::from_seed([7; 32]));
        let info = v1::KeyInfo {
            name: "zone".to_owned(),
            key_id: public.key_id().as_bytes().to_vec().into(),
            holders: vec![1, 2, 3, 4],
            delivery: delivery.name().to_owned(),
            ..v1::KeyInfo::default()
        };
        (public, ListedKey { info, ..ListedKey::default() })
    }

    #[test]
    fn a_key_takes_as_many_as_compute_together() {
        for (suite, delivery, takes) in [
            (Suite::FrostEd25519, Delivery::All, 2),
            (Suite::EcdsaP256, Delivery::All, 3),
            (Suite::EcdsaP256, Delivery::Passive, 3),
            (Suite::EcdsaP256, Delivery::DishonestMajority, 2),
        ] {
            let (public, listed) = listed(suite, delivery);
            let found = need(&public, None, std::slice::from_ref(&listed));
            assert_eq!((found.takes, found.key.as_str()), (takes, "zone"), "{suite} {delivery}");
            // A node that lies about it, or a client that may not list keys, changes nothing.
            assert_eq!(need(&public, Some(delivery), &[]).takes, takes, "{suite} {delivery}");
            let info = v1::KeyInfo { delivery: Delivery::DishonestMajority.name().to_owned(), ..listed.info };
            let lie = ListedKey { info, ..ListedKey::default() };
            assert_eq!(need(&public, Some(delivery), &[lie]).takes, takes, "{suite} {delivery}");
        }
    }

    #[test]
    fn enough_are_those_that_reach_each_other() {
        let (public, listed) = listed(Suite::EcdsaP256, Delivery::All);
        let needs = [need(&public, None, &[listed])];
        let node = |peers: &[u16]| Some(peers.iter().copied().collect::<BTreeSet<u16>>());
        let short = |present: &[(u16, Option<BTreeSet<u16>>)]| {
            shortage(2, &needs, &present.iter().cloned().collect()).map(|it| it.to_string())
        };
        assert_eq!(short(&[(1, node(&[2, 3])), (2, node(&[1, 3])), (3, node(&[1, 2]))]), None);
        assert_eq!(short(&[(1, None), (2, None), (4, None)]), None, "they are there, and tell this client nothing");
        let words = "key zone takes 3 nodes that reach each other; there: node 1 alone";
        assert_eq!(short(&[(1, None), (2, node(&[1]))]).as_deref(), Some(words));
        let apart = short(&[(1, node(&[2])), (2, node(&[1])), (3, node(&[])), (4, node(&[]))]);
        assert_eq!(apart.as_deref(), Some("key zone takes 3 nodes that reach each other; there: no node is"));
        // Node 3 says that it reaches others, which they do not; without it node 2 has node 1 alone.
        let one_sided = short(&[(1, node(&[2])), (2, node(&[1, 3])), (3, node(&[1, 2])), (4, node(&[]))]);
        assert_eq!(one_sided, apart);
        let group = shortage(2, &[], &[(1, None)].into()).map(|it| it.to_string());
        assert_eq!(group.as_deref(), Some("the group takes 2 nodes that reach each other; there: node 1 alone"));
    }
}

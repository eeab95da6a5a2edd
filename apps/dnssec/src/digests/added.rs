//! Sets of keys that a signer adds.

use std::collections::BTreeSet;

use super::candidates::template;
use crate::{
    key_request::Bundle,
    keys::{Keys, digest},
    ttl,
    zone::{Zone, rtype},
};

/// The most sets of keys of one type that are tried. With six keys there are 728, with more the larger sets are left out.
const MOST_KEY_SETS: usize = 2_048;

/// The most sets of keys that are tried for one time of a key signing request: all with six keys that sign keys.
const MOST_AHEAD: usize = 63;

/// For each key the data that records of it may have, one of which may be in a set.
type Choices = Vec<Vec<Vec<u8>>>;

/// The sets of DNSKEY, CDNSKEY and CDS records that may be at the top, with one of the times to live of [`ttl::of_keys`]: some of the keys, the
/// smaller sets first. Keys for the parent are those that sign keys.
pub(super) fn key_sets(zone: &Zone, keys: &Keys, key_ttls: &[u32]) -> Vec<Box<[u8]>> {
    let entry: Choices = keys.entries().into_iter().map(|entry| vec![entry]).collect();
    let all: Choices = keys.records();
    let digests =
        |kind| entry.iter().map(|key| key.iter().filter_map(|key| digest(zone.apex(), key, kind)).collect()).collect();
    let kinds: [(u16, Choices); 4] =
        [(rtype::DNSKEY, all), (rtype::CDS, digests(2)), (rtype::CDS, digests(4)), (rtype::CDNSKEY, entry.clone())];
    let mut sets = Vec::new();
    for (kind, choices) in kinds {
        let ttls = ttl::of_keys(zone, kind, key_ttls);
        for data in selections(&choices) {
            sets.extend(ttls.iter().map(|ttl| template(zone, zone.apex(), kind, *ttl, data.clone())));
        }
    }
    sets
}

/// The sets of DNSKEY records that a key signing request asks for: the keys that sign the zone, with some of those that sign keys.
pub(super) fn ahead_sets(zone: &Zone, keys: &Keys, bundle: &Bundle) -> Vec<Box<[u8]>> {
    let of_keys: Choices = keys.entries().into_iter().map(|entry| vec![entry]).collect();
    let with = |entries: BTreeSet<Vec<u8>>| {
        let data = entries.into_iter().chain(bundle.keys.iter().cloned()).collect();
        template(zone, zone.apex(), rtype::DNSKEY, bundle.ttl, data)
    };
    selections(&of_keys).into_iter().take(MOST_AHEAD).map(with).collect()
}

/// Sets with at most one of each of the choices, the smaller ones first, up to a bound.
fn selections(choices: &[Vec<Vec<u8>>]) -> Vec<BTreeSet<Vec<u8>>> {
    let (mut chosen, mut at) = (vec![(0, BTreeSet::new())], 0_usize);
    while let Some((from, set)) = chosen.get(at).cloned().filter(|_| chosen.len() < MOST_KEY_SETS) {
        for (place, choice) in choices.iter().enumerate().skip(from) {
            let with = |one: &Vec<u8>| set.iter().chain([one]).cloned().collect::<BTreeSet<_>>();
            chosen.extend(choice.iter().map(|one| (place.saturating_add(1), with(one))));
        }
        at = at.saturating_add(1);
    }
    // The first is none.
    chosen.into_iter().skip(1).map(|(_, set)| set).collect()
}

//! Sets of keys that a signer adds.

use std::collections::BTreeSet;

use super::candidates::template;
use crate::{
    keys::{Keys, digest},
    ttl,
    zone::{Zone, rtype},
};

/// The most sets of keys of one type that are tried. With six keys there are 728, with more the larger sets are left out.
const MOST_KEY_SETS: usize = 2_048;

/// For each key the data that records of it may have, one of which may be in a set.
type Choices = Vec<Vec<Vec<u8>>>;

/// The sets of DNSKEY, CDNSKEY and CDS records that may be at the top, with one of the times to live of [`ttl::of_keys`]: some of the keys, the
/// smaller sets first. Keys for the parent are those that sign keys.
pub(super) fn key_sets(zone: &Zone, keys: &Keys, key_ttls: &[u32]) -> Vec<Box<[u8]>> {
    let mut sets = with_ttls(zone, rtype::DNSKEY, &keys.records(), key_ttls);
    sets.extend(for_parent(zone, keys, key_ttls));
    sets
}

/// Those of them that are for the parent: CDS and CDNSKEY.
pub(super) fn for_parent(zone: &Zone, keys: &Keys, key_ttls: &[u32]) -> Vec<Box<[u8]>> {
    let entry: Choices = keys.entries().into_iter().map(|entry| vec![entry]).collect();
    let digests =
        |kind| entry.iter().map(|key| key.iter().filter_map(|key| digest(zone.apex(), key, kind)).collect()).collect();
    let kinds: [(u16, Choices); 3] =
        [(rtype::CDS, digests(2)), (rtype::CDS, digests(4)), (rtype::CDNSKEY, entry.clone())];
    kinds.iter().flat_map(|(kind, choices)| with_ttls(zone, *kind, choices, key_ttls)).collect()
}

fn with_ttls(zone: &Zone, kind: u16, choices: &[Vec<Vec<u8>>], key_ttls: &[u32]) -> Vec<Box<[u8]>> {
    let ttls = ttl::of_keys(zone, kind, key_ttls);
    let of = |data: BTreeSet<Vec<u8>>| {
        let sets = ttls.iter().map(|ttl| template(zone, zone.apex(), kind, *ttl, data.clone()));
        sets.collect::<Vec<_>>()
    };
    some_of(choices).into_iter().flat_map(of).collect()
}

/// Sets with at most one of each of the choices, the smaller ones first, up to a bound.
pub(super) fn some_of(choices: &[Vec<Vec<u8>>]) -> Vec<BTreeSet<Vec<u8>>> {
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

//! Which times to live the records may have that a signer adds to a zone. They are in no copy, and follow from its SOA record and from what the
//! operators say.

use std::collections::BTreeSet;

use crate::zone::{Zone, rtype};

/// The time to live of keys that BIND takes if nobody says another, in seconds.
const USUAL: u32 = 3_600;

/// Those of a set of keys of this type, in seconds: that of the SOA record, an hour, or one of these others.
#[must_use]
pub fn of_keys(zone: &Zone, kind: u16, others: &[u32]) -> BTreeSet<u32> {
    let mut ttls: BTreeSet<u32> = others.iter().copied().chain([USUAL]).collect();
    ttls.extend(zone.start().map(|set| set.ttl));
    // With Knot keys for the parent have none (RFC 7344).
    ttls.extend((kind != rtype::DNSKEY).then_some(0));
    ttls
}

/// That of notes of how far signing is, in seconds: BIND lets nobody keep them.
pub const OF_STATES: u32 = 0;

/// Those of what denies names, of this type, in seconds.
#[must_use]
pub fn of_denial(zone: &Zone, kind: u16) -> BTreeSet<u32> {
    let Some(start) = zone.start() else { return BTreeSet::new() };
    let minimum = start.data.first().and_then(|data| data.last_chunk());
    let minimum = minimum.map_or(0, |minimum| u32::from_be_bytes(*minimum));
    // RFC 9077, section 3, and before it RFC 4034, section 4.
    let mut ttls = BTreeSet::from([minimum.min(start.ttl), minimum]);
    // BIND and others let nobody keep the parameters, which serve name servers alone.
    ttls.extend([0, start.ttl].into_iter().filter(|_| kind == rtype::NSEC3PARAM));
    ttls
}

//! Whether records are those of a copy of the zone, or follow from it.

use std::collections::BTreeSet;

use super::{Objection, START_NUMBERS};
use crate::{
    denial::{Denial, bitmap},
    keys::{Keys, Signer},
    owner::Owner,
    signed::SignedSet,
    ttl,
    zone::{Zone, rtype},
};

/// Whether the zone has these records, or they follow from it.
pub(super) fn of_zone(set: &SignedSet, zone: &Zone, denial: &Denial) -> Result<(), Objection> {
    match set.rtype {
        rtype::NSEC | rtype::NSEC3 | rtype::NSEC3PARAM => of_denial(set, zone, denial),
        rtype::SOA => of_start(set, zone),
        _ => of_records(set, zone),
    }
}

fn of_records(set: &SignedSet, zone: &Zone) -> Result<(), Objection> {
    let shown = || shown(set.rtype);
    if !zone.answers(&set.owner, set.rtype) {
        return Err(format!("there is no {} {} in the zone", set.owner, shown()));
    }
    match zone.set(&set.owner, set.rtype) {
        None => Err(format!("there is no {} {} in the zone", set.owner, shown())),
        Some(own) if own.data != set.data => Err(format!("{} {} has other data in the zone", set.owner, shown())),
        Some(own) if own.ttl != set.ttl => {
            Err(format!("{} {} has a time to live of {} in the zone, and not {}", set.owner, shown(), own.ttl, set.ttl))
        }
        Some(_) => Ok(()),
    }
}

fn of_start(set: &SignedSet, zone: &Zone) -> Result<(), Objection> {
    let own = zone.set(&set.owner, rtype::SOA);
    own.map_or(Ok(()), |own| lives(set, &[own.ttl].into()))?;
    let own = own.and_then(|own| own.data.first());
    let parts = |data: &Vec<u8>| {
        let (names, numbers) = data.split_at_checked(data.len().checked_sub(START_NUMBERS)?)?;
        let (serial, times) = numbers.split_first_chunk::<4>()?;
        Some((names.to_vec(), u32::from_be_bytes(*serial), times.to_vec()))
    };
    let (Some(own), [signed]) = (own.and_then(parts), &set.data.iter().collect::<Vec<_>>()[..]) else {
        return Err(format!("there is no SOA record at {}", set.owner));
    };
    let Some(signed) = parts(signed) else { return Err("the SOA record is too short".to_owned()) };
    // The signer counts on.
    let counts = signed.1.wrapping_sub(own.1) < 1 << 31;
    if signed.0 == own.0 && signed.2 == own.2 && counts {
        Ok(())
    } else {
        Err(format!(
            "the SOA record of {} is another one here, or newer: serial {} in the zone, {} to be signed",
            set.owner, own.1, signed.1
        ))
    }
}

pub(super) fn of_keys(set: &SignedSet, zone: &Zone, keys: &Keys, key_ttls: &[u32]) -> Result<(), Objection> {
    if set.owner != *zone.apex() {
        return Err(format!("keys are at {}, and not at {}", zone.apex(), set.owner));
    }
    lives(set, &ttl::of_keys(zone, set.rtype, key_ttls))?;
    let known = |data: &Vec<u8>| match set.rtype {
        rtype::CDS => keys.has_digest(&set.owner, data),
        rtype::CDNSKEY => keys.has_entry(data),
        _ => keys.has_record(data),
    };
    if set.data.iter().all(known) {
        Ok(())
    } else {
        Err("one of the keys is none of those that the operators have agreed on, or has not its role".to_owned())
    }
}

/// Notes that a signer makes for itself. They mean nothing to resolvers; all the same they may say nothing but what they are for.
pub(super) fn of_states(set: &SignedSet, keys: &Keys) -> Result<(), Objection> {
    lives(set, &[ttl::OF_STATES].into())?;
    let known: BTreeSet<_> = keys.signers().into_iter().map(|(signer, _)| signer).collect();
    let is_note = |data: &Vec<u8>| {
        // Whose it is, whether its signatures are taken away, and whether that is done.
        let [algorithm, high, low, 0 | 1, 0 | 1] = data[..] else { return false };
        known.contains(&Signer { algorithm, tag: u16::from_be_bytes([high, low]) })
    };
    if set.data.iter().all(is_note) {
        Ok(())
    } else {
        Err("a record of TYPE65534 at the top is no note about signing with one of the keys that the operators have agreed on: if BIND \
             has done with a key that has left their file, rndc signing -clear takes its note away"
            .to_owned())
    }
}

fn of_denial(set: &SignedSet, zone: &Zone, denial: &Denial) -> Result<(), Objection> {
    match denial {
        Denial::Names if set.rtype == rtype::NSEC => {
            of_chain(set, zone)?;
            lives(set, &ttl::of_denial(zone, set.rtype))
        }
        Denial::Names => Err("the operators have agreed on NSEC, and not on NSEC3 (--nsec3)".to_owned()),
        Denial::Hashes(ring) if set.rtype == rtype::NSEC => {
            Err(format!("the operators have agreed on NSEC3 with {}, and not on NSEC", ring.parameters()))
        }
        Denial::Hashes(ring) => {
            ring.check(set, zone)?;
            lives(set, &ttl::of_denial(zone, set.rtype))
        }
    }
}

fn of_chain(set: &SignedSet, zone: &Zone) -> Result<(), Objection> {
    let unlike = || format!("the NSEC record of {} does not say what is in the zone", set.owner);
    let Some((next, mut types)) = zone.link(&set.owner) else {
        return Err(format!("there is no {} in the zone", set.owner));
    };
    let [data] = &set.data.iter().collect::<Vec<_>>()[..] else { return Err(unlike()) };
    let (said, map) = Owner::read(data).ok_or_else(unlike)?;
    let said_types = bitmap::read(map).ok_or_else(unlike)?;
    types.extend([rtype::RRSIG, rtype::NSEC]);
    if set.owner == *zone.apex() {
        // What a signer adds at the top; it has keys at least.
        types.insert(rtype::DNSKEY);
        let optional = [rtype::CDS, rtype::CDNSKEY, rtype::SIGNING];
        types.extend(optional.iter().filter(|kind| said_types.contains(kind)));
    }
    if said == *next && said_types == types {
        return Ok(());
    }
    // It would deny all names after this one, though BIND throws it away.
    let way = if said.labels() == 0 && said_types.is_empty() {
        "; if that was BIND, it has such a record signed on its way to the right one where a name is new: sign the zone with dnssec-signzone"
    } else {
        ""
    };
    let [own, here] = [(&types, &said_types), (&said_types, &types)].map(|(one, other)| bitmap::shown(one, other));
    Err(format!("{}: {next} and{own} there, {said} and{here} here{way}", unlike()))
}

/// Resolvers keep what is signed for its original time to live (RFC 4034, section 3.1.4): a wrong one would keep a denial, or keys, for longer
/// than the zone says.
fn lives(set: &SignedSet, may: &BTreeSet<u32>) -> Result<(), Objection> {
    if may.contains(&set.ttl) {
        return Ok(());
    }
    let may: Vec<_> = may.iter().map(u32::to_string).collect();
    let (kind, may) = (shown(set.rtype), may.join(" or "));
    Err(format!("{} {kind} has a time to live of {} here, and of {may} in the zone", set.owner, set.ttl))
}

/// A type as zone files write it.
pub(super) fn shown(kind: u16) -> domain::base::iana::Rtype {
    domain::base::iana::Rtype::from_int(kind)
}

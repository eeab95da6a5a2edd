//! Whether what is to be signed is in the operator's own copy of the zone.

mod records;
#[cfg(test)]
mod tests;

use crate::{
    denial::Denial,
    keys::{Keys, Signer},
    signed::SignedSet,
    zone::{Zone, rtype},
};
use records::{of_keys, of_states, of_zone, shown};

/// Clocks of operators may be so far apart, in seconds; signers put the beginning some time back besides.
const CLOCKS: i64 = 3_600;
/// For how many seconds agents look at copies of before if nobody says otherwise ([`Terms::previous_seconds`]).
pub const PREVIOUS_SECONDS: u32 = 120;
/// The length of the numbers at the end of a SOA record, of which the first is the serial (RFC 1035, section 3.3.13).
pub const START_NUMBERS: usize = 20;

/// What the operator demands besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long a signature may be valid, from its beginning to its end, in seconds.
    pub longest: u32,
    /// How long a signature of keys (DNSKEY, CDS and CDNSKEY) may be valid, in seconds.
    pub longest_of_keys: u32,
    /// How far from now a signature of keys may begin, in seconds: those of a key that is kept offline are made ahead.
    pub ahead_of_keys: u32,
    /// Times to live in seconds that keys may have, beside those that they usually have ([`ttl::of_keys`](crate::ttl::of_keys)).
    pub key_ttls: Vec<u32>,
    /// For how many seconds after another copy has come into force denials and the start of authority of the one before may be signed
    /// ([`consent_to_previous`]); with 0 they are not.
    pub previous_seconds: u32,
    /// How far from now a signature of these may end, in seconds.
    pub longest_of_previous: u32,
}

impl Terms {
    /// Signatures may be valid for so many seconds, and nothing else is said.
    #[must_use]
    pub const fn lasting(longest: u32) -> Self {
        Self {
            longest,
            longest_of_keys: longest,
            ahead_of_keys: 0,
            key_ttls: Vec::new(),
            previous_seconds: PREVIOUS_SECONDS,
            longest_of_previous: longest,
        }
    }

    /// How far from now a signature of keys may begin, with what clocks may be apart, in seconds.
    pub(crate) fn begins_ahead(&self) -> u32 {
        self.ahead_of_keys.saturating_add(u32::try_from(CLOCKS).unwrap_or(0))
    }
}

/// The longest objection in bytes: nodes take no longer ones, and a client reads it.
const LONGEST_OBJECTION: usize = 1_000;

/// Why the operator does not consent, in words for the audit log and the client.
pub type Objection = String;

/// Decides about the bytes that a signature is to cover.
///
/// # Errors
/// The objection.
pub fn consent(
    bytes: &[u8],
    zone: &Zone,
    denial: &Denial,
    keys: &Keys,
    terms: &Terms,
    now: u64,
) -> Result<(), Objection> {
    let decided = signed(bytes, zone, keys, terms, now).and_then(|set| match set.rtype {
        rtype::SIGNING if set.owner == *zone.apex() => of_states(&set, keys),
        _ if is_of_keys(&set) => of_keys(&set, zone, keys, &terms.key_ttls),
        _ => of_zone(&set, zone, denial),
    });
    decided.map_err(shortened)
}

fn shortened(mut objection: Objection) -> Objection {
    if objection.len() > LONGEST_OBJECTION {
        objection.truncate(objection.floor_char_boundary(LONGEST_OBJECTION));
        objection.push_str(" ...");
    }
    objection
}

/// Decides by a copy that was in force just before, about bytes to which [`consent`] has an objection. A signer that changes a zone may have the
/// denials and the start of authority that it takes away signed once more: these and nothing else (`spec/dnssec.md`, The copy before).
/// `None`: that copy has no such record, so that the first objection stands. Otherwise it has, and may object all the same.
#[must_use]
pub fn consent_to_previous(
    bytes: &[u8],
    before: &Zone,
    denial: &Denial,
    keys: &Keys,
    terms: &Terms,
    now: u64,
) -> Option<Result<(), Objection>> {
    let set = signed(bytes, before, keys, terms, now).ok()?;
    if !matches!(set.rtype, rtype::NSEC | rtype::NSEC3 | rtype::SOA) {
        return None;
    }
    of_zone(&set, before, denial).ok()?;
    let (ends, longest) = (after(set.expiration, now), terms.longest_of_previous);
    // The signer's clock may be ahead.
    if ends <= CLOCKS.saturating_add(longest.into()) {
        return Some(Ok(()));
    }
    let of = format!("{} {} is of the copy before", set.owner, shown(set.rtype));
    Some(Err(format!("{of}, and its signature would end in {ends} seconds, more than {longest} (--lifetime)")))
}

/// The record set that a signature is to cover, if the signature is one of the zone's, whatever the records are.
fn signed(bytes: &[u8], zone: &Zone, keys: &Keys, terms: &Terms, now: u64) -> Result<SignedSet, Objection> {
    let Some(set) = SignedSet::read(bytes) else {
        return Err("this is no record set as DNSSEC signs it".to_owned());
    };
    let algorithms = keys.algorithms();
    if !algorithms.contains(&set.algorithm) {
        let own: Vec<_> = algorithms.iter().map(u8::to_string).collect();
        return Err(format!("the algorithm is {}, and the zone's keys are of {}", set.algorithm, own.join(" and ")));
    }
    keys.may_sign(Signer { algorithm: set.algorithm, tag: set.tag }, is_of_keys(&set))?;
    if set.signer != *zone.apex() {
        return Err(format!("the signature is of the zone {}, and this is {}", set.signer, zone.apex()));
    }
    if usize::from(set.labels) != set.owner.labels() {
        return Err(format!("{} has not {} labels", set.owner, set.labels));
    }
    times(&set, terms, now)?;
    if !set.owner.is_in(zone.apex()) {
        return Err(format!("{} is not in the zone {}", set.owner, zone.apex()));
    }
    Ok(set)
}

/// Whether a set is of keys, which keys sign that sign nothing else.
const fn is_of_keys(set: &SignedSet) -> bool {
    matches!(set.rtype, rtype::DNSKEY | rtype::CDNSKEY | rtype::CDS)
}

/// How far a time of 32 bits is from now (RFC 4034, section 3.1.5: in serial number arithmetic).
fn after(time: u32, now: u64) -> i64 {
    let [_, _, _, _, a, b, c, d] = now.to_be_bytes();
    let ahead = time.wrapping_sub(u32::from_be_bytes([a, b, c, d]));
    if ahead < 1 << 31 { i64::from(ahead) } else { i64::from(ahead) - (1 << 32) }
}

fn times(set: &SignedSet, terms: &Terms, now: u64) -> Result<(), Objection> {
    let (begins, ends) = (after(set.inception, now), after(set.expiration, now));
    let (longest, ahead) =
        if is_of_keys(set) { (terms.longest_of_keys, terms.ahead_of_keys) } else { (terms.longest, 0) };
    if begins > CLOCKS.saturating_add(ahead.into()) {
        return Err(format!("the signature begins in {begins} seconds"));
    }
    if ends <= 0 {
        return Err("the signature would have ended already".to_owned());
    }
    if ends.saturating_sub(begins) > i64::from(longest) {
        return Err(format!("the signature would be valid for {} seconds, more than {longest}", ends - begins));
    }
    Ok(())
}

//! Whether what is to be signed is in the operator's own copy of the zone.

use std::collections::BTreeSet;

use crate::{
    denial::{Denial, bitmap},
    keys::{Keys, Signer},
    owner::Owner,
    signed::SignedSet,
    ttl,
    zone::{Zone, rtype},
};

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
    /// Times to live in seconds that keys may have, beside those that they usually have ([`ttl::of_keys`]).
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
}

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
    let set = signed(bytes, zone, keys, terms, now)?;
    if is_of_keys(&set) { of_keys(&set, zone, keys, &terms.key_ttls) } else { of_zone(&set, zone, denial) }
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

/// Whether the zone has these records, or they follow from it.
fn of_zone(set: &SignedSet, zone: &Zone, denial: &Denial) -> Result<(), Objection> {
    match set.rtype {
        rtype::NSEC | rtype::NSEC3 | rtype::NSEC3PARAM => of_denial(set, zone, denial),
        rtype::SOA => of_start(set, zone),
        _ => of_records(set, zone),
    }
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
fn shown(kind: u16) -> domain::base::iana::Rtype {
    domain::base::iana::Rtype::from_int(kind)
}

fn of_keys(set: &SignedSet, zone: &Zone, keys: &Keys, key_ttls: &[u32]) -> Result<(), Objection> {
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
        Err(format!("the SOA record of {} is another one here, or newer", set.owner))
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
    let mut said_types = bitmap::read(map).ok_or_else(unlike)?;
    types.extend([rtype::RRSIG, rtype::NSEC]);
    if set.owner == *zone.apex() {
        // What a signer adds at the top; it has keys at least.
        types.insert(rtype::DNSKEY);
        [rtype::CDS, rtype::CDNSKEY].iter().for_each(|kind| {
            said_types.remove(kind);
        });
    }
    if said == *next && said_types == types { Ok(()) } else { Err(unlike()) }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ED25519 as ALGORITHM, UnparsedPublicKey};
    use base64ct::{Base64, Encoding as _};

    use super::*;

    const ZONE: &str = "$ORIGIN example.\n$TTL 300\n@ SOA ns admin 10 3600 60 86400 60\n@ NS ns\nns A 127.0.0.1\n\
                        www A 192.0.2.1\nwww A 192.0.2.2\n*.wild TXT \"any\"\n\
                        sub NS ns.sub\nsub DS 1 15 2 aa\nns.sub A 192.0.2.9\nZ AAAA 2001:db8::1\n@ DNSKEY 257 3 15 AAAA\n";
    const KEY: [u8; 32] = [7; 32];
    const NOW: u64 = 1_795_000_000;
    const TERMS: Terms = Terms::lasting(30 * 86_400);

    fn zone() -> Zone {
        Zone::parse(ZONE.as_bytes(), "example.").unwrap()
    }

    fn keys() -> Keys {
        Keys::parse(&hex::encode(KEY)).unwrap()
    }

    fn owner(text: &str) -> Owner {
        let labels = text.split('.').filter(|label| !label.is_empty());
        let wire = labels.flat_map(|label| [&[u8::try_from(label.len()).unwrap()], label.as_bytes()].concat());
        Owner::read(&wire.chain([0]).collect::<Vec<_>>()).unwrap().0
    }

    fn set(name: &str, rtype: u16, data: &[&[u8]]) -> SignedSet {
        let owner = owner(name);
        SignedSet {
            rtype,
            algorithm: 15,
            labels: u8::try_from(owner.labels()).unwrap(),
            ttl: 300,
            expiration: u32::try_from(NOW + 14 * 86_400).unwrap(),
            inception: u32::try_from(NOW - 3_600).unwrap(),
            tag: keys().signers()[0].0.tag,
            signer: super::tests::owner("example"),
            owner,
            data: data.iter().map(|data| data.to_vec()).collect(),
        }
    }

    fn ask(set: &SignedSet) -> Result<(), Objection> {
        consent(&set.write(), &zone(), &Denial::Names, &keys(), &TERMS, NOW)
    }

    fn refused(set: &SignedSet, words: &str) {
        let said = ask(set).unwrap_err();
        assert!(said.contains(words), "{said}\n{words}");
    }

    fn www() -> SignedSet {
        set("www.example", 1, &[&[192, 0, 2, 1], &[192, 0, 2, 2]])
    }

    /// The example of RFC 8080, section 6: the bytes are those that its signature covers, and a zone that has the record consents.
    #[test]
    fn what_rfc_8080_signs_is_read_and_consented_to() {
        let key = Base64::decode_vec("l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=").unwrap();
        let signature = "oL9krJun7xfBOIWcGHi7mag5/hdZrKWw15jPGrHpjQeRAvTdszaPD+QLs3fx8A4M3e23mRZ9VrbpMngwcrqNAg==";
        let signed = SignedSet {
            rtype: 15,
            algorithm: 15,
            labels: 2,
            ttl: 3_600,
            expiration: 1_440_021_600,
            inception: 1_438_207_200,
            tag: 3_613,
            signer: owner("example.com"),
            owner: owner("example.com"),
            data: [[&[0, 10], &owner("mail.example.com").wire()[..]].concat()].into(),
        };
        let bytes = signed.write();
        UnparsedPublicKey::new(&ALGORITHM, &key).verify(&bytes, &Base64::decode_vec(signature).unwrap()).unwrap();
        assert_eq!(SignedSet::read(&bytes), Some(signed));
        let text = "@ 3600 IN SOA ns root 1 2 3 4 5\n@ 3600 IN MX 10 Mail.Example.COM.\n";
        let zone = Zone::parse(text.as_bytes(), "example.com.").unwrap();
        let keys = Keys::parse("257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=").unwrap();
        assert_eq!(consent(&bytes, &zone, &Denial::Names, &keys, &TERMS, 1_439_000_000), Ok(()));
        let other = Zone::parse(text.replace("MX 10", "MX 20").as_bytes(), "example.com.").unwrap();
        let said = consent(&bytes, &other, &Denial::Names, &keys, &TERMS, 1_439_000_000).unwrap_err();
        assert!(said.contains("MX has other data"), "{said}");
    }

    #[test]
    fn records_are_those_of_the_copy_and_no_others() {
        assert_eq!(ask(&www()), Ok(()));
        assert_eq!(ask(&set("*.wild.example", 16, &[b"\x03any"])), Ok(()));
        assert_eq!(ask(&set("sub.example", rtype::DS, &[&[0, 1, 15, 2, 0xaa]])), Ok(()));
        refused(&set("www.example", 1, &[&[192, 0, 2, 1]]), "other data");
        refused(&set("www.example", 1, &[&[192, 0, 2, 1], &[192, 0, 2, 2], &[192, 0, 2, 66]]), "other data");
        refused(&set("evil.example", 1, &[&[192, 0, 2, 66]]), "there is no evil.example. A in the zone");
        refused(&set("www.example", 16, &[b"\x03any"]), "there is no www.example. TXT");
        refused(&set("ns.sub.example", 1, &[&[192, 0, 2, 9]]), "there is no ns.sub.example. A");
        refused(&set("sub.example", rtype::NS, &[&owner("ns.sub.example").wire()]), "there is no sub.example. NS");
        refused(&SignedSet { ttl: 60, ..www() }, "a time to live of 300 in the zone, and not 60");
        refused(&SignedSet { owner: owner("www.other"), ..www() }, "not in the zone");
        refused(&SignedSet { signer: owner("other"), ..www() }, "the signature is of the zone other.");
        refused(&SignedSet { algorithm: 13, ..www() }, "the algorithm is 13, and the zone's keys are of 15");
        refused(&SignedSet { tag: 1, ..www() }, "no key of the zone has the algorithm 15 and the tag 1");
        refused(&SignedSet { labels: 1, ..www() }, "has not 1 labels");
        let bytes = www().write();
        for end in 0..bytes.len() {
            assert!(consent(&bytes[..end], &zone(), &Denial::Names, &keys(), &TERMS, NOW).is_err(), "{end}");
        }
    }

    #[test]
    fn signatures_have_their_time() {
        let now = u32::try_from(NOW).unwrap();
        refused(&SignedSet { expiration: now - 1, ..www() }, "ended already");
        refused(&SignedSet { inception: now + 86_400, ..www() }, "begins in 86400 seconds");
        refused(&SignedSet { expiration: now + 40 * 86_400, ..www() }, "more than 2592000");
        refused(&SignedSet { inception: now - 29 * 86_400, ..www() }, "more than 2592000");
    }

    /// Signatures of keys by a key that is kept offline are made ahead, and last as long as the operators say for them.
    #[test]
    fn signatures_of_keys_have_times_of_their_own() {
        let now = u32::try_from(NOW).unwrap();
        let terms = Terms { longest_of_keys: 8 * 86_400, ahead_of_keys: 90 * 86_400, ..TERMS };
        let key = [&[1, 1, 3, 15], &KEY[..]].concat();
        let ask = |set: &SignedSet, ahead: u32, days: u32| {
            let inception = now + ahead * 86_400;
            let set = SignedSet { inception, expiration: inception + days * 86_400, ..set.clone() };
            consent(&set.write(), &zone(), &Denial::Names, &keys(), &terms, NOW)
        };
        let refused = |set: &SignedSet, ahead: u32, days: u32, words: &str| {
            let said = ask(set, ahead, days).unwrap_err();
            assert!(said.contains(words), "{said}");
        };
        let keys = set("example", rtype::DNSKEY, &[&key]);
        assert_eq!((ask(&keys, 0, 8), ask(&keys, 90, 8)), (Ok(()), Ok(())));
        refused(&keys, 91, 8, "begins in 7862400 seconds");
        refused(&keys, 0, 9, "more than 691200");
        assert_eq!(ask(&www(), 0, 30), Ok(()));
        refused(&www(), 1, 8, "begins in 86400 seconds");
        refused(&www(), 0, 31, "more than 2592000");
    }

    #[test]
    fn keys_are_those_that_were_agreed_on() {
        let key = [&[1, 1, 3, 15], &KEY[..]].concat();
        assert_eq!(ask(&set("example", rtype::DNSKEY, &[&key])), Ok(()));
        let other = [&[1, 0, 3, 15], &[8; 32][..]].concat();
        refused(&set("example", rtype::DNSKEY, &[&key, &other]), "none of those that the operators have agreed on");
        refused(&set("www.example", rtype::DNSKEY, &[&key]), "keys are at example.");
        refused(&set("example", rtype::CDS, &[&[0, 0, 0, 0, 0]]), "none of those");
    }

    #[test]
    fn the_start_of_authority_may_count_on_and_nothing_else() {
        let start = |serial: u32, minimum: u32| {
            let names = [owner("ns.example").wire(), owner("admin.example").wire()].concat();
            let numbers = [serial, 3_600, 60, 86_400, minimum].map(u32::to_be_bytes).concat();
            set("example", rtype::SOA, &[&[names, numbers].concat()])
        };
        assert_eq!((ask(&start(10, 60)), ask(&start(4_000, 60))), (Ok(()), Ok(())));
        refused(&start(9, 60), "another one here, or newer");
        refused(&start(10, 61), "another one here");
    }

    /// Names that do not exist are denied by what is between two that do.
    #[test]
    fn the_chain_is_that_of_the_copy() {
        let map = |types: &[u16]| {
            let mut map = [0; 8];
            types.iter().for_each(|kind| map[usize::from(kind / 8)] |= 0x80 >> (kind % 8));
            [&[0, 8], &map[..]].concat()
        };
        let link = |name: &str, next: &str, types: &[u16]| SignedSet {
            ttl: 60,
            ..set(name, rtype::NSEC, &[&[owner(next).wire(), map(types)].concat()])
        };
        let www = [1, rtype::RRSIG, rtype::NSEC];
        assert_eq!(ask(&link("www.example", "z.example", &www)), Ok(()));
        assert_eq!(
            ask(&link("z.example", "example", &[28, rtype::RRSIG, rtype::NSEC])),
            Ok(()),
            "the last is before the first"
        );
        let apex = [rtype::NS, rtype::SOA, rtype::RRSIG, rtype::NSEC, rtype::DNSKEY];
        assert_eq!(ask(&link("example", "ns.example", &apex)), Ok(()));
        assert_eq!(ask(&link("example", "ns.example", &[&apex[..], &[rtype::CDS, rtype::CDNSKEY]].concat())), Ok(()));
        // What is delegated is passed over, and its name says so.
        let sub = [rtype::NS, rtype::DS, rtype::RRSIG, rtype::NSEC];
        assert_eq!(ask(&link("sub.example", "*.wild.example", &sub)), Ok(()));
        let unlike = "does not say what is in the zone";
        refused(&link("ns.example", "www.example", &www), unlike);
        refused(&link("www.example", "z.example", &[rtype::RRSIG, rtype::NSEC]), unlike);
        refused(&link("www.example", "example", &www), unlike);
        refused(&link("ns.sub.example", "www.example", &www), "there is no ns.sub.example.");
        refused(&set("example", rtype::NSEC3PARAM, &[&[1, 0, 0, 0, 0]]), "agreed on NSEC, and not on NSEC3");
    }

    /// What a signer adds has the times to live that follow from the SOA record, or that the operators have said.
    #[test]
    fn what_a_signer_adds_lives_as_long_as_the_zone_says() {
        let data = [owner("z.example").wire(), bitmap::write(&[1, rtype::RRSIG, rtype::NSEC].into())].concat();
        let link = |ttl| SignedSet { ttl, ..set("www.example", rtype::NSEC, &[&data]) };
        assert_eq!(ask(&link(60)), Ok(()));
        refused(&link(300), "www.example. NSEC has a time to live of 300 here, and of 60 in the zone");
        refused(&link(86_400), "a time to live of 86400 here");
        let key = [&[1, 1, 3, 15], &KEY[..]].concat();
        let keys_of = |kind, ttl| SignedSet { ttl, ..set("example", kind, &[&key]) };
        for (kind, good, bad) in [(rtype::DNSKEY, [300, 3_600], 0), (rtype::CDNSKEY, [0, 3_600], 60)] {
            good.iter().for_each(|ttl| assert_eq!(ask(&keys_of(kind, *ttl)), Ok(()), "{kind} {ttl}"));
            refused(&keys_of(kind, bad), &format!("has a time to live of {bad} here"));
            refused(&keys_of(kind, 604_800), "a time to live of 604800 here");
        }
        let own = Terms { key_ttls: vec![604_800], ..TERMS };
        let week = keys_of(rtype::DNSKEY, 604_800).write();
        assert_eq!(consent(&week, &zone(), &Denial::Names, &keys(), &own, NOW), Ok(()));
        let names = [owner("ns.example").wire(), owner("admin.example").wire()].concat();
        let numbers = [10_u32, 3_600, 60, 86_400, 60].map(u32::to_be_bytes).concat();
        let start = set("example", rtype::SOA, &[&[names, numbers].concat()]);
        assert_eq!(ask(&start), Ok(()));
        refused(
            &SignedSet { ttl: 301, ..start },
            "example. SOA has a time to live of 301 here, and of 300 in the zone",
        );
    }

    #[test]
    fn what_is_no_zone_is_explained() {
        for (text, origin, words) in [
            (ZONE, "exam..ple", "is not the name of a zone"),
            ("www A 192.0.2.1\n", "example.", "has no SOA record"),
            ("www.other. 60 IN A 192.0.2.1\n", "example.", "is not in the zone"),
            ("@ 60 IN SOA ns\n", "example.", "cannot be read"),
            ("$INCLUDE other\n", "example.", "$INCLUDE is not followed"),
        ] {
            let said = Zone::parse(text.as_bytes(), origin).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
    }
}

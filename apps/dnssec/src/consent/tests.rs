use aws_lc_rs::signature::{ED25519 as ALGORITHM, UnparsedPublicKey};
use base64ct::{Base64, Encoding as _};

use super::*;
use crate::{denial::bitmap, owner::Owner};

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

/// BIND has notes in the zone of how far it is with each key; that the top has such is in its denial.
#[test]
fn notes_about_signing_say_nothing_else() {
    let [(one, _), (two, _)] = keys().signers()[..] else { panic!("a key without a role has two tags") };
    let note = |signer: Signer, rest: &[u8]| [&[15], &signer.tag.to_be_bytes()[..], rest].concat();
    let notes = |name: &str, ttl: u32, data: &[&[u8]]| SignedSet { ttl, ..set(name, rtype::SIGNING, data) };
    for rest in [[0, 0], [0, 1], [1, 0], [1, 1]] {
        assert_eq!(ask(&notes("example", 0, &[&note(one, &rest)])), Ok(()));
    }
    assert_eq!(ask(&notes("example", 0, &[&note(one, &[0, 1]), &note(two, &[0, 0])])), Ok(()));
    for data in [&note(one, &[0, 2])[..], &note(one, &[0]), &note(one, &[0, 1, 0]), &[15, 0, 7, 0, 1], b"any text"] {
        refused(&notes("example", 0, &[&note(one, &[0, 1]), data]), "is no note about signing with one of the keys");
    }
    refused(&notes("example", 60, &[&note(one, &[0, 1])]), "has a time to live of 60");
    refused(&notes("www.example", 0, &[&note(one, &[0, 1])]), "there is no www.example. TYPE65534 in the zone");
    let before = consent_to_previous(
        &notes("example", 0, &[&note(one, &[0, 1])]).write(),
        &zone(),
        &Denial::Names,
        &keys(),
        &TERMS,
        NOW,
    );
    assert_eq!(before, None, "nobody takes them away");
    let link = |types: &[u16]| {
        let data = [owner("ns.example").wire(), bitmap::write(&types.iter().copied().collect())].concat();
        SignedSet { ttl: 60, ..set("example", rtype::NSEC, &[&data]) }
    };
    let top = [rtype::NS, rtype::SOA, rtype::RRSIG, rtype::NSEC, rtype::DNSKEY];
    assert_eq!((ask(&link(&top)), ask(&link(&[&top[..], &[rtype::SIGNING]].concat()))), (Ok(()), Ok(())));
    // On its way to the right record BIND has one signed that denies everything after a new name.
    let way = SignedSet { ttl: 60, ..set("ns.example", rtype::NSEC, &[&[0]]) };
    refused(&way, "sub.example. and A RRSIG NSEC there, . and here; if that was BIND, it has such a record signed");
}

/// Other records of that type, which operators may have at any name, are records like any others.
#[test]
fn records_for_private_use_are_those_of_the_copy() {
    let text = ZONE.to_owned() + "x TYPE65534 \\# 1 00\n@ TYPE65534 \\# 1 00\n";
    let zone = Zone::parse(text.as_bytes(), "example.").unwrap();
    let ask = |set: &SignedSet| consent(&set.write(), &zone, &Denial::Names, &keys(), &TERMS, NOW);
    assert_eq!(ask(&set("x.example", rtype::SIGNING, &[&[0]])), Ok(()));
    assert!(ask(&set("x.example", rtype::SIGNING, &[&[1]])).is_err());
    assert!(ask(&SignedSet { ttl: 0, ..set("example", rtype::SIGNING, &[&[0]]) }).is_err(), "there it is the signer's");
    let link = |name: &str, next: &str, types: &[u16]| {
        let data = [owner(next).wire(), bitmap::write(&types.iter().copied().collect())].concat();
        ask(&SignedSet { ttl: 60, ..set(name, rtype::NSEC, &[&data]) })
    };
    let denial = [rtype::RRSIG, rtype::NSEC];
    assert_eq!(link("x.example", "z.example", &[&denial[..], &[rtype::SIGNING]].concat()), Ok(()));
    assert!(link("x.example", "z.example", &denial).is_err(), "the type is there");
    assert_eq!(link("www.example", "x.example", &[&denial[..], &[1]].concat()), Ok(()));
    assert!(link("www.example", "z.example", &[&denial[..], &[1]].concat()).is_err(), "the name is there");
}

/// Nodes take no long objections, and call an agent silent that has one.
#[test]
fn objections_are_short() {
    let every: std::collections::BTreeSet<u16> = (0..=u16::MAX).collect();
    let data = [owner("z.example").wire(), bitmap::write(&every)].concat();
    let said = ask(&SignedSet { ttl: 60, ..set("www.example", rtype::NSEC, &[&data]) }).unwrap_err();
    assert!(said.len() < 500, "{}", said.len());
    assert!(
        said.contains("z.example. and A RRSIG NSEC there, z.example. and")
            && said.contains("and 65526 other types here"),
        "{said}"
    );
    let long = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(40), "example".to_owned()].join(".");
    let data = owner(&long).wire();
    let said = ask(&set("www.example", rtype::NSEC, &[&data])).unwrap_err();
    assert!(said.len() < 1_100, "{}", said.len());
    assert_eq!(shortened("ä".repeat(2_000)).len(), 1_004);
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
        let length = map.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        [&[0, u8::try_from(length).unwrap()], &map[..length]].concat()
    };
    let link = |name: &str, next: &str, types: &[u16]| SignedSet {
        ttl: 60,
        ..set(name, rtype::NSEC, &[&[owner(next).wire(), map(types)].concat()])
    };
    let www = [1, rtype::RRSIG, rtype::NSEC];
    // The same types, in two windows with one number: resolvers that look at the first alone find that there is no address.
    let twice = [owner("z.example").wire(), map(&www[1..]), map(&www[..1])].concat();
    let twice = SignedSet { ttl: 60, ..set("www.example", rtype::NSEC, &[&twice]) };
    refused(&twice, "does not say what is in the zone");
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
    refused(&SignedSet { ttl: 301, ..start }, "example. SOA has a time to live of 301 here, and of 300 in the zone");
}

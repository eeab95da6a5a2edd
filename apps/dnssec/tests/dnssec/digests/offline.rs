//! A key of the keys that is kept offline signs ahead: the times of what it signs follow from what it is asked for.

use std::fmt::Write as _;

use base64ct::{Base64, Encoding as _};
use sha2::{Digest as _, Sha256};
use theta_dnssec::{consent::Terms, digests::Guesses, signed::SignedSet};

use crate::zones::{KEYS, NOW, Operator, ZONE, record, signed, start, tag, www};

const DNSKEY: u16 = 48;
const CDS: u16 = 59;
const CDNSKEY: u16 = 60;
const DAY: u64 = 86_400;
const ASKED: &str = "no record set of the zone has this digest with times of now, or of the key signing request";

/// The first key signs keys; the zone is signed by the second, and by the third from the thirtieth day on.
const ZONE_KEYS: [[u8; 64]; 2] = [KEYS[1], [9; 64]];

fn key(role: &str, key: &[u8; 64]) -> String {
    format!("{role} 257 3 13 {}\n", Base64::encode_string(key))
}

/// As Knot prints it.
fn request() -> String {
    let line = |key: &[u8; 64]| format!("example. 300 DNSKEY 256 3 13 {}\n", Base64::encode_string(key));
    let header = |time: u64| format!(";; KeySigningRequest 1.0 {time} (as people read it) =========\n");
    let [one, two] = ZONE_KEYS.map(|key| line(&key));
    let ends = ";; KeySigningRequest 1.0 generated at some time by Knot DNS 3.2.6\n";
    [header(NOW + DAY), one.clone(), header(NOW + 30 * DAY), one, two.clone(), header(NOW + 90 * DAY), two, ends.into()]
        .concat()
}

fn terms() -> Terms {
    Terms { ahead_of_keys: 100 * 86_400, ..Terms::lasting(35 * 86_400) }
}

fn operator() -> Operator {
    let keys = key("ksk", &KEYS[0]) + &ZONE_KEYS.map(|one| key("zsk", &one)).concat();
    operator_of(ZONE, &keys)
}

fn operator_of(zone: &str, keys: &str) -> Operator {
    let guesses = Guesses { ahead: 100 * 86_400 + 3_600, ..Guesses::of_days(&[14]) };
    let mut operator = Operator::of(zone, "example.", keys, guesses);
    operator.request(&request(), terms());
    operator
}

/// Signed with the first key at this time, as Knot does.
fn of_keys(time: u64, rtype: u16, ttl: u32, data: &[&[u8]]) -> SignedSet {
    SignedSet { ttl, tag: tag(&record(257, &KEYS[0])), ..signed(time, "example", rtype, data) }
}

fn keys_at(time: u64, zone_keys: &[[u8; 64]]) -> SignedSet {
    let zone_keys = zone_keys.iter().map(|key| record(256, key));
    let data: Vec<Vec<u8>> = zone_keys.chain([record(257, &KEYS[0])]).collect();
    of_keys(time, DNSKEY, 300, &data.iter().map(|data| &data[..]).collect::<Vec<_>>())
}

#[test]
fn what_is_signed_ahead_is_recognised_at_the_times_of_the_request() {
    let [one, two] = ZONE_KEYS;
    let entry = record(257, &KEYS[0]);
    let digest = Sha256::digest([&b"\x07example\0"[..], &entry].concat());
    let cds = [&tag(&entry).to_be_bytes()[..], &[13, 2], &digest].concat();
    let all = operator();
    for (time, keys) in [
        (NOW + DAY, &[one][..]),
        // 14 days less seven, after which the next one is made; then a change of keys cuts that short.
        (NOW + 8 * DAY, &[one]),
        (NOW + 15 * DAY, &[one]),
        (NOW + 22 * DAY, &[one]),
        (NOW + 30 * DAY, &[one, two]),
        (NOW + 37 * DAY + 3_600, &[one, two]),
        (NOW + 90 * DAY, &[two]),
    ] {
        // The set of all keys first, as Knot and BIND do it.
        for set in [keys_at(time, keys), of_keys(time, CDNSKEY, 0, &[&entry]), of_keys(time, CDS, 0, &[&cds])] {
            all.knows(&set, NOW);
        }
        operator().knows(&keys_at(time, keys), NOW);
        // As BIND has its times.
        let set = keys_at(time, keys);
        operator().knows(&SignedSet { inception: set.inception + 1_800, ..set }, NOW);
    }
    // A time ahead is no event of the zone.
    all.refuses_as(&www(NOW + DAY), NOW, ASKED);
    all.refuses_as(&start(NOW + DAY, 11), NOW, ASKED);
}

#[test]
fn nothing_else_is_recognised_ahead() {
    let [one, two] = ZONE_KEYS;
    let operator = operator();
    for set in [
        // Not yet, not any more, and not on the hour.
        keys_at(NOW + DAY, &[two]),
        keys_at(NOW + DAY, &[one, two]),
        keys_at(NOW + 31 * DAY, &[one]),
        keys_at(NOW + 8 * DAY + 1, &[one]),
        keys_at(NOW + 91 * DAY, &[two]),
        // Records of the zone have times of now alone, and so has what the zone's keys sign.
        www(NOW + DAY),
        SignedSet { tag: tag(&record(256, &one)), ..keys_at(NOW + DAY, &[one]) },
    ] {
        operator.refuses_as(&set, NOW, ASKED);
    }
    // Keys of now are recognised as always.
    operator.knows(&keys_at(NOW, &[one]), NOW);
    // What is recognised is still decided about.
    let mut strict = self::operator();
    strict.request(&request(), Terms { ahead_of_keys: 20 * 86_400, ..terms() });
    let words = strict.ask(&Sha256::digest(keys_at(NOW + 30 * DAY, &[one, two]).write()), NOW).unwrap_err();
    assert!(words.contains("the signature begins in 2586600 seconds"), "{words}");
    let mut foreign = self::operator();
    let other = request().replace(&Base64::encode_string(&two), &Base64::encode_string(&[5; 64]));
    foreign.request(&other, terms());
    let words = foreign.ask(&Sha256::digest(keys_at(NOW + 90 * DAY, &[[5; 64]]).write()), NOW).unwrap_err();
    assert!(words.contains("one of the keys is none of those that the operators have agreed on"), "{words}");
}

/// Two years, with a change of keys each month, and two keys of the keys.
#[test]
fn a_long_request_takes_few_hashes() {
    let line = format!("example. 300 DNSKEY 256 3 13 {}\n", Base64::encode_string(&KEYS[1]));
    let months: String =
        (0..24).map(|month| format!(";; KeySigningRequest 1.0 {}\n{line}", NOW + month * 30 * DAY)).collect();
    let months = months + ";; KeySigningRequest 1.0 generated\n";
    let keys = key("ksk", &KEYS[0]) + &key("ksk", &[5; 64]) + &key("zsk", &KEYS[1]);
    let guesses = || Guesses { ahead: 800 * 86_400, ..Guesses::of_days(&[14]) };
    let operator = || {
        let mut operator = Operator::of(ZONE, "example.", &keys, guesses());
        operator.request(&months, Terms { ahead_of_keys: 800 * 86_400, ..terms() });
        operator
    };
    let far = operator();
    let cost = far.cost(&keys_at(NOW + 680 * DAY, &[KEYS[1]]), NOW);
    println!("{cost} blocks for a time of the last month but one");
    assert!(cost < 3_000_000, "{cost}");
    assert!(operator().cost(&keys_at(NOW + 690 * DAY, &[KEYS[1]]), NOW) < 5_000, "one of the request itself");
    // What nobody would consent to is not looked for: what has ended, and what begins too far from now.
    let late = NOW + 900 * DAY;
    let nothing = Sha256::digest(b"nothing");
    let plain = || Operator::of(ZONE, "example.", &keys, guesses());
    let cost = |operator: Operator, now: u64| {
        let before = operator.recogniser.hashed();
        operator.ask(&nothing, now).unwrap_err();
        operator.recogniser.hashed() - before
    };
    assert_eq!(cost(operator(), late), cost(plain(), late));
    assert_eq!(cost(operator(), NOW - 900 * DAY), cost(plain(), NOW - 900 * DAY));
    assert!(cost(operator(), NOW) > cost(plain(), NOW) + 1_000_000);
}

/// A large zone beside it: what an offline key signs takes no table of it, and what is signed now stays known.
#[test]
fn what_is_signed_ahead_leaves_events_alone() {
    let mut text = ZONE.to_owned();
    (0..5_000).for_each(|name| writeln!(text, "host-{name} A 192.0.2.1").unwrap());
    let months: String = (30..54_u8).map(|byte| key("zsk", &[byte; 64])).collect();
    let operator =
        operator_of(&text, &(key("ksk", &KEYS[0]) + &ZONE_KEYS.map(|one| key("zsk", &one)).concat() + &months));
    operator.knows(&www(NOW), NOW);
    let [one, two] = ZONE_KEYS;
    for (time, keys) in [(8, &[one][..]), (15, &[one]), (22, &[one]), (37, &[one, two]), (44, &[one, two])] {
        let cost = operator.cost(&keys_at(NOW + time * DAY, keys), NOW + 30);
        assert!(cost < 8_000_000, "{time}: {cost}");
    }
    let host = signed(NOW, "host-77.example", 1, &[&[192, 0, 2, 1]]);
    assert_eq!(operator.cost(&host, NOW + 30), 0, "it is in the table of the event");
}

/// With keys of Ed25519 nothing is looked for.
#[test]
fn an_offline_key_of_ed25519_costs_no_hashes() {
    let keys = format!("ksk {}\n", hex::encode([7; 32])) + &key("zsk", &KEYS[1]);
    let (asked, plain) = (operator_of(ZONE, &keys), Operator::of(ZONE, "example.", &keys, Guesses::of_days(&[14])));
    for operator in [&asked, &plain] {
        operator.ask(&[9; 32], NOW).unwrap_err();
    }
    assert_eq!(asked.recogniser.hashed(), plain.recogniser.hashed());
}

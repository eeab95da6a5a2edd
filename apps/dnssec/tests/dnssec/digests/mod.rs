//! Which digests are recognised, and what it takes.

mod look_ahead;
mod offline;

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use theta_dnssec::{digests::Guesses, signed::SignedSet};

use crate::zones::{KEYS, NONE, NOW, Operator, ZONE, link, owner, record, signed, start, tag, www};

const RRSIG: u16 = 46;
const NSEC: u16 = 47;
const DNSKEY: u16 = 48;
const CDS: u16 = 59;
const CDNSKEY: u16 = 60;

/// Signed with the first key, as the one that signs keys.
fn of_keys(rtype: u16, ttl: u32, data: &[&[u8]]) -> SignedSet {
    SignedSet { ttl, tag: tag(&record(257, &KEYS[0])), ..signed(NOW, "example", rtype, data) }
}

/// Each with nothing remembered, and all in one event.
#[test]
fn sets_of_all_kinds_are_recognised() {
    let [entry, zone] = [record(257, &KEYS[0]), record(256, &KEYS[1])];
    let digest = Sha256::digest([&b"\x07example\0"[..], &entry].concat());
    let cds = [&tag(&entry).to_be_bytes()[..], &[13, 2], &digest].concat();
    let apex = [2, 6, RRSIG, NSEC, DNSKEY];
    let sets = [
        www(NOW),
        signed(NOW, "*.wild.example", 16, &[b"\x03any"]),
        signed(NOW, "sub.example", 43, &[&[0, 1, 15, 2, 0xaa]]),
        signed(NOW, "example", 2, &[&owner("ns.example").wire()]),
        link(NOW, "www.example", "z.example", &[1, RRSIG, NSEC]),
        link(NOW, "z.example", "example", &[28, RRSIG, NSEC]),
        link(NOW, "sub.example", "*.wild.example", &[2, 43, RRSIG, NSEC]),
        link(NOW, "example", "ns.example", &apex),
        link(NOW, "example", "ns.example", &[&apex[..], &[CDS, CDNSKEY]].concat()),
        start(NOW, 10),
        start(NOW, 11),
        start(NOW, u32::try_from(NOW + 1).unwrap()),
        of_keys(DNSKEY, 300, &[&entry, &zone]),
        of_keys(DNSKEY, 3_600, &[&entry]),
        of_keys(CDNSKEY, 0, &[&entry]),
        of_keys(CDS, 0, &[&cds]),
    ];
    let all = Operator::new();
    for set in &sets {
        Operator::new().knows(set, NOW + 1);
        all.knows(set, NOW + 1);
        // The other key with other flags, and an event of another time.
        let other = SignedSet {
            tag: tag(&record(257, &KEYS[1])),
            expiration: set.expiration - 9,
            inception: set.inception - 9,
            ..set.clone()
        };
        all.knows(&other, NOW + 1);
    }
}

/// What is not in the copy has no digest that the copy has; nor has what is, with other times, keys or names.
#[test]
fn nothing_else_is_recognised() {
    let guesses = Guesses { most_blocks: u64::MAX / 100, ..Guesses::of_days(&[14]) };
    let operator = Operator::with(guesses);
    operator.knows(&www(NOW), NOW);
    let key = record(257, &KEYS[0]);
    for set in [
        signed(NOW, "victim.example", 1, &[&[192, 0, 2, 66]]),
        signed(NOW, "www.example", 1, &[&[192, 0, 2, 1]]),
        signed(NOW, "ns.sub.example", 1, &[&[192, 0, 2, 9]]),
        signed(NOW, "sub.example", 2, &[&owner("ns.sub.example").wire()]),
        link(NOW, "www.example", "example", &[1, RRSIG, NSEC]),
        link(NOW, "sub.example", "ns.sub.example", &[2, 43, RRSIG, NSEC]),
        start(NOW, 9),
        start(NOW, 10 + 4_097),
        of_keys(DNSKEY, 300, &[&key, &record(256, &[9; 64])]),
        SignedSet { ttl: 60, ..www(NOW) },
        SignedSet { tag: 1, ..www(NOW) },
        SignedSet { algorithm: 8, ..www(NOW) },
        SignedSet { signer: owner("other"), ..www(NOW) },
        SignedSet { expiration: www(NOW).expiration + 86_400, ..www(NOW) },
        SignedSet { inception: www(NOW).inception - 1, ..www(NOW) },
        www(NOW - 61),
        www(NOW + 6),
    ] {
        operator.refuses(&set, NOW);
    }
    let words = operator.ask(&[0; 48], NOW).unwrap_err();
    assert_eq!(words, "a digest of SHA-256 has 32 bytes, and this has 48");
    let ed25519 = Operator::of(ZONE, "example.", &hex::encode([7; 32]), Guesses::of_days(&[14]));
    let words = ed25519.ask(&Sha256::digest(www(NOW).write()), NOW).unwrap_err();
    assert!(words.contains("no key of this zone signs digests"), "{words}");
}

/// Times that are recognised have to fit the operator's terms all the same.
#[test]
fn the_rule_for_bytes_decides_about_digests() {
    let operator = Operator::with(Guesses::of_days(&[14, 60]));
    let set = SignedSet { expiration: u32::try_from(NOW + 60 * 86_400).unwrap(), ..www(NOW) };
    let words = operator.ask(&Sha256::digest(set.write()), NOW).unwrap_err();
    assert!(words.contains("the signature would be valid for 5189400 seconds"), "{words}");
}

/// Signers count on over years; what is known of an event reaches farther.
#[test]
fn serials_count_on() {
    let operator = Operator::new();
    operator.refuses(&start(NOW, 4_000), NOW);
    operator.knows(&www(NOW - 1), NOW);
    operator.knows(&start(NOW - 1, 4_000), NOW);
    operator.knows(&start(NOW - 1, 8_000), NOW);
    operator.knows(&start(NOW + 100, 8_001), NOW + 100);
    operator.refuses(&start(NOW + 100, 3_000_000), NOW + 100);
}

/// A zone of a thousand names: the first set of an event is searched for, the others are looked up.
#[test]
fn the_rest_of_an_event_costs_nothing() {
    let mut text = ZONE.to_owned();
    (0..1_000).for_each(|name| writeln!(text, "host-{name} A 192.0.2.{}", name % 256).unwrap());
    let host = |time, name: u32| {
        let address = u8::try_from(name % 256).unwrap();
        signed(time, &format!("host-{name}.example"), 1, &[&[192, 0, 2, address]])
    };
    let mut operator = Operator::new();
    operator.change(&text);
    let began = std::time::Instant::now();
    let first = operator.cost(&host(NOW - 2, 999), NOW);
    println!("{} sets and signers; the first digest: {first} blocks, {:?}", operator.size(), began.elapsed());
    assert!(first > 1_000, "it was searched for");
    assert!(first < 20 * 4 * operator.size(), "in events of the nearest seconds: {first}");
    let began = std::time::Instant::now();
    let rest: u64 = (0..1_000).map(|name| operator.cost(&host(NOW - 2, name), NOW + 30)).sum();
    println!("1000 more: {rest} blocks, {:?}", began.elapsed());
    assert_eq!(rest, 0);
    // The key that signs keys is another one.
    let keys =
        SignedSet { tag: tag(&record(257, &KEYS[0])), ..signed(NOW - 2, "example", DNSKEY, &[&record(257, &KEYS[0])]) };
    assert!(operator.cost(&keys, NOW) < 10 * operator.size());
    assert_eq!(operator.cost(&keys, NOW), 0);
    // The next event has its times in the same way.
    let next = operator.cost(&host(NOW + 3_600, 5), NOW + 3_600);
    println!("the next event: {next} blocks");
    assert!(next < first, "{next} {first}");
    assert_eq!(operator.cost(&host(NOW + 3_600, 6), NOW + 3_600), 0);
    let began = std::time::Instant::now();
    let before = operator.recogniser.hashed();
    operator.ask(&[0; 32], NOW + 3_600).unwrap_err();
    println!("a digest of nothing: {} blocks, {:?}", operator.recogniser.hashed() - before, began.elapsed());
}

/// A name server that was taken over makes the agent hash only so much.
#[test]
fn searches_are_bounded() {
    let most_blocks = 20_000;
    let operator = Operator::with(Guesses { most_blocks, ..Guesses::of_days(&[14]) });
    let foreign = |number: u64| Sha256::digest(number.to_be_bytes());
    let words = operator.ask(&foreign(0), NOW).unwrap_err();
    assert_eq!(words, format!("{NONE}, as far as 0 million hashes go (--most-hashes)"));
    let once = operator.recogniser.hashed();
    assert!((most_blocks / 2..=most_blocks).contains(&once), "{once}");
    operator.ask(&foreign(0), NOW + 1).unwrap_err();
    assert_eq!(operator.recogniser.hashed(), once, "it is known to be none");
    (1..100).for_each(|number| {
        operator.ask(&foreign(number), NOW).unwrap_err();
    });
    let all = operator.recogniser.hashed();
    assert!(all <= 4 * most_blocks, "{all}");
    let words = operator.ask(&foreign(100), NOW).unwrap_err();
    assert!(words.contains("too many digests of no record set"), "{words}");
    // A minute later, one more.
    operator.ask(&foreign(101), NOW + 60).unwrap_err();
    let more = operator.recogniser.hashed() - all;
    assert!((1..=most_blocks + 60).contains(&more), "{more}");
}

/// One client, whose name server was taken over, uses up its own searches, and nobody else's.
#[test]
fn what_one_client_uses_up_others_have() {
    let operator = Operator::with(Guesses { most_blocks: 300_000, ..Guesses::of_days(&[14]) });
    let mut said: Vec<_> =
        (0_u64..100).map(|number| operator.ask_as("a", &Sha256::digest(number.to_be_bytes()), NOW)).collect();
    let last = said.pop().unwrap().unwrap_err();
    assert!(last.contains("too many digests of no record set"), "{last}");
    let event = www(NOW).write();
    assert_eq!(operator.ask_as("b", &Sha256::digest(&event), NOW), Ok(event));
    // What is none is so for the one who asked: it may be of the next second.
    let hashed = operator.recogniser.hashed();
    operator.ask_as("b", &Sha256::digest(0_u64.to_be_bytes()), NOW).unwrap_err();
    assert!(operator.recogniser.hashed() > hashed);
}

/// Whoever knows the zone can ask for its sets at every time that may be now: each is recognised, but not all at once.
#[test]
fn events_are_bounded() {
    let most_blocks = 300_000;
    let guesses = || Guesses { most_blocks, ..Guesses::of_days(&[14]) };
    let ask = |operator: &Operator, now: u64| -> Vec<Result<_, String>> {
        let digests = (0..60).map(|ago| Sha256::digest(www(now - ago).write()));
        digests.map(|digest| operator.ask(&digest, now)).collect()
    };
    let operator = Operator::with(guesses());
    let words = (0..100).flat_map(|turn| ask(&operator, NOW + turn / 50)).find_map(Result::err).unwrap();
    assert_eq!(words, "too many digests of different times: for a second this agent looks for no more");
    // One event each second is nobody's attack.
    let operator = Operator::with(guesses());
    for second in 0..200 {
        operator.knows(&www(NOW + second), NOW + second);
        operator.knows(&link(NOW + second, "www.example", "z.example", &[1, RRSIG, NSEC]), NOW + second);
    }
}

/// Events that are under way go on while nothing is searched for.
#[test]
fn what_is_known_is_answered_whatever_others_ask() {
    let operator = Operator::with(Guesses { most_blocks: 2_000_000, ..Guesses::of_days(&[14]) });
    operator.knows(&www(NOW), NOW);
    for number in 0_u64..100 {
        operator.ask(&Sha256::digest(number.to_be_bytes()), NOW).unwrap_err();
    }
    operator.knows(&link(NOW, "www.example", "z.example", &[1, RRSIG, NSEC]), NOW);
}

/// A change of the copy makes what was none a set, and what was one none.
#[test]
fn changes_of_the_copy_are_changes_of_the_answer() {
    let mut operator = Operator::new();
    let mail = signed(NOW, "mail.example", 1, &[&[192, 0, 2, 7]]);
    operator.knows(&www(NOW), NOW);
    operator.refuses(&mail, NOW);
    operator.change(&format!("{}mail A 192.0.2.7\n", ZONE.replace("www A 192.0.2.2\n", "")));
    operator.knows(&mail, NOW);
    operator.refuses(&www(NOW), NOW);
}

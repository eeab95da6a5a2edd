//! NSEC3, by the example of RFC 5155: the zone of its appendix A, without the delegation that it leaves out of the ring by opt-out, and names of
//! appendix B that are not there.

use theta_dnssec::{
    denial::{
        Added, Denial,
        hashed::{Parameters, label},
    },
    digests::Guesses,
    signed::SignedSet,
    zone::Zone,
};

use crate::zones::{NONE, NOW, Operator, key_lines, map, owner, signed};

const ZONE: &str = "$ORIGIN example.\n$TTL 3600\n@ SOA ns1 bugs.x.w 1 3600 300 3600000 3600\n@ NS ns1\n@ NS ns2\n@ MX 1 xx\n\
    2t7b4g4vsa5smi47k61mv5bv1a22bojr A 192.0.2.127\n\
    a NS ns1.a\na NS ns2.a\na DS 58470 5 1 3079F1593EBAD6DC121E202A8B766A6A4837206C\nns1.a A 192.0.2.5\nns2.a A 192.0.2.6\n\
    ai A 192.0.2.9\nai HINFO \"KLH-10\" \"ITS\"\nai AAAA 2001:db8:0:0:0:0:f00:baa9\nns1 A 192.0.2.1\nns2 A 192.0.2.2\n\
    *.w MX 1 ai\nx.w MX 1 xx\nx.y.w MX 1 xx\n\
    xx A 192.0.2.10\nxx HINFO \"KLH-10\" \"TOPS-20\"\nxx AAAA 2001:db8:0:0:0:0:f00:baaa\n";
/// The delegation that was left out.
const DELEGATION: &str = "c NS ns1.c\nc NS ns2.c\nns1.c A 192.0.2.7\nns2.c A 192.0.2.8\n";

const A: u16 = 1;
const NS: u16 = 2;
const SOA: u16 = 6;
const HINFO: u16 = 13;
const MX: u16 = 15;
const AAAA: u16 = 28;
const DS: u16 = 43;
const RRSIG: u16 = 46;
const DNSKEY: u16 = 48;
const NSEC3: u16 = 50;
const NSEC3PARAM: u16 = 51;
const CDS: u16 = 59;

/// SHA-1, no flags, 12 iterations, the salt.
const HEAD: [u8; 9] = [1, 0, 0, 12, 4, 0xaa, 0xbb, 0xcc, 0xdd];

/// The ring: names, their hashes in their order, and the types at them.
static RING: [(&str, &str, &[u16]); 12] = [
    ("example", "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom", &[NS, SOA, MX, RRSIG, DNSKEY, NSEC3PARAM]),
    ("ns1.example", "2t7b4g4vsa5smi47k61mv5bv1a22bojr", &[A, RRSIG]),
    ("x.y.w.example", "2vptu5timamqttgl4luu9kg21e0aor3s", &[MX, RRSIG]),
    ("a.example", "35mthgpgcu1qg68fab165klnsnk3dpvl", &[NS, DS, RRSIG]),
    ("x.w.example", "b4um86eghhds6nea196smvmlo4ors995", &[MX, RRSIG]),
    ("ai.example", "gjeqe526plbf1g8mklp59enfd789njgi", &[A, HINFO, AAAA, RRSIG]),
    ("y.w.example", "ji6neoaepv8b5o6k4ev33abha8ht9fgc", &[]),
    ("w.example", "k8udemvp1j2f7eg6jebps17vp3n8i58h", &[]),
    ("2t7b4g4vsa5smi47k61mv5bv1a22bojr.example", "kohar7mbb8dc2ce8a9qvl8hon4k53uhi", &[A, RRSIG]),
    ("ns2.example", "q04jkcevqvmu85r014c7dkba38o0ji5r", &[A, RRSIG]),
    ("*.w.example", "r53bq7cc2uvmubfu5ocmm6pers9tk9en", &[MX, RRSIG]),
    ("xx.example", "t644ebqk9bibcna874givr6joj62mlhv", &[A, HINFO, AAAA, RRSIG]),
];

/// Names that are not in the zone, and their hashes: the next closer names and wildcards of appendices B.1, B.3 and B.4.
static ABSENT: [(&str, &str); 4] = [
    ("c.x.w.example", "0va5bpr2ou0vk0lbqeeljri88laipsfh"),
    ("*.x.w.example", "92pqneegtaue7pjatc3l3qnk738c6v5m"),
    ("c.example", "4g6p9u5gvfshp30pqecj98b3maqbn1ck"),
    ("z.w.example", "qlu7gtfaeh0ek0c05ksfhdpbcgglbe03"),
];

fn parameters() -> Parameters {
    "12,aabbccdd".parse().unwrap()
}

fn operator(zone: &str) -> Operator {
    Operator::with_denial((zone, "example."), Some(parameters()), &key_lines(), Guesses::of_days(&[14]))
}

/// The bytes of a hash, of five bits in each digit.
fn bytes_of(hash: &str) -> Vec<u8> {
    let bits: String = hash.chars().map(|digit| format!("{:05b}", digit.to_digit(32).unwrap())).collect();
    let byte = |bits: &[u8]| u8::from_str_radix(core::str::from_utf8(bits).unwrap(), 2).unwrap();
    bits.as_bytes().chunks(8).map(byte).collect()
}

/// The record of the ring at a hash, which begins with these parameters.
fn record(head: &[u8], hash: &str, next: &str, types: &[u16]) -> SignedSet {
    let data = [head, &[20], &bytes_of(next), &map(types)].concat();
    SignedSet { ttl: 3_600, ..signed(NOW, &format!("{hash}.example"), NSEC3, &[&data]) }
}

#[track_caller]
fn refused(operator: &Operator, set: &SignedSet, words: &str) {
    let said = operator.decide(&set.write(), NOW).unwrap_err();
    assert!(said.contains(words), "{said}\n{words}");
    operator.refuses(set, NOW);
}

#[test]
fn names_have_the_hashes_of_rfc_5155() {
    let all = RING.iter().map(|(name, hash, _)| (*name, *hash)).chain(ABSENT);
    for (name, hash) in all {
        let found = parameters().hash(&owner(name));
        assert_eq!(found[..], bytes_of(hash), "{name}");
        assert_eq!(label(&found), hash.as_bytes(), "{name}");
    }
    // Without a salt and iterations, as Knot and ldns-nsec3-hash have it.
    let found = Parameters::default().hash(&owner("www.example"));
    assert_eq!(label(&found), b"9kqnrpnekplbct2m3k9jh3cljviok2b5");
}

#[test]
fn the_ring_is_that_of_rfc_5155() {
    let operator = operator(ZONE);
    for ((_, hash, types), (_, next, _)) in RING.iter().zip(RING.iter().cycle().skip(1)) {
        let link = record(&HEAD, hash, next, types);
        assert_eq!(operator.decide(&link.write(), NOW), Ok(()), "{hash}");
        operator.knows(&link, NOW);
    }
    let top = RING[0];
    operator.knows(&record(&HEAD, top.1, RING[1].1, &[top.2, &[CDS, 60]].concat()), NOW);
    for ttl in [0, 3_600] {
        operator.knows(&SignedSet { ttl, ..signed(NOW, "example", NSEC3PARAM, &[&HEAD]) }, NOW);
    }
}

/// Its records are denials: resolvers keep them as long as the SOA record says (RFC 9077). The bytes are shown whole here.
#[test]
fn the_ring_lives_as_long_as_the_zone_says() {
    let operator = operator(ZONE);
    let link = record(&HEAD, RING[1].1, RING[2].1, RING[1].2);
    let top = signed(NOW, "example", NSEC3PARAM, &[&HEAD]);
    for (set, ttl) in [(&link, 0), (&link, 7_200), (&top, 300), (&top, 86_400)] {
        let set = SignedSet { ttl, ..set.clone() };
        refused(&operator, &set, &format!("has a time to live of {ttl} here"));
    }
}

/// A delegation without keys is in the ring, as nothing is left out of it, and nothing of it is signed.
#[test]
fn delegations_without_keys_are_in_the_ring() {
    let (before, own, after) = (RING[3], ABSENT[2].1, RING[4]);
    let with = operator(&format!("{ZONE}{DELEGATION}"));
    with.knows(&record(&HEAD, before.1, own, before.2), NOW);
    with.knows(&record(&HEAD, own, after.1, &[NS]), NOW);
    refused(&with, &record(&HEAD, before.1, after.1, before.2), "of a.example. does not say what is in the zone");
    refused(&with, &record(&HEAD, own, after.1, &[NS, RRSIG]), "of c.example. does not say what is in the zone");
    refused(&with, &record(&HEAD, own, after.1, &[NS, DS, RRSIG]), "does not say what is in the zone");
}

#[test]
fn other_rings_are_refused() {
    let operator = operator(ZONE);
    let (first, second, third) = (RING[1], RING[2], RING[3]);
    let with = |head: &[u8]| record(head, first.1, second.1, first.2);
    operator.knows(&with(&HEAD), NOW);
    for (head, words) in [
        (&[1, 1, 0, 12, 4, 0xaa, 0xbb, 0xcc, 0xdd][..], "opt-out: delegations could be added"),
        (&[1, 2, 0, 12, 4, 0xaa, 0xbb, 0xcc, 0xdd], "the hash function 1 and the flags 2"),
        (&[2, 0, 0, 12, 4, 0xaa, 0xbb, 0xcc, 0xdd], "the hash function 2 and the flags 0"),
        (
            &[1, 0, 0, 13, 4, 0xaa, 0xbb, 0xcc, 0xdd],
            "has 13 iterations and the salt aabbccdd, and the operators have agreed on 12 iterations and the salt aabbccdd",
        ),
        (&[1, 0, 0, 12, 4, 0xaa, 0xbb, 0xcc, 0xde], "has 12 iterations and the salt aabbccde"),
        (&[1, 0, 0, 12, 0], "has 12 iterations and no salt"),
    ] {
        refused(&operator, &with(head), words);
        let top = SignedSet { ttl: 0, ..signed(NOW, "example", NSEC3PARAM, &[head]) };
        refused(&operator, &top, words);
    }
    refused(&operator, &signed(NOW, "example", NSEC3PARAM, &[&HEAD[..4]]), "too short");
    refused(&operator, &signed(NOW, "ns1.example", NSEC3PARAM, &[&HEAD]), "no such NSEC3PARAM record at ns1.example.");
    refused(&operator, &signed(NOW, "example", NSEC3PARAM, &[&HEAD, &[1, 0, 0, 0, 0]]), "there are 2 records of NSEC3");

    let unlike = "the NSEC3 record of ns1.example. does not say what is in the zone";
    refused(&operator, &record(&HEAD, first.1, third.1, first.2), unlike);
    refused(&operator, &record(&HEAD, first.1, second.1, &[A, MX, RRSIG]), unlike);
    refused(&operator, &record(&HEAD, first.1, second.1, &[A]), unlike);
    for (_, hash) in ABSENT {
        refused(&operator, &record(&HEAD, hash, second.1, &[A, RRSIG]), "is the hash of no name in the zone");
    }
    let elsewhere = SignedSet { owner: owner(&format!("{}.w.example", first.1)), labels: 3, ..with(&HEAD) };
    refused(&operator, &elsewhere, "is the hash of no name in the zone");
    let nothing = SignedSet { owner: owner("ns1.example"), ..with(&HEAD) };
    refused(&operator, &nothing, "ns1.example. is the hash of no name in the zone");
}

/// A zone has the one or the other.
#[test]
fn operators_agree_on_nsec_or_nsec3() {
    let operator = operator(ZONE);
    let names = signed(NOW, "x.w.example", 47, &[&[owner("x.y.w.example").wire(), map(&[MX, RRSIG, 47])].concat()]);
    refused(&operator, &names, "agreed on NSEC3 with 12 iterations and the salt aabbccdd, and not on NSEC");
    let plain = Operator::of(ZONE, "example.", &key_lines(), Guesses::of_days(&[14]));
    plain.knows(&SignedSet { ttl: 3_600, ..names }, NOW);
    let hashes = record(&HEAD, RING[1].1, RING[2].1, RING[1].2);
    refused(&plain, &hashes, "agreed on NSEC, and not on NSEC3");
}

/// What is new in the copy has its place in the ring.
#[test]
fn the_ring_follows_the_copy() {
    let mut operator = operator(ZONE);
    let before = record(&HEAD, RING[9].1, RING[10].1, RING[9].2);
    operator.knows(&before, NOW);
    operator.change(&format!("{ZONE}z.w A 192.0.2.3\n"));
    assert!(operator.decide(&before.write(), NOW).unwrap_err().contains("NSEC3 record of ns2.example."));
    operator.knows(&record(&HEAD, RING[9].1, ABSENT[3].1, RING[9].2), NOW);
    operator.knows(&record(&HEAD, ABSENT[3].1, RING[10].1, &[A, RRSIG]), NOW);
    let said = operator.ask(&[0; 32], NOW).unwrap_err();
    assert_eq!(said, NONE);
}

/// Hashes of an earlier copy serve as long as the parameters stay, and the ring is the one that is made of nothing.
#[test]
fn names_are_hashed_once() {
    let zone = |more: &str| Zone::parse(format!("{ZONE}{more}").as_bytes(), "example.").unwrap();
    let hashed = |denial: &Denial| match denial {
        Denial::Hashes(ring) => ring.hashed(),
        Denial::Names => panic!("the parameters are those of NSEC3"),
    };
    let all = |denial: &Denial, zone: &Zone| denial.added(zone).collect::<Vec<Added>>();
    let first = Denial::new(&zone(""), Some(&parameters()), None).unwrap();
    assert_eq!(hashed(&first), RING.len());
    let more = zone("z.w A 192.0.2.3\n");
    let second = Denial::new(&more, Some(&parameters()), Some(&first)).unwrap();
    assert_eq!(hashed(&second), 1);
    let anew = Denial::new(&more, Some(&parameters()), None).unwrap();
    assert_eq!(all(&second, &more), all(&anew, &more));
    for (other, text) in [(Some(&second), "13,aabbccdd"), (Some(&second), "12"), (Some(&Denial::Names), "12,aabbccdd")]
    {
        let denial = Denial::new(&more, Some(&text.parse().unwrap()), other).unwrap();
        assert_eq!(hashed(&denial), RING.len() + 1, "{text}");
    }
}

#[test]
fn parameters_are_written_in_one_way() {
    for (text, shown) in [
        ("0", "0 iterations and no salt"),
        ("0,-", "0 iterations and no salt"),
        ("100,00ff", "100 iterations and the salt 00ff"),
    ] {
        assert_eq!(text.parse::<Parameters>().unwrap().to_string(), shown);
    }
    let long = format!("0,{}", "aa".repeat(256));
    for text in ["", "-1", "101", "0,", "0,a", "0,xy", "0 aa", "0,aa,bb", &long] {
        assert!(text.parse::<Parameters>().unwrap_err().to_string().contains("as in 0 or 5,aabbccdd"), "{text}");
    }
}

//! Keys that sign the zone, keys that sign its keys, and a zone with keys of two algorithms at once.

use base64ct::{Base64, Encoding as _};
use sha2::{Digest as _, Sha256};
use theta_dnssec::{digests::Guesses, signed::SignedSet};

use crate::zones::{NOW, Operator, ZONE, link, signed, start, tag, www};

const P256: u8 = 13;
const ED25519: u8 = 15;
const NSEC: u16 = 47;
const DNSKEY: u16 = 48;
const CDS: u16 = 59;
const CDNSKEY: u16 = 60;
/// The flags of keys that sign keys, and of those that sign the zone.
const KSK: u16 = 257;
const ZSK: u16 = 256;

/// A key of a zone: its flags, its algorithm, and the byte that it is made of.
type Key = (u16, u8, u8);

/// One of each role and algorithm.
const ALL: [Key; 4] = [(KSK, P256, 7), (ZSK, P256, 8), (KSK, ED25519, 5), (ZSK, ED25519, 6)];

fn data((flags, algorithm, byte): Key) -> Vec<u8> {
    let length = if algorithm == P256 { 64 } else { 32 };
    [&flags.to_be_bytes()[..], &[3, algorithm], &vec![byte; length]].concat()
}

/// An operator whose file of keys has these, with their roles.
fn operator(keys: &[Key]) -> Operator {
    let line = |key: &Key| {
        let role = if key.0 == KSK { "ksk" } else { "zsk" };
        // All keys are exported with these flags.
        format!("{role} 257 3 {} {}\n", key.1, Base64::encode_string(&data(*key)[4..]))
    };
    let lines: String = keys.iter().map(line).collect();
    Operator::of(ZONE, "example.", &lines, Guesses::of_days(&[14]))
}

/// The set, as this key signs it.
fn by(key: Key, set: &SignedSet) -> SignedSet {
    SignedSet { algorithm: key.1, tag: tag(&data(key)), ..set.clone() }
}

/// The digest of a key for the parent.
fn cds(key: Key) -> Vec<u8> {
    let digest = Sha256::digest([&b"\x07example\0"[..], &data(key)].concat());
    [&tag(&data(key)).to_be_bytes()[..], &[key.1, 2], &digest].concat()
}

/// What the agent says to the bytes, and if a digest is signed, to that of them.
fn ask(operator: &Operator, key: Key, set: &SignedSet) -> Result<(), String> {
    let bytes = by(key, set).write();
    let said = operator.decide(&bytes, NOW);
    if key.1 == P256 {
        assert_eq!(operator.ask(&Sha256::digest(&bytes), NOW).map(drop), said, "{key:?} {set:?}");
    }
    said
}

fn sets_of_keys() -> [SignedSet; 3] {
    let all = ALL.map(data);
    let [ksk, _, other, _] = ALL;
    [
        signed(NOW, "example", DNSKEY, &all.each_ref().map(Vec::as_slice)),
        signed(NOW, "example", CDNSKEY, &[&data(ksk), &data(other)]),
        signed(NOW, "example", CDS, &[&cds(ksk), &cds(other)]),
    ]
}

fn sets_of_the_zone() -> [SignedSet; 3] {
    [www(NOW), start(NOW, 11), link(NOW, "www.example", "z.example", &[1, 46, NSEC])]
}

/// While the algorithm changes, a zone has keys of both, and all of it has signatures of both (RFC 6781, section 4.1.4). Each key signs what its
/// role says.
#[test]
fn two_algorithms_sign_at_once_and_each_key_what_its_role_says() {
    let operator = operator(&ALL);
    for key in ALL {
        let signs_keys = key.0 == KSK;
        for (sets, may, words) in [
            (sets_of_keys(), signs_keys, "signs no DNSKEY, CDS or CDNSKEY records (zsk)"),
            (sets_of_the_zone(), !signs_keys, "signs DNSKEY, CDS and CDNSKEY records, and nothing else (ksk)"),
        ] {
            for set in sets {
                match ask(&operator, key, &set) {
                    Ok(()) => assert!(may, "{key:?} {set:?}"),
                    Err(said) => assert!(!may && said.contains(words), "{key:?} {set:?}: {said}"),
                }
            }
        }
    }
}

/// Before the new algorithm, and after the old one: the other's keys are none.
#[test]
fn keys_of_an_algorithm_that_is_not_there_sign_nothing() {
    let operator = operator(&ALL[..2]);
    let [_, _, _, zsk] = ALL;
    let said = operator.decide(&by(zsk, &www(NOW)).write(), NOW).unwrap_err();
    assert!(said.contains("the algorithm is 15, and the zone's keys are of 13"), "{said}");
    let [of_both, ..] = sets_of_keys();
    let said = operator.decide(&by(ALL[0], &of_both).write(), NOW).unwrap_err();
    assert!(said.contains("none of those that the operators have agreed on"), "{said}");
}

/// A key has the flags of its role, and the parent hears of those that sign keys.
#[test]
fn records_of_keys_have_the_flags_of_their_roles() {
    let operator = operator(&ALL);
    let [ksk, zsk, ..] = ALL;
    let swapped = [(ZSK, ksk.1, ksk.2), (KSK, zsk.1, zsk.2)];
    let refused = |rtype, record: &[u8]| {
        let set = by(ksk, &signed(NOW, "example", rtype, &[record]));
        let said = operator.decide(&set.write(), NOW).unwrap_err();
        assert!(said.contains("or has not its role"), "{said}");
        operator.refuses(&set, NOW);
    };
    swapped.iter().for_each(|key| refused(DNSKEY, &data(*key)));
    for key in [zsk, swapped[0], swapped[1]] {
        refused(CDNSKEY, &data(key));
        refused(CDS, &cds(key));
    }
    assert_eq!(ask(&operator, ksk, &signed(NOW, "example", DNSKEY, &[&data(ksk), &data(zsk)])), Ok(()));
}

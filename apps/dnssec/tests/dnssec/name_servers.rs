//! Zones that Knot 3.2.6 has signed with P-256 (`cds-cdnskey-publish: always`; one with `nsec3: on` and `nsec3-salt-length: 0`; all else as it
//! is): what it has signed is recognised, signature by signature.

use std::collections::{BTreeMap, BTreeSet};

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64ct::{Base64, Encoding as _};
use bytes::Bytes;
use domain::{
    base::{
        iana::Class,
        name::{Name, ToName as _},
        rdata::ComposeRecordData as _,
    },
    zonefile::inplace::{Entry, Zonefile},
};
use sha2::{Digest as _, Sha256};
use theta_dnssec::{denial::hashed::Parameters, digests::Guesses, owner::Owner};

use crate::zones::{NONE, Operator};

const PLAIN: &str = include_str!("plain.zone");
const SIGNED: &[u8] = include_bytes!("knot.zone");
/// What the zone with NSEC3 has besides: a name without records above two others, and a delegation without keys.
const MORE: &str = "a.deep A 192.0.2.3\nb.deep A 192.0.2.4\nunsigned NS ns.unsigned\nns.unsigned A 192.0.2.10\n";
const SIGNED_NSEC3: &[u8] = include_bytes!("knot_nsec3.zone");
const DNSKEY: u16 = 48;
const RRSIG: u16 = 46;

#[derive(Default)]
struct Zone {
    sets: BTreeMap<(Vec<u8>, u16), BTreeSet<Vec<u8>>>,
    /// With the name of what is signed.
    signatures: Vec<(Vec<u8>, Vec<u8>)>,
}

fn read(signed: &[u8]) -> Zone {
    let mut file = Zonefile::with_capacity(signed.len());
    file.extend_from_slice(signed);
    file.set_origin("example.".parse::<Name<Vec<u8>>>().unwrap().to_name::<Bytes>());
    file.set_default_class(Class::IN);
    let mut zone = Zone::default();
    while let Some(entry) = file.next_entry().unwrap() {
        let Entry::Record(record) = entry else { panic!("an include") };
        let owner: Name<Vec<u8>> = record.owner().to_name();
        let (owner, mut data) = (owner.as_slice().to_ascii_lowercase(), Vec::new());
        record.data().compose_canonical_rdata(&mut data).unwrap();
        match record.rtype().to_int() {
            RRSIG => zone.signatures.push((owner, data)),
            kind => drop(zone.sets.entry((owner, kind)).or_default().insert(data)),
        }
    }
    zone
}

/// RRSIG's data in what is signed, and the signature.
fn split(data: &[u8]) -> (&[u8], &[u8]) {
    let (_, signature) = Owner::read(&data[18..]).unwrap();
    data.split_at(data.len() - signature.len())
}

/// What Knot has signed.
pub(crate) struct Signed {
    pub(crate) owner: Owner,
    pub(crate) kind: u16,
    /// The tag of the key.
    pub(crate) tag: u16,
    /// What the signature covers.
    pub(crate) bytes: Vec<u8>,
    /// When it was made, in seconds since 1970.
    pub(crate) time: u64,
}

/// All that Knot has signed in a zone, and an operator who has the zone without signatures.
pub(crate) fn signed_by_knot(plain: &str, signed: &[u8], nsec3: Option<Parameters>) -> (Operator, Vec<Signed>) {
    let zone = read(signed);
    let keys = &zone.sets[&(b"\x07example\0".to_vec(), DNSKEY)];
    let lines: String = keys.iter().map(|key| format!("256 3 13 {}\n", Base64::encode_string(&key[4..]))).collect();
    let operator = Operator::with_denial((plain, "example."), nsec3, &lines, Guesses::of_days(&[14]));
    let mut all = Vec::new();
    for (owner, data) in &zone.signatures {
        let (head, signature) = split(data);
        let kind = u16::from_be_bytes([head[0], head[1]]);
        let mut bytes = head.to_vec();
        for one in &zone.sets[&(owner.clone(), kind)] {
            bytes.extend([owner, &kind.to_be_bytes()[..], &[0, 1], &head[4..8]].concat());
            bytes.extend(u16::try_from(one.len()).unwrap().to_be_bytes());
            bytes.extend(one);
        }
        let verifies = |key: &Vec<u8>| {
            let point = [&[4], &key[4..]].concat();
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(&bytes, signature).is_ok()
        };
        assert!(keys.iter().any(verifies), "these are the bytes that Knot signed");
        let time = u64::from(u32::from_be_bytes(head[12..16].try_into().unwrap())) + 5_400;
        let (owner, tag) = (Owner::read(owner).unwrap().0, u16::from_be_bytes([head[16], head[17]]));
        all.push(Signed { owner, kind, tag, bytes, time });
    }
    (operator, all)
}

/// Both zones.
pub(crate) fn zones() -> [(Operator, Vec<Signed>); 2] {
    let plain = signed_by_knot(PLAIN, SIGNED, None);
    [plain, signed_by_knot(&format!("{PLAIN}{MORE}"), SIGNED_NSEC3, Some(Parameters::default()))]
}

/// The types of what was signed, all of which is recognised.
fn recognised((operator, signed): (Operator, Vec<Signed>)) -> Vec<u16> {
    let (mut kinds, mut searches) = (BTreeSet::new(), 0);
    for Signed { kind, mut bytes, time, .. } in signed {
        let before = operator.recogniser.hashed();
        assert_eq!(operator.ask(&Sha256::digest(&bytes), time + 1), Ok(bytes.clone()), "{kind}");
        searches += usize::from(operator.recogniser.hashed() > before);
        kinds.insert(kind);
        bytes.push(0);
        assert_eq!(operator.ask(&Sha256::digest(&bytes), time + 1), Err(NONE.to_owned()));
    }
    assert!(searches <= 4, "{searches}: one for each key, and for the serial");
    kinds.into_iter().collect()
}

#[test]
fn what_knot_signed_is_recognised() {
    // A to SOA and NSEC, and the keys, also those for the parent.
    let all = [1, 2, 5, 6, 15, 16, 17, 33, 35, 39, 43, 47, 48, 59, 60, 257, 65_280];
    let [zone, _] = zones();
    assert_eq!(recognised(zone), all);
}

#[test]
fn what_knot_signed_with_nsec3_is_recognised() {
    // NSEC3 and its parameters in the place of NSEC.
    let all = [1, 2, 5, 6, 15, 16, 17, 33, 35, 39, 43, 48, 50, 51, 59, 60, 257, 65_280];
    let [_, zone] = zones();
    assert_eq!(recognised(zone), all);
}

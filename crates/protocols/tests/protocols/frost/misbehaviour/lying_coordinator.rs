//! Packages that no honest coordinator makes. A package for Ed25519 is a byte, a number of 8 bytes and 66 bytes a
//! signer.

use crate::frost::support::{Setting, tamper};
use bytes::Bytes;
use theta_schemes::Suite;

const HEAD: usize = 9;
const ENTRY: usize = 66;

/// Runs 3 of 5 with a first coordinator that changes packages by `change`; returns the offences that honest parties
/// see.
fn named(change: impl Fn(u16, Bytes) -> Vec<u8> + Send + 'static) -> Vec<&'static str> {
    let setting = Setting::new(Suite::FrostEd25519, 3, 5);
    let coordinator = setting.coordinator();
    let report = setting.run(
        5,
        vec![(
            coordinator,
            tamper(move |to, slot, payload| {
                let payload = if slot.kind == 2 { change(to, payload).into() } else { payload };
                vec![(slot, payload)]
            }),
        )],
    );
    setting.check(&report).unwrap();
    Setting::offences(&report, coordinator).into_iter().map(|(_, name)| name).collect()
}

fn index(entry: &[u8]) -> u16 {
    u16::from_be_bytes([entry[0], entry[1]])
}

#[test]
fn other_commitments_in_our_place() {
    let names = named(|to, payload| {
        let mut forged = payload[..HEAD].to_vec();
        for entry in payload[HEAD..].chunks(ENTRY) {
            let (index_bytes, halves) = entry.split_at(2);
            let (hiding, binding) = halves.split_at(32);
            let changed = if index(entry) == to { [binding, hiding].concat() } else { halves.to_vec() };
            forged.extend([index_bytes, &changed].concat());
        }
        forged
    });
    assert_eq!(names, ["altered_commitments"; 2]);
}

#[test]
fn a_package_without_us() {
    let names = named(|to, payload| {
        let mut forged = payload[..HEAD].to_vec();
        let entries: Vec<_> = payload[HEAD..].chunks(ENTRY).collect();
        let present: Vec<u16> = entries.iter().map(|entry| index(entry)).collect();
        let absent = (1..=5).find(|party| !present.contains(party)).unwrap();
        for entry in entries {
            let index = if index(entry) == to { absent } else { index(entry) };
            forged.extend(index.to_be_bytes());
            forged.extend(&entry[2..]);
        }
        forged
    });
    assert_eq!(names, ["altered_commitments"; 2]);
}

#[test]
fn a_package_with_a_stranger() {
    let names = named(|to, payload| {
        let mut forged = payload.to_vec();
        let place = payload[HEAD..].chunks(ENTRY).position(|entry| index(entry) != to).unwrap();
        forged[HEAD + ENTRY * place..][..2].copy_from_slice(&6_u16.to_be_bytes());
        forged
    });
    assert_eq!(names, ["invalid_package"; 2]);
}

#[test]
fn a_package_with_one_signer_twice_or_too_few() {
    let twice = named(|_, payload| {
        let mut forged = payload.to_vec();
        let first = payload[HEAD..][..ENTRY].to_vec();
        forged.extend(first);
        forged
    });
    assert_eq!(twice, ["invalid_package"; 2]);
    let few = named(|_, payload| payload[..HEAD + 2 * ENTRY].to_vec());
    assert_eq!(few, ["invalid_package"; 2]);
}

#[test]
fn a_number_that_was_never_given_is_answered_with_new_commitments_only() {
    let names = named(|_, payload| [&payload[..1], &[payload[1] ^ 0x80], &payload[2..]].concat());
    assert_eq!(names, [""; 0]);
}

/// Different signers get different packages: their shares do not fit together, and nobody learns more than one share
/// for each pair of nonces.
#[test]
fn different_packages_for_different_signers_only_waste_time() {
    let names = named(|to, payload| {
        let mut forged = payload.to_vec();
        for entry in forged[HEAD..].chunks_mut(ENTRY).filter(|entry| index(entry) != to) {
            let (hiding, binding) = entry[2..].split_at_mut(32);
            hiding.swap_with_slice(binding);
        }
        forged
    });
    assert_eq!(names, [""; 0]);
}

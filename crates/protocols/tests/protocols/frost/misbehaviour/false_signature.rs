//! A coordinator announces what is no signature.

use crate::frost::support::{Setting, flip, tamper};
use theta_schemes::Suite;

#[test]
fn everybody_names_it_and_goes_on_with_the_next() {
    let setting = Setting::new(Suite::FrostEd25519, 3, 4);
    let coordinator = setting.coordinator();
    for byte in [0, 10, 40] {
        let report = setting.run(byte as u64, vec![(coordinator, flip(4, byte))]);
        setting.check(&report).unwrap();
        let mut said = Setting::offences(&report, coordinator);
        said.sort_unstable();
        let expected: Vec<_> =
            (1..=4).filter(|party| *party != coordinator).map(|party| (party, "invalid_signature")).collect();
        assert_eq!(said, expected);
    }
}

#[test]
fn signers_that_cannot_be_are_a_false_signature() {
    let setting = Setting::new(Suite::FrostEd25519, 2, 4);
    let coordinator = setting.coordinator();
    for lie in [&[0, 2, 0, 9, 0, 10][..], &[0, 1, 0, 1], &[0, 0], &[0, 2, 0, 1, 0, 2, 7]] {
        let report = setting.run(
            3,
            vec![(
                coordinator,
                tamper(move |_, slot, payload| {
                    let payload = if slot.kind == 4 { [&payload[..64], lie].concat().into() } else { payload };
                    vec![(slot, payload)]
                }),
            )],
        );
        setting.check(&report).unwrap();
        assert!(Setting::offences(&report, coordinator).iter().all(|(_, name)| *name == "invalid_signature"));
        assert_eq!(Setting::offences(&report, coordinator).len(), 3);
    }
}

/// One party alone gets the signature from the coordinator, which then goes down; that party gives it to the others
/// when they ask.
#[test]
fn a_signature_for_one_reaches_all() {
    for seed in 0..20 {
        let setting = Setting::new(Suite::FrostEd25519, 3, 4);
        let (coordinator, lucky) = (setting.coordinator(), setting.others()[0]);
        let report = setting.run(
            seed,
            vec![(
                coordinator,
                tamper(
                    move |to, slot, payload| {
                        if slot.kind == 4 && to != lucky { Vec::new() } else { vec![(slot, payload)] }
                    },
                ),
            )],
        );
        setting.check(&report).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

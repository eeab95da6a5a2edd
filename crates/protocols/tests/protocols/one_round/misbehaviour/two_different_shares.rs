//! A node sends two different shares, to one party or to several.

use std::mem;

use crate::one_round::support::{Delta, each_suite, id, shifted, tamper};
use theta_rounds::{Offence, simulator::Behaviour, simulator::SimRng, simulator::Tamper};

#[test]
fn two_to_the_same_party_is_equivocation_with_both_as_evidence() {
    each_suite(3, 5, |setting| {
        let corrupted: Vec<(u16, Box<dyn theta_rounds::simulator::Adversary>)> = {
            let suite = setting.suite;
            let twice = Tamper(move |_: &mut SimRng, _, slot, payload: bytes::Bytes| {
                let other = shifted(suite, &payload, &Delta::plus(1));
                vec![(slot, payload), (slot, other)]
            });
            vec![(2, Box::new(twice))]
        };
        let report = setting.run(1, corrupted);
        setting.expect_result(&report);
        let blames: Vec<_> = report.blames_of(id(2)).collect();
        assert_eq!(blames.len(), 4);
        for (_, blame) in blames {
            let Offence::Equivocation { first, second } = &blame.offence else { panic!("{blame}") };
            assert_ne!(first, second);
        }
    });
}

#[test]
fn junk_beside_the_real_one_is_named() {
    each_suite(3, 5, |setting| {
        let offences = ["equivocation", "malformed_share"];
        setting.expect_named(2, vec![(5, Box::new(Behaviour::TwoToSame))], &offences);
    });
}

/// Each recipient sees one share only, so only those that got the false one can know.
#[test]
fn different_shares_to_different_parties_split_nobody() {
    each_suite(2, 5, |setting| {
        let suite = setting.suite;
        let mut wrong = false;
        let splitter =
            tamper(
                move |_, payload| {
                    if mem::replace(&mut wrong, true) { payload } else { shifted(suite, &payload, &Delta::plus(3)) }
                },
            );
        let report = setting.run(3, vec![(1, splitter)]);
        setting.expect_result(&report);
        let names: Vec<_> = report.blames_of(id(1)).map(|(by, blame)| (by, blame.offence.name())).collect();
        assert_eq!(names, [(id(2), "invalid_share")]);
    });
}

//! A signer's share is not the one that it owes.

use crate::frost::support::{HELD_BACK, Setting, flip, id};
use theta_rounds::Abort;
use theta_schemes::Suite;

/// The liars' messages come first, so that they are in the first session.
#[test]
fn it_is_named_and_the_signature_comes_all_the_same() {
    for suite in Suite::ALL.into_iter().filter(|suite| suite.scheme() == "FROST") {
        let setting = Setting::new(suite, 3, 5);
        let (coordinator, others) = (setting.coordinator(), setting.others());
        let liars = [others[2], others[3]];
        let mut simulator = setting.simulator(7);
        // Different lies: equal ones may cancel, and the signature is then true after all.
        setting.populate(&mut simulator, vec![(liars[0], flip(3, 10)), (liars[1], flip(3, 11))]);
        for honest in [others[0], others[1]] {
            simulator.hold_back(id(honest), id(coordinator), HELD_BACK);
        }
        let report = simulator.run();
        setting.check(&report).unwrap();
        for liar in liars {
            assert_eq!(Setting::offences(&report, liar), [(coordinator, "invalid_share")], "{suite}");
        }
    }
}

#[test]
fn too_many_of_them_are_an_end_with_a_reason() {
    let setting = Setting::new(Suite::FrostEd25519, 3, 4);
    let (coordinator, others) = (setting.coordinator(), setting.others());
    let report = setting.run(1, vec![(others[0], flip(3, 10)), (others[1], flip(3, 11))]);
    report.check_blame().unwrap();
    let result = report.parties[&id(coordinator)].result.as_ref().unwrap();
    assert_eq!(result.as_ref().unwrap_err(), &Abort::TooFewHonest { remaining: 2, needed: 3 });
}

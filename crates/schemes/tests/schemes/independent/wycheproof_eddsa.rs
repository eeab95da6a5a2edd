//! Wycheproof's tests of Ed25519 and Ed448 verifiers: forgeries that real verifiers have accepted.

use theta_schemes::signatures::frost::{Ed448Shake256, Ed25519Sha512, FrostSuite, VerifyingKey};
use wycheproof::TestResult;
use wycheproof::eddsa::{TestName, TestSet};

fn check<C: FrostSuite>(name: TestName) {
    let (mut valid, mut invalid) = (0, 0);
    for group in TestSet::load(name).unwrap().test_groups {
        let key = VerifyingKey::<C>::decode(&group.key.pk).unwrap();
        for test in group.tests {
            let verdict = key.verify(&test.msg, &test.sig);
            match test.result {
                TestResult::Valid => valid += 1,
                TestResult::Invalid => invalid += 1,
                TestResult::Acceptable => continue,
            }
            assert_eq!(verdict.is_ok(), test.result == TestResult::Valid, "case {}: {}", test.tc_id, test.comment);
        }
    }
    assert!(valid > 10 && invalid > 50, "{valid} valid, {invalid} invalid cases");
}

#[test]
fn ed25519_verdicts_are_wycheproofs() {
    check::<Ed25519Sha512>(TestName::Ed25519);
}

#[test]
fn ed448_verdicts_are_wycheproofs() {
    check::<Ed448Shake256>(TestName::Ed448);
}

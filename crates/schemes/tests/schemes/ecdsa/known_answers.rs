//! What the oracle signs (`vectors/ecdsa`), verifies.

use std::fs;
use std::path::Path;

use serde_json::Value;
use theta_groups::Scalar as _;
use theta_schemes::VerifyError;
use theta_schemes::signatures::ecdsa::{EcdsaCurve, P256Sha256, Secp256k1Sha256, from_der, to_der};

use crate::ecdsa::fixture::{Key, ScalarOf, low};

fn check<C: EcdsaCurve>(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../vectors/ecdsa/{name}.json"));
    let known: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let cases = known["cases"].as_array().unwrap();
    assert!(cases.len() > 3);
    for case in cases {
        let bytes = |name: &str| hex::decode(case[name].as_str().unwrap()).unwrap();
        let key = Key::<C>::of(ScalarOf::<C>::decode(&bytes("x")).unwrap());
        assert_eq!(key.public.public_key_bytes(), bytes("public_key"));
        let signature: [u8; 64] = bytes("raw").try_into().unwrap();
        assert_eq!(low::<C>(signature).to_vec(), bytes("low_s"));
        assert_eq!((to_der(&signature).unwrap(), from_der(&bytes("der"))), (bytes("der"), Some(signature)));
        assert_eq!(key.public.verify_digest(&bytes("digest"), &bytes("low_s")), Ok(()));
        let high = C::LOW_S && low::<C>(signature) != signature;
        let verdict = if high { Err(VerifyError::HighS.into()) } else { Ok(()) };
        assert_eq!(key.public.verify_digest(&bytes("digest"), &signature), verdict);
    }
}

#[test]
fn signatures_of_the_oracle_verify() {
    check::<P256Sha256>("p256");
    check::<Secp256k1Sha256>("secp256k1");
}

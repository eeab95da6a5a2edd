//! What the second implementation signs, verifies; and the formats of keys and results are fixed. `THETA_WRITE_VECTORS=1 cargo test -p
//! theta-schemes ecdsa::known_answers` writes the files of the suites anew.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use theta_groups::{Scalar as _, Secret};
use theta_keyfiles::{KeyShareText as _, PublicKeyText as _};
use theta_schemes::VerifyError;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyName, import_any};
use theta_schemes::signatures::ecdsa::{EcdsaCurve, P256Sha256, Secp256k1Sha256, from_der, to_der, uncompressed_key};
use theta_sharing::Threshold;

use crate::ecdsa::fixture::{Key, ScalarOf, low};
use crate::suites::fixture::rng;

const MESSAGE: &[u8] = b"known message";

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../vectors/ecdsa/{name}.json"))
}

fn read(name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path(name)).unwrap()).unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

fn check_oracles<C: EcdsaCurve>(name: &str) {
    let known = read(name);
    let cases = known["cases"].as_array().unwrap();
    assert!(cases.len() > 3);
    for case in cases {
        let bytes = |name: &str| bytes(&case[name]);
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
    check_oracles::<P256Sha256>("p256");
    check_oracles::<Secp256k1Sha256>("secp256k1");
}

/// A key 2 of 3, its files, and a signature with a nonce that is told.
fn generate<C: EcdsaCurve>() -> Value {
    let name: KeyName = "vector".parse().unwrap();
    let scalar = |text: &str| ScalarOf::<C>::from_uniform_bytes(&Sha256::digest(text));
    let (secret, nonce) = (scalar("known key"), scalar("known nonce"));
    let bytes = Secret::new(secret.encode().as_ref().to_vec());
    let (public, keys) = import_any(C::SUITE, Threshold::new(2, 3).unwrap(), &bytes, &mut rng(2026)).unwrap();
    let signature = Key::<C> { secret, public: public.clone() }.sign_with(&Sha256::digest(MESSAGE), nonce);
    let result = if C::LOW_S { low::<C>(signature) } else { signature };
    json!({
        "source": "this implementation; see spec/ecdsa.md",
        "suite": C::SUITE.name(),
        "public_key_file": public.to_text(&name),
        "share_files": keys.iter().map(|key| key.to_text(&name).expose().clone()).collect::<Vec<_>>(),
        "uncompressed": hex::encode(uncompressed_key(&public).unwrap()),
        "statement": hex::encode(MESSAGE),
        "nonce": hex::encode(nonce.encode()),
        "result": hex::encode(result),
        "proof": "",
        "der": hex::encode(to_der(&result).unwrap()),
    })
}

fn check_suite<C: EcdsaCurve>() {
    let name = C::SUITE.name();
    if std::env::var_os("THETA_WRITE_VECTORS").is_some() {
        fs::write(path(name), serde_json::to_string_pretty(&generate::<C>()).unwrap() + "\n").unwrap();
    }
    let known = read(name);
    assert_eq!(generate::<C>(), known, "the format has changed");
    // The file alone is enough to use the key: files of earlier releases stay readable.
    let (_, public) = AnyPublicKey::from_text(known["public_key_file"].as_str().unwrap()).unwrap();
    assert_eq!(public.suite(), C::SUITE);
    for text in known["share_files"].as_array().unwrap() {
        AnyKeyShare::from_text(text.as_str().unwrap(), &public).unwrap();
    }
    assert_eq!(public.verify(MESSAGE, &bytes(&known["result"]), &[]), Ok(()));
    assert_eq!(public.verify(MESSAGE, &from_der(&bytes(&known["der"])).unwrap(), &[]), Ok(()));
}

#[test]
fn keys_and_results_are_the_known_ones() {
    check_suite::<P256Sha256>();
    check_suite::<Secp256k1Sha256>();
}

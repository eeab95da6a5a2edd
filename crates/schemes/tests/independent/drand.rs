//! Beacons of the League of Entropy: threshold BLS signatures that other implementations made.

use serde_json::Value;
use sha2::{Digest, Sha256};
use theta_groups::bls12_381::{Bls12_381, G1, G2};
use theta_groups::{Group, Pairing};

struct Beacon {
    /// What is signed: the hash of the previous signature, in a chained scheme, and the round.
    message: [u8; 32],
    signature: Vec<u8>,
    randomness: Option<Vec<u8>>,
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

/// The chain's public key and its beacons.
fn read(file: &str) -> (Vec<u8>, Vec<Beacon>) {
    let file: Value = serde_json::from_str(file).unwrap();
    let beacons = file["beacons"].as_array().unwrap().iter().map(|beacon| {
        let previous = beacon.get("previous_signature").map(bytes).unwrap_or_default();
        let round = beacon["round"].as_u64().unwrap();
        Beacon {
            message: Sha256::new().chain_update(previous).chain_update(round.to_be_bytes()).finalize().into(),
            signature: bytes(&beacon["signature"]),
            randomness: beacon.get("randomness").map(bytes),
        }
    });
    (bytes(&file["public_key"]), beacons.collect())
}

/// Every beacon holds under `verify`, no other message does, and its randomness is the signature's hash.
fn check(beacons: &[Beacon], verify: impl Fn(&[u8], &[u8]) -> bool) {
    assert!(beacons.len() >= 3);
    for (i, beacon) in beacons.iter().enumerate() {
        assert!(verify(&beacon.message, &beacon.signature));
        let next = &beacons[(i + 1) % beacons.len()];
        assert!(!verify(&next.message, &beacon.signature));
        if let Some(randomness) = &beacon.randomness {
            assert_eq!(Sha256::digest(&beacon.signature).as_slice(), randomness);
        }
    }
}

#[test]
fn beacons_of_the_default_chain_hold() {
    const DOMAIN: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_NUL_";
    let (public_key, beacons) = read(include_str!("../../../../vectors/drand/default.json"));
    let public_key = G1::decode(&public_key).unwrap();
    check(&beacons, |message, signature| {
        let (point, signature) = (G2::hash_to_group(DOMAIN, &[message]), G2::decode(signature).unwrap());
        Bls12_381::vartime_product_is_one(&[(public_key, point), (-G1::generator(), signature)])
    });
}

#[test]
fn beacons_of_quicknet_hold() {
    const DOMAIN: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_";
    let (public_key, beacons) = read(include_str!("../../../../vectors/drand/quicknet.json"));
    let public_key = G2::decode(&public_key).unwrap();
    check(&beacons, |message, signature| {
        let (point, signature) = (G1::hash_to_group(DOMAIN, &[message]), G1::decode(signature).unwrap());
        Bls12_381::vartime_product_is_one(&[(point, public_key), (signature, -G2::generator())])
    });
}

//! Beacons of the League of Entropy: coins from threshold BLS signatures that other implementations made.

use serde_json::Value;
use sha2::{Digest, Sha256};
use theta_groups::Group;
use theta_schemes::VerifyError;
use theta_schemes::coins::cks05_bls::{AnyBeaconKey, BeaconKey, BeaconMinPk, BeaconMinSig, Cks05Bls, drand_round};
use theta_schemes::keys::PublicKeySet;
use theta_schemes::signatures::bls04::{Form, MinPk, MinSig};
use theta_sharing::{Encoded, Threshold};

/// A round as its chain published it.
struct Round {
    name: [u8; 32],
    signature: Vec<u8>,
    randomness: Vec<u8>,
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

/// The chain's public key and its rounds. Where the randomness was not published, it is the signature's hash.
fn read(file: &str) -> (Vec<u8>, Vec<Round>) {
    let file: Value = serde_json::from_str(file).unwrap();
    let rounds = file["beacons"].as_array().unwrap().iter().map(|beacon| {
        let previous = beacon.get("previous_signature").map(bytes);
        let signature = bytes(&beacon["signature"]);
        let hash = || Sha256::digest(&signature).to_vec();
        Round {
            name: drand_round(beacon["round"].as_u64().unwrap(), previous.as_deref()),
            randomness: beacon.get("randomness").map_or_else(hash, bytes),
            signature,
        }
    });
    let rounds: Vec<_> = rounds.collect();
    assert!(rounds.len() >= 3);
    (bytes(&file["public_key"]), rounds)
}

/// The rounds verify as the coins of their names under the chain's key, and nothing else does.
fn check<F: Form, Signing: Form>(file: &str) {
    let (key, rounds) = read(file);
    let beacon = BeaconKey::<F>::decode(&key).unwrap();
    let of_any_form = AnyBeaconKey::decode(&key).unwrap();
    // The same key for messages instead of coins is refused, because the domains differ.
    let signer = BeaconKey::<Signing>::decode(&key).unwrap();
    for (i, Round { name, signature, randomness }) in rounds.iter().enumerate() {
        beacon.verify(name, randomness, signature).unwrap();
        of_any_form.verify(name, randomness, signature).unwrap();
        assert_eq!(signer.verify(name, randomness, signature), Err(VerifyError::Invalid));
        let next = &rounds[(i + 1) % rounds.len()];
        assert_eq!(beacon.verify(&next.name, randomness, signature), Err(VerifyError::Invalid));
        assert_eq!(of_any_form.verify(&next.name, randomness, signature), Err(VerifyError::Invalid));
        assert_eq!(beacon.verify(name, &next.randomness, signature), Err(VerifyError::Invalid));
        assert_eq!(beacon.verify(name, &next.randomness, &next.signature), Err(VerifyError::Invalid));
        let negated = F::Signatures::encode(&-F::Signatures::decode(signature).unwrap()).as_ref().to_vec();
        assert_eq!(beacon.verify(name, &Sha256::digest(&negated), &negated), Err(VerifyError::Invalid));
        beacon.verify(name, &randomness[1..], signature).unwrap_err();
        beacon.verify(name, &Sha256::digest(&signature[1..]), &signature[1..]).unwrap_err();
    }
    // Bytes that are no keys.
    let identity = F::Keys::encode(&F::Keys::identity()).as_ref().to_vec();
    for bad in [&key[1..], &[0xff; 96][..key.len()], &identity, b""] {
        BeaconKey::<F>::decode(bad).unwrap_err();
        AnyBeaconKey::decode(bad).unwrap_err();
    }
    // Where keys could be aggregated, this one is refused: drand publishes no proof of possession.
    let key = Encoded::decode(&key).unwrap();
    PublicKeySet::new::<Cks05Bls<F>>(Threshold::new(1, 1).unwrap(), key, vec![key], None).unwrap_err();
}

#[test]
fn rounds_of_the_default_chain_are_coins() {
    check::<BeaconMinPk, MinPk>(include_str!("../../../../../vectors/drand/default.json"));
}

#[test]
fn rounds_of_quicknet_are_coins() {
    check::<BeaconMinSig, MinSig>(include_str!("../../../../../vectors/drand/quicknet.json"));
}

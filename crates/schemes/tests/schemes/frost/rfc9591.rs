//! The test vectors of RFC 9591, appendix E.

use core::convert::Infallible;

use rand_chacha::rand_core::{TryCryptoRng, TryRng};
use serde_json::Value;
use theta_groups::{Group, Scalar as _, Secret};
use theta_schemes::keys::{KeyShare, PublicKeySet};
use theta_schemes::signatures::frost::{
    Ed448Shake256, Ed25519Sha512, Frost, FrostSuite, P256Sha256, Ristretto255Sha512, Secp256k1Sha256, SigningPackage,
    aggregate, commit, sign, verify_share,
};
use theta_sharing::{Encoded, Threshold};

use crate::frost::fixture::{Scalar, index, rng, unhex};

/// A random number generator that gives the RFC's random bytes.
struct Given(Vec<u8>);

impl TryRng for Given {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        unreachable!("nonces are made from bytes")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        unreachable!("nonces are made from bytes")
    }

    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), Infallible> {
        let rest = self.0.split_off(destination.len());
        destination.copy_from_slice(&self.0);
        self.0 = rest;
        Ok(())
    }
}

impl TryCryptoRng for Given {}

fn scalar<C: FrostSuite>(value: &Value) -> Scalar<C> {
    Scalar::<C>::decode(&unhex(value)).unwrap()
}

fn check<C: FrostSuite>(file: &str) {
    let file: Value = serde_json::from_str(file).unwrap();
    let threshold = Threshold::new(2, 3).unwrap();
    assert_eq!((&file["min_participants"], &file["max_participants"]), (&2.into(), &3.into()));

    // The dealer's polynomial (appendix C).
    let secret = scalar::<C>(&file["group_secret_key"]);
    let coefficient = scalar::<C>(&file["share_polynomial_coefficients"][0]);
    let secrets: Vec<_> = (1..=3).map(|i| secret + coefficient * Scalar::<C>::from_u64(i)).collect();
    for (i, share) in (1..).zip(&secrets) {
        assert_eq!(*share, scalar::<C>(&file["participant_shares"][i.to_string()]));
    }
    let public_key = Encoded::<C::Group>::new(C::Group::mul_base(&secret));
    assert_eq!(public_key.bytes(), unhex(&file["group_public_key"]));
    let verification_keys = secrets.iter().map(|share| Encoded::new(C::Group::mul_base(share))).collect();
    let public = PublicKeySet::new::<Frost<C>>(threshold, public_key, verification_keys, None).unwrap();

    // Round one.
    let signers = file["signers"].as_array().unwrap();
    let mut nonces = Vec::new();
    let mut commitments = Vec::new();
    for signer in signers {
        let i = index(u16::try_from(signer["identifier"].as_u64().unwrap()).unwrap());
        let key = KeyShare::new(*public.key_id(), i, Secret::new(secrets[i.position()]));
        let random = ["hiding_nonce_randomness", "binding_nonce_randomness"].map(|name| unhex(&signer[name])).concat();
        let (mine, published) = commit::<C>(&key, &mut Given(random));
        let expected = ["hiding_nonce_commitment", "binding_nonce_commitment"].map(|name| unhex(&signer[name]));
        assert_eq!(published.encode(), expected.concat());
        // The nonces are secret; their commitments are compared.
        let secret = ["hiding_nonce", "binding_nonce"].map(|name| scalar::<C>(&signer[name]));
        assert_eq!(secret.map(|nonce| C::Group::encode(&C::Group::mul_base(&nonce)).as_ref().to_vec()), expected);
        nonces.push((mine, key));
        commitments.push(published);
    }

    // Round two.
    let message = unhex(&file["message"]);
    let package = SigningPackage::new(&public, commitments, &message).unwrap();
    let mut shares = Vec::new();
    for (signer, (nonces, key)) in signers.iter().zip(nonces) {
        assert_eq!(package.binding_factor(key.index()), Some(scalar::<C>(&signer["binding_factor"])));
        let share = sign(&package, nonces, &key).unwrap();
        assert_eq!(share.encode(), unhex(&signer["signature_share"]));
        assert!(verify_share(&public, &package, &share));
        shares.push(share);
    }

    let signature = aggregate(&public, &package, &shares, &mut rng(1)).unwrap();
    assert_eq!(signature.encode(), unhex(&file["signature"]));
}

/// One test for each suite that has an appendix.
macro_rules! appendices {
    ($($test:ident: $suite:ty;)*) => {
        $(#[test]
        fn $test() {
            check::<$suite>(include_str!(concat!("../../../../../vectors/rfc9591/", stringify!($test), ".json")));
        })*
    };
}

appendices! {
    ed25519: Ed25519Sha512;
    ed448: Ed448Shake256;
    ristretto255: Ristretto255Sha512;
    p256: P256Sha256;
    secp256k1: Secp256k1Sha256;
}

//! Standard verifiers accept our signatures, and our verifier accepts theirs.

use std::process::Command;

use theta_groups::Secret;
use theta_schemes::signatures::frost::{Ed448Shake256, Ed25519Sha512, FrostSuite, SigningPackage, VerifyingKey};

use crate::frost::fixture::{aggregated, commit_all, key, session, sign_all, unhex, vectors};

fn rfc_8032<C: FrostSuite>(file: &str) {
    for vector in vectors(file) {
        let [public_key, mut message, mut signature] =
            ["public_key", "message", "signature"].map(|name| unhex(&vector[name]));
        let public_key = VerifyingKey::<C>::decode(&public_key).unwrap();
        public_key.verify(&message, &signature).unwrap();
        signature[3] ^= 1;
        public_key.verify(&message, &signature).unwrap_err();
        signature[3] ^= 1;
        message.push(0);
        public_key.verify(&message, &signature).unwrap_err();
    }
}

#[test]
fn rfc_8032_for_ed25519() {
    rfc_8032::<Ed25519Sha512>(include_str!("../../../../../vectors/rfc8032/ed25519.json"));
}

#[test]
fn rfc_8032_for_ed448() {
    rfc_8032::<Ed448Shake256>(include_str!("../../../../../vectors/rfc8032/ed448.json"));
}

#[test]
fn ed25519_dalek_accepts_ours() {
    for seed in 0..8 {
        let dealt = key::<Ed25519Sha512>(3, 5, seed);
        let message = vec![7; usize::try_from(seed).unwrap()];
        let (nonces, commitments) = commit_all::<Ed25519Sha512>(&dealt, &[4, 0, 1], seed);
        let package = match seed % 2 {
            0 => SigningPackage::new(&dealt.public, commitments, &message),
            _ => SigningPackage::randomized(&dealt.public, &Secret::new(vec![9; 32]), commitments, &message),
        };
        let package = package.unwrap();
        let shares = sign_all(&dealt, &package, nonces);
        let signature = aggregated(&dealt, &package, &shares).unwrap().encode();
        let public_key = package.key().verifying_key().bytes().try_into().unwrap();
        let public_key = ed25519_dalek::VerifyingKey::from_bytes(&public_key).unwrap();
        let signature = ed25519_dalek::Signature::from_slice(&signature).unwrap();
        public_key.verify_strict(&message, &signature).unwrap();
        public_key.verify_strict(b"another", &signature).unwrap_err();
    }
}

/// RFC 8410: the fixed beginnings of a SubjectPublicKeyInfo.
const ED25519_SPKI: &str = "302a300506032b6570032100";
const ED448_SPKI: &str = "3043300506032b6571033a00";

fn openssl_accepts_ours<C: FrostSuite>(spki: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let dealt = key::<C>(3, 5, 1);
    let (package, shares) = session::<C>(&dealt, &[0, 2, 4], b"message", 2);
    let signature = aggregated(&dealt, &package, &shares).unwrap().encode();
    let der = [hex::decode(spki).unwrap(), package.key().verifying_key().bytes().to_vec()].concat();
    std::fs::write(path("key"), der).unwrap();
    std::fs::write(path("signature"), signature).unwrap();
    for (message, accepted) in [("message", true), ("another", false)] {
        std::fs::write(path("message"), message).unwrap();
        let output = Command::new("openssl")
            .args(["pkeyutl", "-verify", "-rawin", "-pubin", "-keyform", "DER", "-inkey", "key"])
            .args(["-in", "message", "-sigfile", "signature"])
            .current_dir(folder.path())
            .output()
            .expect("the openssl command is installed");
        assert_eq!(output.status.success(), accepted, "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn openssl_accepts_our_ed25519() {
    openssl_accepts_ours::<Ed25519Sha512>(ED25519_SPKI);
}

#[test]
fn openssl_accepts_our_ed448() {
    openssl_accepts_ours::<Ed448Shake256>(ED448_SPKI);
}

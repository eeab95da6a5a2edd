//! Signatures are ordinary ECDSA signatures: what aws-lc and libsecp256k1 make verifies here, what verifies here does there, and
//! OpenSSL agrees.

use std::fs;
use std::process::Command;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING,
    ECDSA_P256K1_SHA256_ASN1, ECDSA_P256K1_SHA256_ASN1_SIGNING, ECDSA_P256K1_SHA256_FIXED,
    ECDSA_P256K1_SHA256_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, UnparsedPublicKey,
};
use sha2::{Digest as _, Sha256};
use theta_groups::Scalar;
use theta_schemes::VerifyError;
use theta_schemes::signatures::ecdsa::{
    EcdsaCurve, P256Sha256, Secp256k1Sha256, from_der, to_der, uncompressed_key, vartime_recovery_id,
};

use crate::ecdsa::fixture::{Key, low, other};

/// Signs with aws-lc, which does not choose the lower s.
fn by_aws_lc<C: EcdsaCurve>(key: &Key<C>, algorithm: &'static EcdsaSigningAlgorithm, message: &[u8]) -> Vec<u8> {
    let public = uncompressed_key(&key.public).unwrap();
    let secret = key.secret.encode();
    let pair = EcdsaKeyPair::from_private_key_and_public_key(algorithm, secret.as_ref(), &public).unwrap();
    pair.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec()
}

fn verdict<C: EcdsaCurve>(key: &Key<C>, message: &[u8], signature: &[u8; 64]) -> bool {
    let verdict = key.public.verify(message, signature, &[]);
    if low::<C>(*signature) == *signature || !C::LOW_S {
        verdict.is_ok()
    } else {
        assert_eq!(verdict, Err(VerifyError::HighS.into()));
        key.public.verify(message, &other::<C>(signature), &[]).is_ok()
    }
}

fn ours_and_aws_lcs<C: EcdsaCurve>(
    [fixed_signing, asn1_signing]: [&'static EcdsaSigningAlgorithm; 2],
    accepts: impl Fn(bool, &[u8], &[u8], &[u8]) -> bool,
) {
    for seed in 0..10 {
        let key = Key::<C>::new(seed);
        let message = format!("message {seed}");
        let fixed = by_aws_lc(&key, fixed_signing, message.as_bytes()).try_into().unwrap();
        assert!(verdict(&key, message.as_bytes(), &fixed) && !verdict(&key, b"another", &fixed));
        let der = by_aws_lc(&key, asn1_signing, message.as_bytes());
        let signature = from_der(&der).unwrap();
        assert_eq!(to_der(&signature), Some(der));
        assert!(verdict(&key, message.as_bytes(), &signature));
        let ours = key.sign(message.as_bytes(), seed);
        for public in [&uncompressed_key(&key.public).unwrap()[..], key.public.verifying_key_bytes()] {
            assert!(accepts(false, public, message.as_bytes(), &ours));
            assert!(accepts(true, public, message.as_bytes(), &to_der(&ours).unwrap()));
            assert!(!accepts(false, public, b"another", &ours));
        }
    }
}

#[test]
fn aws_lc_agrees_on_p256() {
    ours_and_aws_lcs::<P256Sha256>(
        [&ECDSA_P256_SHA256_FIXED_SIGNING, &ECDSA_P256_SHA256_ASN1_SIGNING],
        |der, public, message, signature| {
            let algorithm = if der { &ECDSA_P256_SHA256_ASN1 } else { &ECDSA_P256_SHA256_FIXED };
            UnparsedPublicKey::new(algorithm, public).verify(message, signature).is_ok()
        },
    );
}

#[test]
fn aws_lc_agrees_on_secp256k1() {
    ours_and_aws_lcs::<Secp256k1Sha256>(
        [&ECDSA_P256K1_SHA256_FIXED_SIGNING, &ECDSA_P256K1_SHA256_ASN1_SIGNING],
        |der, public, message, signature| {
            let algorithm = if der { &ECDSA_P256K1_SHA256_ASN1 } else { &ECDSA_P256K1_SHA256_FIXED };
            UnparsedPublicKey::new(algorithm, public).verify(message, signature).is_ok()
        },
    );
}

/// Bitcoin's library makes and takes low s alone, as we do.
#[test]
fn libsecp256k1_agrees() {
    for seed in 0..20 {
        let key = Key::<Secp256k1Sha256>::new(seed);
        let text = format!("message {seed}");
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let message = secp256k1::Message::from_digest(digest);
        let secret = secp256k1::SecretKey::from_secret_bytes(key.secret.encode()).unwrap();
        let public = secp256k1::PublicKey::from_slice(key.public.verifying_key_bytes()).unwrap();
        let theirs = secp256k1::ecdsa::sign(message, &secret);
        assert_eq!(key.public.verify(text.as_bytes(), &theirs.serialize_compact(), &[]), Ok(()));
        assert_eq!(key.public.verify_digest(&digest, &theirs.serialize_compact()), Ok(()));
        assert_eq!(to_der(&theirs.serialize_compact()).unwrap(), theirs.serialize_der().as_ref());
        let ours = low::<Secp256k1Sha256>(key.sign(text.as_bytes(), seed));
        for (signature, good) in [(ours, true), (other::<Secp256k1Sha256>(&ours), false)] {
            let read = secp256k1::ecdsa::Signature::from_compact(&signature).unwrap();
            assert_eq!(secp256k1::ecdsa::verify(&read, message, &public).is_ok(), good);
            assert_eq!(key.public.verify(text.as_bytes(), &signature, &[]).is_ok(), good);
        }
    }
}

/// The recovery id is the one that Bitcoin's library finds, and with which it finds the key.
#[test]
fn libsecp256k1_finds_the_key_by_the_recovery_id() {
    let mut seen = [0; 2];
    for seed in 0..20 {
        let key = Key::<Secp256k1Sha256>::new(seed);
        let digest: [u8; 32] = Sha256::digest(seed.to_be_bytes()).into();
        let message = secp256k1::Message::from_digest(digest);
        let secret = secp256k1::SecretKey::from_secret_bytes(key.secret.encode()).unwrap();
        let public = secp256k1::PublicKey::from_slice(key.public.verifying_key_bytes()).unwrap();
        let (their_id, theirs) =
            secp256k1::ecdsa::RecoverableSignature::sign_ecdsa_recoverable(message, &secret).serialize_compact();
        let id = vartime_recovery_id(&key.public, &digest, &theirs).unwrap();
        assert_eq!(secp256k1::ecdsa::RecoveryId::try_from(i32::from(id)).unwrap(), their_id);
        seen[usize::from(id)] += 1;
        let ours = low::<Secp256k1Sha256>(key.sign_digest(&digest, seed));
        let id = vartime_recovery_id(&key.public, &digest, &ours).unwrap();
        let id = secp256k1::ecdsa::RecoveryId::try_from(i32::from(id)).unwrap();
        let recoverable = secp256k1::ecdsa::RecoverableSignature::from_compact(&ours, id).unwrap();
        assert_eq!(recoverable.recover(message).unwrap(), public);
        // Of what is no signature of the digest there is none.
        assert_eq!(vartime_recovery_id(&key.public, &[7; 32], &ours), None);
        assert_eq!(vartime_recovery_id(&Key::<Secp256k1Sha256>::new(seed + 100).public, &digest, &ours), None);
        assert_eq!(vartime_recovery_id(&key.public, &digest, &ours[1..]), None);
        assert_eq!(vartime_recovery_id(&key.public, &digest, &other::<Secp256k1Sha256>(&ours)), None);
    }
    assert!(seen.iter().all(|times| *times > 2), "{seen:?}");
}

/// Signs with the `openssl` command and verifies its signatures, as DER.
fn openssl<C: EcdsaCurve>(curve: &str) {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new("openssl").current_dir(folder.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    fs::write(folder.path().join("message"), b"what is to be signed").unwrap();
    run(&["ecparam", "-name", curve, "-genkey", "-noout", "-out", "key.pem"]);
    run(&["dgst", "-sha256", "-sign", "key.pem", "-out", "theirs", "message"]);
    let text = String::from_utf8(run(&["ec", "-in", "key.pem", "-noout", "-text"])).unwrap();
    let digits = text.split("priv:").nth(1).unwrap().split("pub:").next().unwrap();
    let secret: String = digits.chars().filter(char::is_ascii_hexdigit).collect();
    let secret = hex::decode(secret).unwrap();
    let secret = [vec![0; 33], secret].concat();
    let key = Key::<C>::of(Scalar::decode(&secret[secret.len() - 32..]).unwrap());
    let theirs = from_der(&fs::read(folder.path().join("theirs")).unwrap()).unwrap();
    assert!(verdict(&key, b"what is to be signed", &theirs) && !verdict(&key, b"something else", &theirs));
    fs::write(folder.path().join("ours"), to_der(&key.sign(b"what is to be signed", 1)).unwrap()).unwrap();
    run(&["ec", "-in", "key.pem", "-pubout", "-out", "public.pem"]);
    run(&["dgst", "-sha256", "-verify", "public.pem", "-signature", "ours", "message"]);
}

#[test]
fn openssl_agrees() {
    openssl::<P256Sha256>("prime256v1");
    openssl::<Secp256k1Sha256>("secp256k1");
}

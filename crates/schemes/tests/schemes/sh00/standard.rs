//! Signatures are ordinary RSA signatures: OpenSSL and aws-lc accept them and refuse changed ones.

use std::fs;
use std::path::Path;
use std::process::Command;

use aws_lc_rs::signature::{
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, UnparsedPublicKey,
};
use theta_schemes::keys::{AnyPublicKey, SchemeError};
use theta_schemes::{Suite, VerifyError};

use crate::sh00::fixture::{SUITES, borrow, key, rng, shares, statement};
use crate::suites::fixture::assert_unverified;

/// Whether the `openssl` command takes the signature.
fn openssl_accepts(folder: &Path, suite: Suite, public: &AnyPublicKey, message: &[u8], signature: &[u8]) -> bool {
    for (name, content) in [("key.der", public.public_key_bytes()), ("message", message), ("signature", signature)] {
        fs::write(folder.join(name), content).unwrap();
    }
    let digest = if suite == Suite::Sh00Pkcs1Sha512 { "-sha512" } else { "-sha256" };
    let mut command = Command::new("openssl");
    command.current_dir(folder).args([
        "dgst",
        digest,
        "-keyform",
        "DER",
        "-verify",
        "key.der",
        "-signature",
        "signature",
    ]);
    if suite == Suite::Sh00PssSha256 {
        command.args(["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:32"]);
        command.args(["-sigopt", "rsa_mgf1_md:sha256"]);
    }
    let output = command.arg("message").output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).contains("Verified OK");
    assert_eq!(told, output.status.success(), "{output:?}");
    told
}

fn aws_lc_accepts(suite: Suite, public: &AnyPublicKey, message: &[u8], signature: &[u8]) -> bool {
    let algorithm = match suite {
        Suite::Sh00Pkcs1Sha512 => &RSA_PKCS1_2048_8192_SHA512,
        Suite::Sh00PssSha256 => &RSA_PSS_2048_8192_SHA256,
        _ => &RSA_PKCS1_2048_8192_SHA256,
    };
    UnparsedPublicKey::new(algorithm, public.public_key_bytes()).verify(message, signature).is_ok()
}

fn check(suite: Suite, bits: u32, k: u16, n: u16) {
    let folder = tempfile::tempdir().unwrap();
    let (public, keys) = key(suite, bits, k, n, u64::from(bits));
    let name = b"what is to be signed";
    let statement = statement(suite, name);
    let all = shares(&public, &keys, &statement);
    let combined = public.combine(&statement, &borrow(&all), &mut rng(1)).unwrap();
    // A coin's proof is the signature of the name after a tag.
    let (message, signature) = match suite {
        Suite::Cks05Sh00 => ([b"theta/cks05-sh00/name/v1/", &name[..]].concat(), combined.proof),
        _ => (name.to_vec(), combined.result.expose().clone()),
    };
    assert_eq!(signature.len(), bits as usize / 8);
    let accepted = |message: &[u8], signature: &[u8]| {
        let openssl = openssl_accepts(folder.path(), suite, &public, message, signature);
        if bits >= 2048 {
            assert_eq!(aws_lc_accepts(suite, &public, message, signature), openssl);
        }
        if suite != Suite::Cks05Sh00 {
            assert_eq!(public.verify(message, signature, &[]).is_ok(), openssl);
        }
        openssl
    };
    assert!(accepted(&message, &signature));
    assert!(!accepted(b"something else", &signature));
    for position in [0, 1, signature.len() / 2, signature.len() - 1] {
        let mut flipped = signature.clone();
        flipped[position] ^= 1;
        assert!(!accepted(&message, &flipped), "byte {position}");
    }
}

#[test]
fn short_keys_are_ordinary_keys() {
    SUITES.into_iter().for_each(|suite| check(suite, 1024, 2, 3));
}

#[test]
fn keys_of_2048_bits_are_ordinary_keys() {
    SUITES.into_iter().for_each(|suite| check(suite, 2048, 3, 5));
}

#[test]
fn keys_of_3072_bits_are_ordinary_keys() {
    check(Suite::Sh00PssSha256, 3072, 2, 3);
}

#[test]
fn keys_of_4096_bits_are_ordinary_keys() {
    check(Suite::Sh00Pkcs1Sha512, 4096, 2, 3);
}

#[test]
fn a_coin_is_its_signature() {
    let (public, keys) = key(Suite::Cks05Sh00, 1024, 2, 3, 1);
    let flip = |name: &[u8]| {
        let statement = statement(Suite::Cks05Sh00, name);
        public.combine(&statement, &borrow(&shares(&public, &keys, &statement)), &mut rng(1)).unwrap()
    };
    let (coin, other) = (flip(b"coin"), flip(b"other"));
    let (value, proof) = (coin.result.expose(), &coin.proof);
    public.verify(b"coin", value, proof).unwrap();
    assert_ne!(value, other.result.expose());
    assert_eq!(public.verify(b"other", value, proof), Err(SchemeError::Verify(VerifyError::Invalid)));
    assert_eq!(public.verify(b"coin", other.result.expose(), proof), Err(SchemeError::Verify(VerifyError::Invalid)));
    assert_eq!(
        public.verify(b"coin", other.result.expose(), &other.proof),
        Err(SchemeError::Verify(VerifyError::Invalid))
    );
    assert_unverified(public.verify(b"coin", &value[1..], proof));
    for position in [0, 31] {
        let mut flipped = value.clone();
        flipped[position] ^= 0x80;
        assert_eq!(public.verify(b"coin", &flipped, proof), Err(SchemeError::Verify(VerifyError::Invalid)));
    }
    // The same number in one more byte, and the signature plus N, would be other coins of one name.
    for forged in [[&[0], &proof[..]].concat(), vec![], vec![0xff; proof.len()]] {
        let value = <sha2::Sha256 as sha2::Digest>::digest(&forged);
        assert_unverified(public.verify(b"coin", &value, &forged));
    }
}

//! The binary form of shares: what is known of it, and that a share has no other.

use std::{fs, path::Path};

use serde_json::Value;
use theta_groups::{DecodeError, Secret};
use theta_keyfiles::{KeyShareText, PublicKeyText};
use theta_names::codec;
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyKind, ShareBytesError, ShareError, import_any};
use theta_sharing::Threshold;

use crate::suites::fixture::{curve_suites, index, key, rng};

/// Bytes before the secret: format, key id, index.
const HEAD: usize = 35;

fn vector(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(file);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The key and the shares whose files a vector has.
fn known(file: &str) -> (AnyPublicKey, Vec<AnyKeyShare>) {
    let vector = vector(file);
    let public = AnyPublicKey::from_text(vector["public_key_file"].as_str().unwrap()).unwrap().1;
    let read = |text: &Value| AnyKeyShare::from_text(text.as_str().unwrap(), &public).unwrap().1;
    let shares = vector["share_files"].as_array().unwrap().iter().map(read).collect();
    (public, shares)
}

/// The bytes with others at a place.
fn with(bytes: &[u8], place: usize, other: &[u8]) -> Vec<u8> {
    [&bytes[..place], other, &bytes[place + other.len()..]].concat()
}

fn refusal(public: &AnyPublicKey, bytes: &[u8]) -> ShareBytesError {
    AnyKeyShare::from_bytes(public, bytes).unwrap_err()
}

fn length(expected: usize, got: usize) -> ShareBytesError {
    ShareBytesError::Share(ShareError::Encoding(DecodeError::Length { expected, got }))
}

/// Reads the bytes, which must be those of this share of this key.
fn read_again(public: &AnyPublicKey, share: &AnyKeyShare, bytes: &[u8]) {
    let again = AnyKeyShare::from_bytes(public, bytes).unwrap();
    assert_eq!((again.suite(), again.key_id(), again.index()), (share.suite(), share.key_id(), share.index()));
    assert_eq!(again.secret_bytes().expose(), share.secret_bytes().expose());
}

#[test]
fn shares_have_the_known_bytes() {
    let forms = vector("keys/shares.json");
    let mut kinds = Vec::new();
    for (file, known_bytes) in forms["shares"].as_object().unwrap() {
        let (public, shares) = known(file);
        let known_bytes = known_bytes.as_array().unwrap();
        assert_eq!(shares.len(), known_bytes.len(), "{file}");
        for (share, form) in shares.iter().zip(known_bytes) {
            let bytes = hex::decode(form.as_str().unwrap()).unwrap();
            assert_eq!(share.to_bytes().expose(), &bytes, "{file}, party {}", share.index());
            read_again(&public, share, &bytes);
        }
        kinds.push(public.suite().key_kind());
    }
    assert!(kinds.contains(&KeyKind::Curve) && kinds.contains(&KeyKind::Rsa));
}

/// A vector that grew would have left a copy of the secret behind.
#[test]
fn shares_of_all_suites_on_curves_are_read_as_they_were_written() {
    for suite in curve_suites() {
        let (public, shares) = key(suite, 2, 3, 1);
        for share in &shares {
            let bytes = share.to_bytes();
            assert_eq!(bytes.expose().len(), HEAD + public.share_secret_len(), "{suite}");
            assert_eq!(bytes.expose().capacity(), bytes.expose().len(), "{suite}");
            read_again(&public, share, bytes.expose());
        }
    }
}

#[test]
fn no_other_bytes_are_a_share() {
    for suite in [Suite::FrostEd25519, Suite::Sg02P256] {
        let (public, shares) = key(suite, 2, 3, 1);
        let bytes = shares[0].to_bytes();
        let bytes = bytes.expose();
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let changed = with(bytes, place, &[bytes[place] ^ (1 << bit)]);
                assert!(AnyKeyShare::from_bytes(&public, &changed).is_err(), "{suite}, byte {place}");
            }
            assert!(AnyKeyShare::from_bytes(&public, &bytes[..place]).is_err(), "{suite}, {place} bytes");
        }
    }
}

#[test]
fn each_departure_on_a_curve_is_named() {
    let (public, shares) = key(Suite::FrostEd25519, 2, 3, 1);
    let bytes = shares[0].to_bytes().expose().clone();
    assert_eq!((bytes[0], &bytes[1..33], &bytes[33..HEAD]), (1, &public.key_id().as_bytes()[..], &[0, 1][..]));
    assert_eq!((bytes.len(), &bytes[HEAD..]), (HEAD + 32, &shares[0].secret_bytes().expose()[..]));
    let text = shares[0].to_text(&"zone".parse().unwrap());
    assert_eq!(refusal(&public, text.expose().as_bytes()), ShareBytesError::Format(b'#'));
    let truncated = ShareBytesError::Fields(codec::DecodeError::Truncated);
    for len in [0, 1, 32, 34] {
        assert_eq!(refusal(&public, &bytes[..len]), truncated, "{len} bytes");
    }
    let nobody = ShareBytesError::Fields(codec::DecodeError::Field("the index of a share"));
    assert_eq!(refusal(&public, &with(&bytes, 33, &[0, 0])), nobody);
    for other in [2_u16, 4] {
        let mismatch = ShareBytesError::Share(ShareError::Mismatch(index(other)));
        assert_eq!(refusal(&public, &with(&bytes, 33, &other.to_be_bytes())), mismatch);
    }
    assert_eq!(refusal(&public, &bytes[..HEAD]), length(32, 0));
    assert_eq!(refusal(&public, &bytes[..bytes.len() - 1]), length(32, 31));
    assert_eq!(refusal(&public, &[&bytes[..], &[0]].concat()), length(32, 33));
    // 2^256 - 1 is not below the order.
    let large = ShareBytesError::Share(ShareError::Encoding(DecodeError::NotCanonical));
    assert_eq!(refusal(&public, &with(&bytes, HEAD, &[0xff; 32])), large);
}

/// Keys of two suites on one group may have the same secret: the key id, which covers the suite, tells their shares apart.
#[test]
fn a_share_of_another_key_is_named() {
    let secret = Secret::new(vec![7; 32]);
    let import = |suite| import_any(suite, Threshold::new(2, 3).unwrap(), &secret, &mut rng(1)).unwrap();
    let ((public, shares), (other, others)) = (import(Suite::Sg02P256), import(Suite::Cks05P256));
    assert_eq!(shares[0].secret_bytes().expose(), others[0].secret_bytes().expose());
    let error = refusal(&other, shares[0].to_bytes().expose());
    assert_eq!(error, ShareBytesError::OtherKey { found: *public.key_id(), expected: *other.key_id() });
    let ids = [&public, &other].map(|key| key.key_id().abbreviated());
    let said = format!("it is of key {}, and the public part beside it is that of key {}", ids[0], ids[1]);
    assert_eq!(error.to_string(), said);
}

/// An exponent has as many bytes as N, and is below N / 4.
#[test]
fn each_departure_of_an_rsa_share_is_named() {
    let (public, shares) = known("sh00/sh00-pkcs1-sha256.json");
    let bytes = shares[2].to_bytes();
    assert_eq!(bytes.expose().capacity(), HEAD + 256);
    let bytes = bytes.expose();
    assert_eq!((bytes.len(), &bytes[33..HEAD]), (HEAD + 256, &[0, 3][..]));
    assert_eq!(refusal(&public, &bytes[..bytes.len() - 1]), length(256, 255));
    assert_eq!(refusal(&public, &[&bytes[..], &[0]].concat()), length(256, 257));
    let large = ShareBytesError::Share(ShareError::Encoding(DecodeError::NotCanonical));
    assert_eq!(refusal(&public, &with(bytes, HEAD, &[0x40])), large);
    let other = with(bytes, bytes.len() - 1, &[bytes[bytes.len() - 1] ^ 1]);
    assert_eq!(refusal(&public, &other), ShareBytesError::Share(ShareError::Mismatch(index(3))));
}

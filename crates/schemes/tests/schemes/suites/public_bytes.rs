//! The binary form of public parts: what is known of it, and that a key has no other.

use theta_groups::DecodeError;
use theta_keyfiles::PublicKeyText;
use theta_names::codec;
use theta_schemes::keys::{AnyPublicKey, KeyKind, Part, PartsError, PublicBytesError, PublicKeyError};
use theta_schemes::{Suite, UnknownSuite};

use crate::suites::fixture::{curve_suites, key, vector};

/// The key whose `.pub` file a vector has.
fn known(file: &str) -> AnyPublicKey {
    AnyPublicKey::from_text(vector(file)["public_key_file"].as_str().unwrap()).unwrap().1
}

/// The bytes with others at a place.
fn with(bytes: &[u8], place: usize, other: &[u8]) -> Vec<u8> {
    [&bytes[..place], other, &bytes[place + other.len()..]].concat()
}

fn refusal(bytes: &[u8]) -> PublicBytesError {
    AnyPublicKey::from_bytes(bytes).unwrap_err()
}

fn encoding(part: Part, error: DecodeError) -> PublicBytesError {
    PublicBytesError::Parts(PartsError::Encoding { part, error })
}

#[test]
fn keys_have_the_known_bytes() {
    let forms = vector("keys/binary.json");
    let mut kinds = Vec::new();
    for (file, form) in forms["keys"].as_object().unwrap() {
        let (public, bytes) = (known(file), hex::decode(form.as_str().unwrap()).unwrap());
        assert_eq!(public.to_bytes(), bytes, "{file}");
        kinds.push(public.suite().key_kind());
        assert_eq!(AnyPublicKey::from_bytes(&bytes), Ok(public), "{file}");
    }
    assert!(kinds.contains(&KeyKind::Curve) && kinds.contains(&KeyKind::Rsa));
}

#[test]
fn keys_of_all_suites_on_curves_are_read_as_they_were_written() {
    for suite in curve_suites() {
        let (public, _) = key(suite, 2, 3, 1);
        assert_eq!(AnyPublicKey::from_bytes(&public.to_bytes()), Ok(public), "{suite}");
    }
}

#[test]
fn what_is_read_is_written_again_as_it_was() {
    for suite in [Suite::FrostEd25519, Suite::Sg02P256] {
        let bytes = key(suite, 2, 3, 1).0.to_bytes();
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let changed = with(&bytes, place, &[bytes[place] ^ (1 << bit)]);
                if let Ok(other) = AnyPublicKey::from_bytes(&changed) {
                    // Points on a line are on a parabola, too: k alone may be another.
                    assert!(other.threshold().k() > 2, "{suite}, byte {place}");
                    assert_eq!(other.to_bytes(), changed, "{suite}, byte {place}");
                }
            }
            assert!(AnyPublicKey::from_bytes(&bytes[..place]).is_err(), "{suite}, {place} bytes");
        }
    }
}

/// Format and suite take 15 bytes, k, n and the length of a point two each; points have 32.
#[test]
fn each_departure_on_a_curve_is_named() {
    let (public, _) = key(Suite::FrostEd25519, 2, 3, 1);
    let bytes = public.to_bytes();
    assert_eq!((bytes.len(), &bytes[..15]), (15 + 6 + 4 * 32 + 1, &b"\x01\x0dfrost-ed25519"[..]));
    let text = public.to_text(&"zone".parse().unwrap());
    assert_eq!(refusal(text.as_bytes()), PublicBytesError::Format(b'#'));
    assert_eq!(refusal(&[]), PublicBytesError::Fields(codec::DecodeError::Truncated));
    let unknown = with(&bytes, 2, b"frost-ed25518");
    assert_eq!(refusal(&unknown), PublicBytesError::Suite(UnknownSuite("frost-ed25518".to_owned())));
    let of_rsa = [&b"\x01\x11sh00-pkcs1-sha256"[..], &bytes[15..]].concat();
    assert_eq!(refusal(&of_rsa), PublicBytesError::Fields(codec::DecodeError::Truncated));
    let no_threshold = with(&bytes, 15, &[0, 0]);
    assert_eq!(refusal(&no_threshold), PublicBytesError::Fields(codec::DecodeError::Field("a threshold")));
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(refusal(&longer), PublicBytesError::Fields(codec::DecodeError::Trailing));
    let with_proof = [&bytes[..bytes.len() - 1], &[1, 0, 0, 0, 1, 9]].concat();
    assert_eq!(refusal(&with_proof), PublicBytesError::Parts(PartsError::Parts(PublicKeyError::ProofOfPossession)));
    let swapped = [&bytes[..53], &bytes[85..117], &bytes[53..85], &bytes[117..]].concat();
    assert_eq!(refusal(&swapped), PublicBytesError::Parts(PartsError::Parts(PublicKeyError::Inconsistent)));
    // y = 2^255 - 1 is not below the prime.
    let large = with(&bytes, 21, &[0xff; 32]);
    assert_eq!(refusal(&large), encoding(Part::PublicKey, DecodeError::NotCanonical));
}

/// Format and suite take 19 bytes, k, n and the length of N two each; N and residues have 256.
#[test]
fn each_departure_of_an_rsa_key_is_named() {
    let bytes = known("sh00/sh00-pkcs1-sha256.json").to_bytes();
    assert_eq!(&bytes[19..25], [0, 2, 0, 3, 1, 0]);
    assert_eq!(bytes.len(), 25 + 5 * 256);
    let shorter = &bytes[..bytes.len() - 1];
    assert_eq!(refusal(shorter), PublicBytesError::Fields(codec::DecodeError::Truncated));
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(refusal(&longer), PublicBytesError::Fields(codec::DecodeError::Trailing));
    let empty = with(&bytes, 23, &[0, 0]);
    assert_eq!(refusal(&empty), PublicBytesError::Fields(codec::DecodeError::Field("the length of a modulus")));
    let even = with(&bytes, 280, &[bytes[280] ^ 1]);
    assert_eq!(refusal(&even), encoding(Part::Modulus, DecodeError::NotCanonical));
    let large = with(&bytes, 281, &[0xff; 256]);
    assert_eq!(refusal(&large), encoding(Part::VerificationBase, DecodeError::NotCanonical));
    let large = with(&bytes, 537, &[0xff; 256]);
    assert_eq!(refusal(&large), encoding(Part::VerificationKey(1), DecodeError::NotCanonical));
}

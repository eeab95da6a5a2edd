//! The binary form of shares: what is known of it, and that a share has no other.

use theta_groups::{DecodeError, Secret};
use theta_keyfiles::{KeyShareText as _, PublicKeyText as _};
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, ShareBytesError, ShareError, import_any};
use theta_sharing::Threshold;

use crate::suites::fixture::{curve_suites, index, key, rng, vector};

fn same(one: &AnyKeyShare, other: &AnyKeyShare) -> bool {
    (one.suite(), one.key_id(), one.index()) == (other.suite(), other.key_id(), other.index())
        && one.secret_bytes().expose() == other.secret_bytes().expose()
}

/// Of keys on curves, and of RSA keys.
#[test]
fn shares_have_the_known_bytes() {
    let forms = vector("keys/binary.json");
    let mut count = 0;
    for (file, forms) in forms["shares"].as_object().unwrap() {
        let files = vector(file);
        let public = AnyPublicKey::from_text(files["public_key_file"].as_str().unwrap()).unwrap().1;
        for (text, form) in files["share_files"].as_array().unwrap().iter().zip(forms.as_array().unwrap()) {
            let share = AnyKeyShare::from_text(text.as_str().unwrap(), &public).unwrap().1;
            let bytes = hex::decode(form.as_str().unwrap()).unwrap();
            assert_eq!(share.to_bytes().expose(), &bytes, "{file}");
            assert!(same(&AnyKeyShare::from_bytes(&bytes, &public).unwrap(), &share), "{file}");
            count += 1;
        }
    }
    assert!(count > 20 && forms["shares"]["sh00/sh00-pkcs1-sha256.json"].is_array(), "{count}");
}

#[test]
fn shares_of_all_suites_on_curves_are_read_as_they_were_written() {
    for suite in curve_suites() {
        let (public, shares) = key(suite, 2, 3, 1);
        for share in &shares {
            let bytes = share.to_bytes();
            // Nothing was copied while it grew.
            assert_eq!(bytes.expose().capacity(), bytes.expose().len(), "{suite}");
            assert!(same(&AnyKeyShare::from_bytes(bytes.expose(), &public).unwrap(), share), "{suite}");
        }
    }
}

#[test]
fn each_departure_is_named() {
    let (public, shares) = key(Suite::Sg02P256, 2, 3, 1);
    let (other, _) = key(Suite::Sg02P256, 2, 3, 2);
    let bytes = shares[0].to_bytes().expose().clone();
    assert_eq!(bytes.len(), 35 + 32);
    let refusal = |bytes: &[u8]| AnyKeyShare::from_bytes(bytes, &public).unwrap_err();
    let with = |place: usize, byte: u8| {
        let mut bent = bytes.clone();
        bent[place] = byte;
        bent
    };
    assert_eq!(refusal(&with(0, b'#')), ShareBytesError::Format(b'#'));
    for got in [0, 34, 66, 68] {
        let mut bent = bytes.clone();
        bent.resize(got, 0);
        assert_eq!(refusal(&bent), ShareBytesError::Length { expected: 67, got });
    }
    let of_other = AnyKeyShare::from_bytes(&bytes, &other).unwrap_err();
    assert_eq!(of_other, ShareBytesError::OtherKey { found: *public.key_id(), expected: *other.key_id() });
    assert_eq!(refusal(&with(34, 0)), ShareBytesError::Index(0));
    assert_eq!(refusal(&with(34, 4)), ShareBytesError::Index(4));
    assert_eq!(refusal(&with(33, 1)), ShareBytesError::Index(257));
    let mismatch = |index: u16| ShareBytesError::Share(ShareError::Mismatch(index.try_into().unwrap()));
    assert_eq!(refusal(&with(34, 2)), mismatch(2));
    assert_eq!(refusal(&with(66, bytes[66] ^ 1)), mismatch(1));
    let large = [&bytes[..35], &[0xff; 32]].concat();
    assert_eq!(refusal(&large), ShareBytesError::Share(ShareError::Encoding(DecodeError::NotCanonical)));
}

#[test]
fn no_other_bytes_are_a_share() {
    for suite in [Suite::FrostEd25519, Suite::Sg02P256] {
        let (public, shares) = key(suite, 2, 3, 1);
        let bytes = shares[0].to_bytes().expose().clone();
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut bent = bytes.clone();
                bent[place] ^= 1 << bit;
                assert!(AnyKeyShare::from_bytes(&bent, &public).is_err(), "{suite}, byte {place}");
            }
            assert!(AnyKeyShare::from_bytes(&bytes[..place], &public).is_err(), "{suite}, {place} bytes");
        }
    }
}

/// Keys of two suites on one group may have the same secret: the key id, which covers the suite, tells their shares apart.
#[test]
fn a_share_is_not_one_of_another_suite() {
    let secret = Secret::new(vec![7; 32]);
    let import = |suite| import_any(suite, Threshold::new(2, 3).unwrap(), &secret, &mut rng(1)).unwrap();
    let ((public, shares), (other, others)) = (import(Suite::Sg02P256), import(Suite::Cks05P256));
    assert_eq!(shares[0].secret_bytes().expose(), others[0].secret_bytes().expose());
    let error = AnyKeyShare::from_bytes(shares[0].to_bytes().expose(), &other).unwrap_err();
    assert_eq!(error, ShareBytesError::OtherKey { found: *public.key_id(), expected: *other.key_id() });
}

/// An exponent has as many bytes as N, and is below N / 4.
#[test]
fn each_departure_of_an_rsa_share_is_named() {
    let files = vector("sh00/sh00-pkcs1-sha256.json");
    let public = AnyPublicKey::from_text(files["public_key_file"].as_str().unwrap()).unwrap().1;
    let share = AnyKeyShare::from_text(files["share_files"][2].as_str().unwrap(), &public).unwrap().1;
    let bytes = share.to_bytes().expose().clone();
    assert_eq!((bytes.len(), &bytes[33..35]), (35 + 256, &[0, 3][..]));
    let refusal = |bytes: &[u8]| AnyKeyShare::from_bytes(bytes, &public).unwrap_err();
    for got in [35, 290, 292] {
        let mut bent = bytes.clone();
        bent.resize(got, 0);
        assert_eq!(refusal(&bent), ShareBytesError::Length { expected: 291, got });
    }
    let mut large = bytes.clone();
    large[35] = 0x40;
    assert_eq!(refusal(&large), ShareBytesError::Share(ShareError::Encoding(DecodeError::NotCanonical)));
    let mut other = bytes;
    other[290] ^= 1;
    assert_eq!(refusal(&other), ShareBytesError::Share(ShareError::Mismatch(index(3))));
}

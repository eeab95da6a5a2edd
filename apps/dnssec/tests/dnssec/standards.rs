//! The examples of the standards: their signatures are good, so the bytes are what their signers signed, and from the digests of these bytes the agent
//! finds them.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64ct::{Base64, Encoding as _};
use sha2::{Digest as _, Sha256};
use theta_dnssec::{
    consent::{Terms, consent},
    denial::Denial,
    digests::{Current, Guesses, Recogniser, candidates::Candidates, moments::Style},
    keys::Keys,
    signed::SignedSet,
    zone::Zone,
};

use crate::zones::{NONE, owner};

/// RFC 6605, section 6.1.
const P256: &str = "GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA==";
const P256_SIGNATURE: &str = "qx6wLYqmh+l9oCKTN6qIc+bw6ya+KJ8oMz0YP107epXAyGmt+3SNruPFKG7tZoLBLlUzGGus7ZwmwWep666VCw==";
/// RFC 5702, section 6.1. What its signature is of follows from it with arithmetic that is not here; this is what comes out.
const RSA: &str = "AwEAAcFcGsaxxdgiuuGmCkVImy4h99CqT7jwY3pexPGcnUFtR2Fh36BponcwtkZ4cAgtvd4Qs8PkxUdp6p/DlUmObdk=";
const RSA_DIGEST: &str = "1f3cb0b430354865876f3a70a5d34ed10a4346fd67869aca7b824bf9218d90cc";

fn www(algorithm: u8, tag: u16, inception: u32, expiration: u32, address: [u8; 4]) -> SignedSet {
    let (signer, owner) = (owner("example.net"), owner("www.example.net"));
    SignedSet {
        rtype: 1,
        algorithm,
        labels: 3,
        ttl: 3_600,
        expiration,
        inception,
        tag,
        signer,
        owner,
        data: [address.to_vec()].into(),
    }
}

/// What an agent with one address says of a digest.
fn ask(key: &str, address: &str, style: Style, digest: &[u8], now: u64) -> Result<Vec<u8>, String> {
    let text = format!("@ 3600 IN SOA ns root 1 2 3 4 5\nwww 3600 IN A {address}\n");
    let zone = Zone::parse(text.as_bytes(), "example.net.").unwrap();
    let keys = Keys::parse(key).unwrap();
    let guesses = Guesses { styles: vec![style], ..Guesses::of_days(&[]) };
    let candidates = Candidates::new(&zone, &Denial::Names, &keys, &[]);
    let current = Current { candidates: &candidates, offline: None, number: 0 };
    let bytes = Recogniser::new(guesses).recognise("signer", digest, current, now)?;
    consent(&bytes, &zone, &Denial::Names, &keys, &Terms::lasting(u32::MAX), now).map(|()| bytes)
}

#[test]
fn what_rfc_6605_signs_is_recognised_from_its_digest() {
    let (inception, expiration) = (1_281_607_479, 1_284_026_679);
    let bytes = www(13, 55_648, inception, expiration, [192, 0, 2, 1]).write();
    let point = [&[4], &Base64::decode_vec(P256).unwrap()[..]].concat();
    let signature = Base64::decode_vec(P256_SIGNATURE).unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &point).verify(&bytes, &signature).unwrap();

    let digest = Sha256::digest(&bytes);
    let key = format!("257 3 13 {P256}");
    let style = Style { back: 0, lifetime: expiration - inception };
    let now = u64::from(inception);
    for clock in [now - 5, now, now + 3, now + 60] {
        assert_eq!(ask(&key, "192.0.2.1", style, &digest, clock), Ok(bytes.clone()), "{clock}");
    }
    let refused = |key: &str, address, style, clock| {
        assert_eq!(ask(key, address, style, &digest, clock), Err(NONE.to_owned()));
    };
    refused(&key, "192.0.2.0", style, now);
    refused(&key, "192.0.2.1", style, now - 6);
    refused(&key, "192.0.2.1", style, now + 61);
    refused(&key, "192.0.2.1", Style { lifetime: style.lifetime + 1, ..style }, now);
    refused(&format!("257 3 13 A{}", &P256[1..]), "192.0.2.1", style, now);
}

#[test]
fn what_rfc_5702_signs_is_recognised_from_its_digest() {
    let (inception, expiration) = (946_684_800, 1_893_456_000);
    let bytes = www(8, 9_033, inception, expiration, [192, 0, 2, 91]).write();
    let digest = hex::decode(RSA_DIGEST).unwrap();
    assert_eq!(Sha256::digest(&bytes)[..], digest);
    let (key, style) = (format!("256 3 8 {RSA}"), Style { back: 0, lifetime: expiration - inception });
    let now = u64::from(inception);
    assert_eq!(ask(&key, "192.0.2.91", style, &digest, now), Ok(bytes));
    assert_eq!(ask(&key, "192.0.2.90", style, &digest, now), Err(NONE.to_owned()));
}

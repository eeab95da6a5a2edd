//! What verifies and what does not.

use sha2::{Digest as _, Sha256};
use theta_groups::{DecodeError, Scalar};
use theta_schemes::keys::SchemeError;
use theta_schemes::signatures::ecdsa::{Ecdsa, EcdsaCurve, P256Sha256, Secp256k1Sha256, uncompressed_key};
use theta_schemes::{MessageDigest, RequestError, Statement, Suite, VerifyError};

use crate::ecdsa::fixture::{Key, ScalarOf, low, other, raw};
use crate::suites::fixture::{key, rng};

const MESSAGE: &[u8] = b"a message";

fn check<C: EcdsaCurve>() {
    let key = Key::<C>::new(1);
    let verify = |message: &[u8], signature: &[u8]| match key.public.verify(message, signature, &[]) {
        Ok(()) => None,
        Err(SchemeError::Verify(error)) => Some(error),
        Err(other) => panic!("{other}"),
    };
    let invalid = Some(VerifyError::Invalid);
    for number in 0..20 {
        let good = low::<C>(key.sign(MESSAGE, number));
        assert_eq!(verify(MESSAGE, &good), None);
        assert_eq!(key.public.verify_digest(&Sha256::digest(MESSAGE), &good), Ok(()));
        assert_eq!(verify(b"another", &good), invalid);
        assert_eq!(Key::<C>::new(2).public.verify(MESSAGE, &good, &[]), Err(VerifyError::Invalid.into()));
        assert_eq!(verify(MESSAGE, &other::<C>(&good)), C::LOW_S.then_some(VerifyError::HighS));
        for place in 0..64 {
            let mut changed = good;
            changed[place] ^= 1;
            assert!(verify(MESSAGE, &changed).is_some(), "{place}");
        }
    }
    let good = low::<C>(key.sign(MESSAGE, 1));
    for len in [0, 1, 32, 63, 65, 72, 128] {
        let bytes: Vec<u8> = good.into_iter().cycle().take(len).collect();
        let wrong = DecodeError::Length { expected: 64, got: len };
        assert_eq!(verify(MESSAGE, &bytes), Some(VerifyError::Malformed(wrong)));
    }
    // Numbers of 33 bytes.
    assert!(verify(MESSAGE, &[&[0], &good[..32], &[0], &good[32..]].concat()).is_some());
}

/// r and s from 1 to q - 1: zero would make every message valid or none, and r + q is the same number again.
fn check_ranges<C: EcdsaCurve>() {
    let key = Key::<C>::new(1);
    let (zero, one) = (ScalarOf::<C>::ZERO, ScalarOf::<C>::ONE);
    for (r, s) in [(zero, one), (one, zero), (zero, zero)] {
        assert_eq!(key.public.verify(MESSAGE, &raw::<C>(r, s), &[]), Err(VerifyError::Invalid.into()));
    }
    // q itself, and 2^256 - 1.
    let mut order = (-one).encode().as_ref().to_vec();
    *order.last_mut().unwrap() += 1;
    let good = low::<C>(key.sign(MESSAGE, 1));
    for number in [&order[..], &[0xff; 32]] {
        for overlong in [[number, &good[32..]].concat(), [&good[..32], number].concat()] {
            let refused = key.public.verify(MESSAGE, &overlong, &[]);
            assert_eq!(refused, Err(VerifyError::Malformed(DecodeError::NotCanonical).into()));
        }
    }
    // (e G + r X) / s is the identity: e = 1, r = -1, X = G.
    let unit = Key::<C>::of(one);
    let digest = one.encode();
    let refused = unit.public.verify_digest(digest.as_ref(), &raw::<C>(-one, one));
    assert_eq!(refused, Err(VerifyError::Invalid.into()));
}

fn check_digests<C: EcdsaCurve>() {
    let key = Key::<C>::new(3);
    assert_eq!(key.public.message_digest(), Some(MessageDigest::Sha256));
    // Zero, above the order, and the message's own.
    for digest in [[0; 32], [0xff; 32], Sha256::digest(MESSAGE).into()] {
        let signature = low::<C>(key.sign_digest(&digest, 5));
        assert_eq!(key.public.check_request(Statement::SignDigest(&digest)), Ok(()));
        assert_eq!(key.public.verify_digest(&digest, &signature), Ok(()));
        for len in [0, 31, 33, 64] {
            let cut: Vec<u8> = digest.into_iter().cycle().take(len).collect();
            let refused = Err(RequestError::DigestLength { name: "sha256", expected: 32, got: len });
            assert_eq!(key.public.check_request(Statement::SignDigest(&cut)), refused);
            assert_eq!(key.public.verify_digest(&cut, &signature), Err(VerifyError::Invalid.into()));
        }
    }
    assert_eq!(key.public.check_request(Statement::Sign(MESSAGE)), Ok(()));
    assert!(matches!(key.public.check_request(Statement::FlipCoin(MESSAGE)), Err(RequestError::Purpose { .. })));
}

macro_rules! on_both_curves {
    ($($check:ident => $name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            $check::<P256Sha256>();
            $check::<Secp256k1Sha256>();
        }
    )*};
}
on_both_curves!(
    check => a_signature_is_of_one_message_under_one_key,
    check_ranges => numbers_out_of_range_are_refused,
    check_digests => digests_are_signed_for_their_messages,
    check_keys => keys_are_those_of_this_scheme_alone,
);

/// Parties make no shares of signatures that could be combined, and the key answers to its own type.
fn check_keys<C: EcdsaCurve>() {
    let (public, shares) = key(C::SUITE, 2, 3, 1);
    let statement = Statement::Sign(MESSAGE);
    let refused = SchemeError::Preprocessed(C::SUITE);
    assert_eq!(public.create_share(&shares[0], statement, &mut rng(1)), Err(refused.clone()));
    assert_eq!(public.answer(&shares[0], statement).err(), Some(refused.clone()));
    assert_eq!(public.combine(statement, &[], &mut rng(1)).err(), Some(refused));
    let typed = public.get::<Ecdsa<C>>().unwrap();
    assert!(shares.iter().all(|share| typed.matches(share.get::<Ecdsa<C>>().unwrap())));
    let uncompressed = uncompressed_key(&public).unwrap();
    assert_eq!(public.verifying_key_bytes(), public.public_key_bytes());
    assert_eq!((uncompressed[0], &uncompressed[1..33]), (4, &public.public_key_bytes()[1..]));
    for other in Suite::ALL.into_iter().filter(|suite| suite.scheme() != "ECDSA" && suite.group() != "RSA") {
        let (other, _) = key(other, 2, 3, 1);
        assert!(other.get::<Ecdsa<C>>().is_none() && uncompressed_key(&other).is_none());
    }
}

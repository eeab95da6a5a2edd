//! BLS04 against another implementation of the draft.

use blst::{BLST_ERROR, min_pk, min_sig};
use theta_groups::Secret;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, SchemeError, TypedPublicKey, import_any};
use theta_schemes::{StatementBytes, Suite, VerifyError};
use theta_sharing::Threshold;

use crate::suites::fixture::{borrow, rng, shares};

const MIN_PK_DST: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";
const MIN_SIG_DST: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
const MIN_PK_POP_DST: &[u8] = b"BLS_POP_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";
const MIN_SIG_POP_DST: &[u8] = b"BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";

fn import(suite: Suite, secret: [u8; 32]) -> (AnyPublicKey, Vec<AnyKeyShare>) {
    import_any(suite, Threshold::new(3, 5).unwrap(), &Secret::new(secret.to_vec()), &mut rng(1)).unwrap()
}

fn sign(public: &AnyPublicKey, keys: &[AnyKeyShare], message: &[u8]) -> Vec<u8> {
    let statement = StatementBytes::Sign(message.to_vec().into());
    let shares = shares(public, keys, &statement);
    public.combine(&statement, &borrow(&shares[1..4]), &mut rng(2)).unwrap().result.expose().clone()
}

fn invalid() -> Result<(), SchemeError> {
    Err(SchemeError::Verify(VerifyError::Invalid))
}

fn proof_of_possession(public: &AnyPublicKey) -> Vec<u8> {
    match public.typed() {
        TypedPublicKey::Bls12381G1(key) => key.proof_of_possession().unwrap().to_vec(),
        TypedPublicKey::Bls12381G2(key) => key.proof_of_possession().unwrap().to_vec(),
        other => panic!("not a BLS key: {other:?}"),
    }
}

#[test]
fn min_pk_signatures_are_the_standard_ones() {
    for seed in 0..4 {
        let theirs = min_pk::SecretKey::key_gen(&[seed; 32], b"").unwrap();
        let (public, keys) = import(Suite::Bls04MinPk, theirs.to_bytes());
        assert_eq!(public.public_key_bytes(), theirs.sk_to_pk().to_bytes());
        for message in [&b""[..], b"message", &[seed; 1000]] {
            let ours = sign(&public, &keys, message);
            assert_eq!(ours, theirs.sign(message, MIN_PK_DST, b"").to_bytes());
            let key = min_pk::PublicKey::key_validate(public.public_key_bytes()).unwrap();
            let signature = min_pk::Signature::sig_validate(&ours, true).unwrap();
            let verdict = signature.verify(true, message, MIN_PK_DST, b"", &key, true);
            assert_eq!(verdict, BLST_ERROR::BLST_SUCCESS);
            public.verify(message, &theirs.sign(message, MIN_PK_DST, b"").to_bytes(), b"").unwrap();
            let foreign = theirs.sign(message, b"another domain", b"").to_bytes();
            assert_eq!(public.verify(message, &foreign, b""), invalid());
        }
        let proof = theirs.sign(public.public_key_bytes(), MIN_PK_POP_DST, b"");
        assert_eq!(proof_of_possession(&public), proof.to_bytes());
    }
}

#[test]
fn min_sig_signatures_are_the_standard_ones() {
    for seed in 0..4 {
        let theirs = min_sig::SecretKey::key_gen(&[seed; 32], b"").unwrap();
        let (public, keys) = import(Suite::Bls04MinSig, theirs.to_bytes());
        assert_eq!(public.public_key_bytes(), theirs.sk_to_pk().to_bytes());
        for message in [&b""[..], b"message", &[seed; 1000]] {
            let ours = sign(&public, &keys, message);
            assert_eq!(ours, theirs.sign(message, MIN_SIG_DST, b"").to_bytes());
            let key = min_sig::PublicKey::key_validate(public.public_key_bytes()).unwrap();
            let signature = min_sig::Signature::sig_validate(&ours, true).unwrap();
            let verdict = signature.verify(true, message, MIN_SIG_DST, b"", &key, true);
            assert_eq!(verdict, BLST_ERROR::BLST_SUCCESS);
            public.verify(message, &theirs.sign(message, MIN_SIG_DST, b"").to_bytes(), b"").unwrap();
            let foreign = theirs.sign(message, b"another domain", b"").to_bytes();
            assert_eq!(public.verify(message, &foreign, b""), invalid());
        }
        let proof = theirs.sign(public.public_key_bytes(), MIN_SIG_POP_DST, b"");
        assert_eq!(proof_of_possession(&public), proof.to_bytes());
    }
}

#[test]
fn the_identity_and_changed_signatures_do_not_verify() {
    for suite in [Suite::Bls04MinPk, Suite::Bls04MinSig] {
        let (public, keys) = import(suite, [7; 32]);
        let good = sign(&public, &keys, b"message");
        let mut identity = vec![0; good.len()];
        identity[0] = 0xc0;
        for bad in [identity, vec![], good[1..].to_vec(), [&good[..], &[0]].concat()] {
            let verified = public.verify(b"message", &bad, b"");
            assert!(matches!(verified, Err(SchemeError::Verify(VerifyError::Malformed(_)))), "{verified:?}");
        }
        let mut negated = good.clone();
        negated[0] ^= 0x20;
        assert_eq!(public.verify(b"message", &negated, b""), invalid());
        assert_eq!(public.verify(b"other", &good, b""), invalid());
    }
}

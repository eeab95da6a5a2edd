//! Known attacks on careless two-round Schnorr signatures.
//!
//! That a nonce cannot answer two packages is shown by the examples in the module's documentation, which do not compile.

use theta_groups::{Group, Scalar as _};
use theta_schemes::signatures::frost::{
    AggregateError, Frost, FrostSuite, Secp256k1Sha256, Secp256k1Taproot, SigningCommitments, SigningPackage,
};
use theta_schemes::{SignatureScheme, VerifyError};

use crate::frost::fixture::{Scalar, aggregated, commit_all, index, key, session, sign_all};

for_every_frost_suite!(
    every_binding_factor_depends_on_everything,
    commitments_that_cancel_others_do_not,
    debug_shows_no_secrets,
);

/// With many parallel sessions, an attacker forges if it can choose its nonce after the others' without changing their binding
/// factors (Drijvers et al., IEEE S&P 2019; Benhamouda et al., EUROCRYPT 2021). So all factors must change with each
/// commitment, the set of signers, the message and the key.
fn every_binding_factor_depends_on_everything<C: FrostSuite>() {
    let dealt = key::<C>(3, 5, 1);
    let (_, commitments) = commit_all::<C>(&dealt, &[0, 1, 2, 3], 2);
    let (_, others) = commit_all::<C>(&dealt, &[0, 1, 2, 3], 3);
    let factors = |commitments: &[SigningCommitments<C>], message: &[u8]| {
        let package = SigningPackage::new(&dealt.public, commitments.to_vec(), message).unwrap();
        (1..=3).map(|i| package.binding_factor(index(i)).unwrap()).collect::<Vec<_>>()
    };
    let three = &commitments[..3];
    let mut seen = vec![factors(three, b"message"), factors(three, b"another"), factors(&commitments, b"message")];
    let half = C::Group::ENCODED_LEN;
    for changed in 0..3 {
        let (old, new) = (three[changed].encode(), others[changed].encode());
        // The hiding commitment, the binding one, both exchanged.
        for bytes in [
            [&new[..half], &old[half..]].concat(),
            [&old[..half], &new[half..]].concat(),
            [&old[half..], &old[..half]].concat(),
        ] {
            let mut list = three.to_vec();
            list[changed] = SigningCommitments::decode(list[changed].index(), &bytes).unwrap();
            seen.push(factors(&list, b"message"));
        }
    }
    let other_key = key::<C>(3, 5, 4);
    let package = SigningPackage::<C>::new(&other_key.public, three.to_vec(), b"message").unwrap();
    seen.push((1..=3).map(|i| package.binding_factor(index(i)).unwrap()).collect());
    // No two factors are alike, of one party or of two.
    let all: Vec<_> = seen.concat();
    for (i, factor) in all.iter().enumerate() {
        assert!(!all[..i].contains(factor));
        assert_ne!(*factor, Scalar::<C>::ZERO);
    }
}

/// The last signer takes the negated sum of the others' commitments, to leave only its own nonce in R. The binding factors
/// prevent that, and its share is false.
fn commitments_that_cancel_others_do_not<C: FrostSuite>() {
    let dealt = key::<C>(2, 3, 5);
    let (mut nonces, mut commitments) = commit_all::<C>(&dealt, &[0, 1], 6);
    let half = C::Group::ENCODED_LEN;
    let negated: Vec<u8> = commitments[0]
        .encode()
        .chunks(half)
        .flat_map(|point| C::Group::encode(&-C::Group::decode(point).unwrap()).as_ref().to_vec())
        .collect();
    commitments[1] = SigningCommitments::decode(index(2), &negated).unwrap();
    let package = SigningPackage::new(&dealt.public, commitments, b"message").unwrap();
    nonces.truncate(1);
    let mut shares = sign_all(&dealt, &package, nonces);
    shares.push(session::<C>(&dealt, &[0, 1], b"message", 6).1[1]);
    let named = AggregateError::FalseShares(vec![index(2)]);
    assert_eq!(aggregated(&dealt, &package, &shares), Err(named));
}

fn debug_shows_no_secrets<C: FrostSuite>() {
    let dealt = key::<C>(2, 3, 7);
    let (nonces, _) = commit_all::<C>(&dealt, &[1], 8);
    assert_eq!(format!("{:?}", nonces[0]), "SigningNonces(2, <redacted>)");
}

/// The same group and the same secrets in two suites: nothing of one is valid in the other.
#[test]
fn suites_on_one_curve_are_apart() {
    let (plain, taproot) = (key::<Secp256k1Sha256>(2, 3, 9), key::<Secp256k1Taproot>(2, 3, 9));
    assert_eq!(plain.public.public_key(), taproot.public.public_key());
    assert_ne!(plain.public.key_id(), taproot.public.key_id());
    let (package, shares) = session::<Secp256k1Sha256>(&plain, &[0, 1], b"message", 10);
    let (other_package, other_shares) = session::<Secp256k1Taproot>(&taproot, &[0, 1], b"message", 10);
    let signature = aggregated(&plain, &package, &shares).unwrap().encode();
    let other = aggregated(&taproot, &other_package, &other_shares).unwrap().encode();
    assert_ne!(signature[1..], other);
    let reread = Frost::<Secp256k1Taproot>::verify(&taproot.public, b"message", &signature[1..]);
    assert_eq!(reread, Err(VerifyError::Invalid));
    for prefix in [2, 3] {
        let reread = Frost::<Secp256k1Sha256>::verify(&plain.public, b"message", &[&[prefix], &other[..]].concat());
        assert_eq!(reread, Err(VerifyError::Invalid));
    }
}

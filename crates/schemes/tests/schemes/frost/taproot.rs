//! Signatures of BIP-340 under keys of BIP-341.

use std::collections::BTreeMap;

use frost_secp256k1_tr::{aggregate_with_tweak, round2::sign_with_tweak};
use theta_groups::{Group, Scalar as _, Secp256k1};
use theta_schemes::keys::{Dealt, PublicKeySet};
use theta_schemes::signatures::frost::{
    AggregateError, DerivedKey, Frost, FrostSuite, PackageError, Secp256k1Taproot, SigningCommitments, SigningPackage,
    VerifyingKey, commit, sign, verify_share,
};
use theta_schemes::{SignatureScheme, VerifyError};
use theta_sharing::{Encoded, Threshold};

use crate::frost::fixture::{
    Scalar, aggregated, commit_all, index, key, rng, session, shift, sign_all, unhex, vectors,
};
use crate::frost::peers::{identifier, old_rng, our_commitments, our_share, their_commitments, their_share, to_theirs};

type Taproot = Secp256k1Taproot;

fn with_tweak(
    dealt: &Dealt<Secp256k1>,
    root: Option<&[u8; 32]>,
    commitments: Vec<SigningCommitments<Taproot>>,
) -> SigningPackage<Taproot> {
    let key = DerivedKey::taproot(&dealt.public, root).unwrap();
    SigningPackage::with_key(&dealt.public, key, commitments, b"message").unwrap()
}

#[test]
fn output_keys_are_those_of_bip_341() {
    let vectors = vectors(include_str!("../../../../../vectors/bip340/taproot.json"));
    assert_eq!(vectors.len(), 4);
    for vector in vectors {
        // The key may be either of the two points of an x coordinate.
        for prefix in [2, 3] {
            let internal = Encoded::decode(&[&[prefix], &unhex(&vector["internal_key"])[..]].concat()).unwrap();
            let threshold = Threshold::new(1, 1).unwrap();
            let public = PublicKeySet::new::<Frost<Taproot>>(threshold, internal, vec![internal], None).unwrap();
            let root: Option<[u8; 32]> =
                vector["merkle_root"].is_string().then(|| unhex(&vector["merkle_root"]).try_into().unwrap());
            let key = DerivedKey::taproot(&public, root.as_ref()).unwrap();
            assert_eq!(key.verifying_key().bytes(), unhex(&vector["output_key"]));
        }
    }
}

#[test]
fn tweaked_sessions_with_the_other_implementation() {
    for seed in 0..12_u64 {
        let root = Some([u8::try_from(seed).unwrap(); 32]).filter(|_| seed % 3 != 0);
        let ours = key::<Taproot>(2, 3, seed);
        let theirs = to_theirs::<Taproot>(&ours);
        let (nonces, commitments) = commit::<Taproot>(&ours.shares[0], &mut rng(seed));
        let their_key = &theirs.shares[&identifier::<Taproot>(index(3))];
        let (their_nonces, their_part) =
            frost_secp256k1_tr::round1::commit(their_key.signing_share(), &mut old_rng(seed));
        let list = BTreeMap::from([
            (identifier::<Taproot>(index(1)), their_commitments(&commitments)),
            (identifier::<Taproot>(index(3)), their_part),
        ]);
        let package = with_tweak(&ours, root.as_ref(), vec![commitments, our_commitments(index(3), &their_part)]);
        let their_package = frost_secp256k1_tr::SigningPackage::new(list, b"message");
        let root = root.as_ref().map(|root| &root[..]);
        let their_share_3 = sign_with_tweak(&their_package, &their_nonces, their_key, root).unwrap();
        let shares = [sign(&package, nonces, &ours.shares[0]).unwrap(), our_share(index(3), &their_share_3)];
        assert!(shares.iter().all(|share| verify_share(&ours.public, &package, share)));
        let signature = aggregated(&ours, &package, &shares).unwrap().encode();
        let their_shares = BTreeMap::from([
            (identifier::<Taproot>(index(1)), their_share(&shares[0])),
            (identifier::<Taproot>(index(3)), their_share_3),
        ]);
        let their_signature = aggregate_with_tweak(&their_package, &their_shares, &theirs.public, root).unwrap();
        assert_eq!(signature, their_signature.serialize().unwrap());
        package.key().verifying_key().verify(b"message", &signature).unwrap();
        assert_eq!(Frost::<Taproot>::verify(&ours.public, b"message", &signature), Err(VerifyError::Invalid));
    }
}

#[test]
fn false_shares_under_tweaked_keys_are_named() {
    for seed in 0..8 {
        let dealt = key::<Taproot>(2, 4, seed);
        let (nonces, commitments) = commit_all::<Taproot>(&dealt, &[0, 1, 3], seed);
        let package = with_tweak(&dealt, Some(&[7; 32]), commitments);
        let mut shares = sign_all(&dealt, &package, nonces);
        aggregated(&dealt, &package, &shares).unwrap();
        shares[2] = shift(&shares[2], Scalar::<Taproot>::ONE);
        let named = AggregateError::FalseShares(vec![index(4)]);
        assert_eq!(aggregated(&dealt, &package, &shares), Err(named));
    }
}

#[test]
fn both_signs_of_everything_occur() {
    let odd = (0..12).filter(|seed| {
        let public = key::<Taproot>(2, 3, *seed).public;
        Taproot::stands_for_negative(Secp256k1::encode(public.public_key()).as_ref())
    });
    let odd = odd.count();
    assert!((1..12).contains(&odd), "the seeds of these tests must give even and odd keys");
}

#[test]
fn derived_keys_of_other_keys_are_refused() {
    let (dealt, other) = (key::<Taproot>(2, 3, 1), key::<Taproot>(2, 3, 2));
    let (_, commitments) = commit_all::<Taproot>(&dealt, &[0, 1], 3);
    let derived = DerivedKey::taproot(&other.public, None).unwrap();
    let refused = SigningPackage::with_key(&dealt.public, derived, commitments, b"message");
    assert_eq!(refused.unwrap_err(), PackageError::Tweak);
}

fn libsecp256k1_accepts(public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let (Ok(public_key), Ok(signature)) = (public_key.try_into(), signature.try_into()) else {
        return false;
    };
    secp256k1::XOnlyPublicKey::from_byte_array(public_key).is_ok_and(|public_key| {
        let signature = secp256k1::schnorr::Signature::from_byte_array(signature);
        secp256k1::schnorr::verify(&signature, message, &public_key).is_ok()
    })
}

#[test]
fn bip_340() {
    let vectors = vectors(include_str!("../../../../../vectors/bip340/verify.json"));
    assert_eq!(vectors.len(), 19);
    for vector in vectors {
        let [public_key, message, signature] = ["public_key", "message", "signature"].map(|name| unhex(&vector[name]));
        let ours = VerifyingKey::<Taproot>::decode(&public_key)
            .is_ok_and(|public_key| public_key.verify(&message, &signature).is_ok());
        assert_eq!(Some(ours), vector["valid"].as_bool(), "{}", vector["comment"]);
        assert_eq!(libsecp256k1_accepts(&public_key, &message, &signature), ours);
    }
}

#[test]
fn libsecp256k1_accepts_ours() {
    for seed in 0..8 {
        let dealt = key::<Taproot>(3, 5, seed);
        let message = vec![7; usize::try_from(seed).unwrap()];
        let (package, shares) = session::<Taproot>(&dealt, &[0, 2, 3], &message, seed);
        let signature = aggregated(&dealt, &package, &shares).unwrap().encode();
        let public_key = package.key().verifying_key().bytes();
        assert_eq!((public_key.len(), signature.len()), (32, 64));
        assert!(libsecp256k1_accepts(public_key, &message, &signature));
        assert!(!libsecp256k1_accepts(public_key, b"another", &signature));
    }
}

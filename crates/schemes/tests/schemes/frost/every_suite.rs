//! The requirements of all suites.

use theta_groups::Scalar as _;
use theta_schemes::keys::{SchemeError, deal_any};
use theta_schemes::signatures::frost::{
    AggregateError, DerivedKey, Frost, FrostSuite, PackageError, SignError, SigningPackage, VerifyingKey, commit,
    commit_batch, false_shares, randomizer_seed, sign, verify_share,
};
use theta_schemes::{Purpose, RequestError, SignatureScheme, Statement, VerifyError};
use theta_sharing::Threshold;

use crate::frost::fixture::{Scalar, aggregated, commit_all, index, key, rng, session, shift, sign_all, subsets};

for_every_frost_suite!(
    every_subset_signs,
    more_than_k_sign,
    a_false_share_is_named,
    errors_that_cancel_are_harmless_or_named,
    many_culprits_are_named,
    packages_are_checked,
    foreign_packages_are_not_signed,
    selection_of_shares_is_checked,
    shares_of_others_are_false,
    precomputed_nonces_sign,
    randomised_keys_sign,
    verifiers_get_their_form_of_the_key,
    other_purposes_are_refused,
);

fn every_subset_signs<C: FrostSuite>() {
    for (k, n) in [(1, 1), (1, 3), (2, 4), (3, 5), (4, 4)] {
        // Different keys, so that for Taproot both signs of everything occur.
        let dealt = key::<C>(k, n, u64::from(10 * k + n));
        for (seed, mut subset) in (0..).zip(subsets(n.into(), k.into())) {
            if seed % 2 == 1 {
                subset.reverse();
            }
            let (package, shares) = session::<C>(&dealt, &subset, b"message", seed);
            assert!(shares.iter().all(|share| verify_share(&dealt.public, &package, share)));
            let signature = aggregated(&dealt, &package, &shares).unwrap().encode();
            Frost::<C>::verify(&dealt.public, b"message", &signature).unwrap();
            assert_eq!(Frost::<C>::verify(&dealt.public, b"massage", &signature), Err(VerifyError::Invalid));
            let other = key::<C>(k, n, 999);
            assert_eq!(Frost::<C>::verify(&other.public, b"message", &signature), Err(VerifyError::Invalid));
        }
    }
}

fn more_than_k_sign<C: FrostSuite>() {
    let dealt = key::<C>(2, 5, 1);
    for (message, signers) in [(&b""[..], &[0, 1, 2, 3, 4][..]), (&[7; 1000], &[4, 2, 0])] {
        let (package, shares) = session::<C>(&dealt, signers, message, 2);
        let signature = aggregated(&dealt, &package, &shares).unwrap().encode();
        Frost::<C>::verify(&dealt.public, message, &signature).unwrap();
    }
}

fn a_false_share_is_named<C: FrostSuite>() {
    let dealt = key::<C>(3, 5, 2);
    let (package, honest) = session::<C>(&dealt, &[0, 2, 4], b"message", 3);
    for liar in 0..3 {
        let mut shares = honest.clone();
        shares[liar] = shift(&shares[liar], Scalar::<C>::ONE);
        assert!(!verify_share(&dealt.public, &package, &shares[liar]));
        let named = AggregateError::FalseShares(vec![shares[liar].index()]);
        assert_eq!(aggregated(&dealt, &package, &shares), Err(named));
    }
}

fn errors_that_cancel_are_harmless_or_named<C: FrostSuite>() {
    let dealt = key::<C>(3, 4, 3);
    let (package, mut shares) = session::<C>(&dealt, &[0, 1, 3], b"message", 4);
    let truth = aggregated(&dealt, &package, &shares).unwrap();
    shares[0] = shift(&shares[0], Scalar::<C>::ONE);
    shares[1] = shift(&shares[1], -Scalar::<C>::ONE);
    // The errors cancel in the sum, and the signature is true.
    assert_eq!(aggregated(&dealt, &package, &shares), Ok(truth));
    let culprits = false_shares(&dealt.public, &package, &shares, &mut rng(1));
    assert_eq!(culprits, [index(1), index(2)]);
    shares[2] = shift(&shares[2], Scalar::<C>::ONE);
    let all = vec![index(1), index(2), index(4)];
    assert_eq!(aggregated(&dealt, &package, &shares), Err(AggregateError::FalseShares(all)));
}

fn many_culprits_are_named<C: FrostSuite>() {
    let dealt = key::<C>(9, 20, 4);
    let signers: Vec<_> = (0..20).collect();
    let (package, mut shares) = session::<C>(&dealt, &signers, b"message", 5);
    let liars = [0, 1, 7, 13, 19];
    for liar in liars {
        shares[liar] = shift(&shares[liar], Scalar::<C>::from_u64(liar as u64 + 1));
    }
    shares.reverse();
    let named = liars.iter().map(|liar| shares[19 - liar].index()).collect();
    assert_eq!(aggregated(&dealt, &package, &shares), Err(AggregateError::FalseShares(named)));
}

fn packages_are_checked<C: FrostSuite>() {
    let dealt = key::<C>(3, 4, 5);
    let (_, commitments) = commit_all::<C>(&dealt, &[0, 1, 2, 3], 6);
    let error = |positions: &[usize]| {
        let chosen = positions.iter().map(|i| commitments[*i]).collect();
        SigningPackage::new(&dealt.public, chosen, b"message").unwrap_err()
    };
    assert_eq!(error(&[]), PackageError::TooFew { needed: 3, got: 0 });
    assert_eq!(error(&[3, 1]), PackageError::TooFew { needed: 3, got: 2 });
    assert_eq!(error(&[0, 1, 0]), PackageError::Duplicate(index(1)));
    assert_eq!(error(&[3, 0, 1, 2, 3]), PackageError::Duplicate(index(4)));
    let larger = key::<C>(3, 9, 5);
    let (_, strangers) = commit_all::<C>(&larger, &[0, 1, 8], 6);
    let got = SigningPackage::new(&dealt.public, strangers, b"message").unwrap_err();
    assert_eq!(got, PackageError::UnknownParty(index(9)));
}

fn foreign_packages_are_not_signed<C: FrostSuite>() {
    let (dealt, other) = (key::<C>(2, 3, 6), key::<C>(2, 3, 7));
    let (nonces, commitments) = commit_all::<C>(&dealt, &[0, 1, 2], 8);
    let package = |positions: [usize; 2]| {
        let chosen = positions.iter().map(|i| commitments[*i]).collect();
        SigningPackage::new(&dealt.public, chosen, b"message").unwrap()
    };
    let [first, second, third]: [_; 3] = nonces.try_into().unwrap();
    assert_eq!(sign(&package([0, 1]), first, &other.shares[0]), Err(SignError::OtherKey));
    assert_eq!(sign(&package([0, 2]), second, &dealt.shares[1]), Err(SignError::NotInPackage));
    let mixed = SignError::OtherParty { nonces: index(3), key: index(2) };
    assert_eq!(sign(&package([1, 2]), third, &dealt.shares[1]), Err(mixed));
    // Another's commitments in our place.
    let (fresh, _) = commit::<C>(&dealt.shares[0], &mut rng(9));
    assert_eq!(sign(&package([0, 1]), fresh, &dealt.shares[0]), Err(SignError::NotInPackage));
}

fn selection_of_shares_is_checked<C: FrostSuite>() {
    let dealt = key::<C>(2, 4, 8);
    let (package, shares) = session::<C>(&dealt, &[0, 1, 2], b"message", 9);
    let stranger = session::<C>(&dealt, &[2, 3], b"message", 10).1[1];
    let error = |shares: &[_]| aggregated(&dealt, &package, shares).unwrap_err();
    assert_eq!(error(&[]), AggregateError::Missing(index(1)));
    assert_eq!(error(&shares[..2]), AggregateError::Missing(index(3)));
    assert_eq!(error(&[shares[0], shares[1], shares[0]]), AggregateError::Duplicate(index(1)));
    assert_eq!(error(&[shares[0], shares[1], stranger]), AggregateError::UnknownParty(index(4)));
    assert!(!verify_share(&dealt.public, &package, &stranger));
    assert_eq!(false_shares(&dealt.public, &package, &[shares[1], stranger], &mut rng(1)), [index(4)]);
    let other = key::<C>(2, 4, 9);
    assert_eq!(aggregated(&other, &package, &shares), Err(AggregateError::OtherKey));
    assert!(!verify_share(&other.public, &package, &shares[0]));
}

fn shares_of_others_are_false<C: FrostSuite>() {
    let (dealt, other) = (key::<C>(2, 4, 10), key::<C>(2, 4, 11));
    let (package, honest) = session::<C>(&dealt, &[0, 1], b"message", 12);
    let same_nonces_other_message = session::<C>(&dealt, &[0, 1], b"another", 12).1[0];
    let other_signers = session::<C>(&dealt, &[0, 2], b"message", 12).1[0];
    let other_nonces = session::<C>(&dealt, &[0, 1], b"message", 13).1[0];
    let other_key = session::<C>(&other, &[0, 1], b"message", 12).1[0];
    for replayed in [same_nonces_other_message, other_signers, other_nonces, other_key] {
        assert_eq!(replayed.index(), index(1));
        assert!(!verify_share(&dealt.public, &package, &replayed));
        let named = AggregateError::FalseShares(vec![index(1)]);
        assert_eq!(aggregated(&dealt, &package, &[replayed, honest[1]]), Err(named));
    }
}

fn precomputed_nonces_sign<C: FrostSuite>() {
    let dealt = key::<C>(2, 3, 12);
    let mut rng = rng(13);
    let mut first = commit_batch::<C>(&dealt.shares[0], 3, &mut rng);
    let mut third = commit_batch::<C>(&dealt.shares[2], 3, &mut rng);
    assert!(commit_batch::<C>(&dealt.shares[0], 0, &mut rng).is_empty());
    let mut signatures = Vec::new();
    while let (Some((a, of_a)), Some((b, of_b))) = (first.pop(), third.pop()) {
        let package = SigningPackage::new(&dealt.public, vec![of_b, of_a], b"message").unwrap();
        let shares = sign_all(&dealt, &package, vec![a, b]);
        signatures.push(aggregated(&dealt, &package, &shares).unwrap().encode());
    }
    assert_eq!(signatures.len(), 3);
    for signature in &signatures {
        Frost::<C>::verify(&dealt.public, b"message", signature).unwrap();
    }
    assert!(signatures[0] != signatures[1] && signatures[1] != signatures[2]);
}

fn randomised_keys_sign<C: FrostSuite>() {
    for seed in 0..4 {
        let dealt = key::<C>(2, 3, seed);
        let (nonces, commitments) = commit_all::<C>(&dealt, &[1, 2], 14);
        let secret = randomizer_seed::<C>(&mut rng(15));
        let package = SigningPackage::randomized(&dealt.public, &secret, commitments.clone(), b"message").unwrap();
        let mut shares = sign_all(&dealt, &package, nonces);
        assert!(shares.iter().all(|share| verify_share(&dealt.public, &package, share)));
        let signature = aggregated(&dealt, &package, &shares).unwrap().encode();
        package.key().verifying_key().verify(b"message", &signature).unwrap();
        assert_eq!(Frost::<C>::verify(&dealt.public, b"message", &signature), Err(VerifyError::Invalid));
        assert_ne!(package.key().verifying_key(), DerivedKey::<C>::new(&dealt.public).verifying_key());
        // Another seed or other commitments give another key.
        let other = randomizer_seed::<C>(&mut rng(16));
        let reseeded = SigningPackage::randomized(&dealt.public, &other, commitments, b"message").unwrap();
        let (_, others) = commit_all::<C>(&dealt, &[1, 2], 17);
        let recommitted = SigningPackage::randomized(&dealt.public, &secret, others, b"message").unwrap();
        assert_ne!(package.key().verifying_key(), reseeded.key().verifying_key());
        assert_ne!(package.key().verifying_key(), recommitted.key().verifying_key());
        shares[1] = shift(&shares[1], Scalar::<C>::ONE);
        let named = AggregateError::FalseShares(vec![index(3)]);
        assert_eq!(aggregated(&dealt, &package, &shares), Err(named));
    }
}

fn verifiers_get_their_form_of_the_key<C: FrostSuite>() {
    // For Taproot, keys of both signs occur.
    for seed in 0..8 {
        let (public, _) = deal_any(C::SUITE, Threshold::new(2, 3).unwrap(), &mut rng(seed));
        let dealt = key::<C>(2, 3, seed);
        assert_eq!(public.key_id(), dealt.public.key_id());
        let bytes = public.verifying_key_bytes();
        assert_eq!(bytes.len(), C::STANDARD_LEN);
        assert!(public.public_key_bytes().ends_with(bytes));
        let (package, shares) = session::<C>(&dealt, &[0, 2], b"message", seed);
        let signature = aggregated(&dealt, &package, &shares).unwrap().encode();
        VerifyingKey::<C>::decode(bytes).unwrap().verify(b"message", &signature).unwrap();
    }
}

fn other_purposes_are_refused<C: FrostSuite>() {
    let (public, keys) = deal_any(C::SUITE, Threshold::new(2, 3).unwrap(), &mut rng(1));
    for foreign in [Statement::Decapsulate(b"x"), Statement::FlipCoin(b"x")] {
        let refusal = RequestError::Purpose { key: Purpose::Sign, asked: foreign.purpose() };
        assert_eq!(public.check_request(foreign), Err(refusal));
    }
    // No request gives a share in one round.
    for statement in [Statement::Decapsulate(b"x"), Statement::Sign(b"x"), Statement::FlipCoin(b"x")] {
        assert_eq!(public.create_share(&keys[0], statement, &mut rng(1)), Err(SchemeError::TwoRounds(C::SUITE)));
    }
}

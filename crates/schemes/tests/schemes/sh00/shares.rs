//! Shares: all sets of k make the same signature, false ones are refused, and their senders named.

use theta_groups::DecodeError;
use theta_schemes::keys::{AnyPublicKey, SchemeError};
use theta_schemes::signatures::sh00::RsaShare;
use theta_schemes::{CombineError, Suite, ThresholdScheme};
use theta_sharing::ShareIndex;

use crate::sh00::fixture::{
    Rsa, SUITES, borrow, index, key, primes, request, rng, shares, short_key, statement, subsets, typed_shares,
};

/// Bytes of a number modulo the short modulus.
const LEN: usize = 128;

#[test]
fn every_subset_makes_the_same_signature() {
    for suite in SUITES {
        for (k, n) in [(1, 1), (1, 3), (2, 4), (3, 5), (5, 5)] {
            let (public, keys) = key(suite, 1024, k, n, 7);
            let statement = statement(suite, b"message");
            let all = shares(&public, &keys, &statement);
            let mut results = Vec::new();
            for subset in subsets(k.into(), n.into()) {
                // The order of the shares does not matter.
                let chosen: Vec<_> = subset.iter().rev().map(|i| all[*i].clone()).collect();
                let combined = public.combine(&statement, &borrow(&chosen), &mut rng(1)).unwrap();
                public.verify(b"message", combined.result.expose(), &combined.proof).unwrap();
                results.push((combined.result.expose().clone(), combined.proof));
            }
            assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{suite} {k} of {n}");
        }
    }
}

#[test]
fn many_parties() {
    let (public, keys) = key(Suite::Sh00Pkcs1Sha256, 1024, 20, 60, 8);
    let statement = statement(public.suite(), b"message");
    let mut all = shares(&public, &keys, &statement);
    let first = public.combine(&statement, &borrow(&all), &mut rng(1)).unwrap();
    all.rotate_left(37);
    let again = public.combine(&statement, &borrow(&all), &mut rng(1)).unwrap();
    assert_eq!(first.result.expose(), again.result.expose());
    all[3].1[LEN - 1] ^= 1;
    all[17].1[LEN - 1] ^= 1;
    let mut expected = vec![all[3].0, all[17].0];
    expected.sort_unstable();
    assert_eq!(culprits(&public, &statement, &all), expected);
}

/// The parties that are named when the shares are combined.
fn culprits(
    public: &AnyPublicKey,
    statement: &theta_schemes::StatementBytes,
    shares: &[(ShareIndex, Vec<u8>)],
) -> Vec<ShareIndex> {
    match public.combine(statement, &borrow(shares), &mut rng(3)) {
        Err(SchemeError::FalseShares(mut culprits)) => {
            culprits.sort_unstable();
            culprits
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn bare_shares_tell_that_one_is_false_and_proven_ones_tell_whose() {
    let dealt = short_key::<Rsa>(3, 5, 9);
    let public = AnyPublicKey::of::<Rsa>(dealt.public.clone());
    let request = request::<Rsa>(&dealt.public, b"message");
    let (bare, proven) = (typed_shares(&dealt, b"message", false), typed_shares(&dealt, b"message", true));
    let (other_bare, other_proven) = (typed_shares(&dealt, b"other", false), typed_shares(&dealt, b"other", true));
    assert!(bare.iter().all(|share| !Rsa::is_proven(share)) && proven.iter().all(Rsa::is_proven));
    Rsa::combine(&dealt.public, &request, &bare).unwrap();
    let combine = |shares: &[&RsaShare]| {
        let typed: Vec<RsaShare> = shares.iter().map(|share| (*share).clone()).collect();
        let typed = Rsa::combine(&dealt.public, &request, &typed).map(drop);
        let encoded: Vec<_> = shares.iter().map(|share| (share.index(), Rsa::encode_share(share))).collect();
        let any = public.combine(&statement(public.suite(), b"message"), &borrow(&encoded), &mut rng(2)).map(drop);
        assert_eq!(typed.is_ok(), any.is_ok());
        assert!(typed.is_ok() || typed == Err(CombineError::ResultInvalid));
        any
    };
    let invalid = || Err(SchemeError::Combine(CombineError::ResultInvalid));
    let named = |parties: &[u16]| Err(SchemeError::FalseShares(parties.iter().map(|i| index(*i)).collect()));

    assert_eq!(combine(&[&bare[0], &other_bare[1], &bare[2]]), invalid());
    assert_eq!(combine(&[&proven[0], &other_proven[1], &proven[2]]), named(&[2]));
    assert_eq!(combine(&[&other_proven[0], &proven[1], &proven[2], &other_proven[4]]), named(&[1, 5]));
    assert_eq!(combine(&[&other_proven[3], &other_proven[1], &other_proven[2]]), named(&[4, 2, 3]));
    // The sender of a bare share is not blamed, whether it is true or false.
    assert_eq!(combine(&[&bare[0], &other_proven[1], &bare[2]]), named(&[2]));
    assert_eq!(combine(&[&other_bare[0], &other_proven[1], &bare[2]]), named(&[2]));
    assert_eq!(combine(&[&proven[0], &other_bare[1], &proven[2]]), invalid());
    assert!(combine(&[&proven[0], &bare[1], &proven[2]]).is_ok());
    // A false share beyond the first k does no harm.
    assert!(combine(&[&bare[0], &bare[1], &bare[2], &other_bare[3]]).is_ok());
    assert_eq!(Rsa::verify_shares(&dealt.public, &request, &bare[..2], &mut rng(1)), [index(1), index(2)]);
    assert_eq!(Rsa::verify_shares(&dealt.public, &request, &proven, &mut rng(1)), []);
    let text = CombineError::ResultInvalid.to_string();
    assert!(text.contains("proofs"), "{text}");
}

#[test]
fn sets_that_are_none_are_refused() {
    for suite in SUITES {
        let (public, keys) = key(suite, 1024, 3, 4, 10);
        let statement = statement(suite, b"message");
        let all = shares(&public, &keys, &statement);
        let combine = |shares: &[(ShareIndex, Vec<u8>)]| {
            public.combine(&statement, &borrow(shares), &mut rng(1)).map(drop).unwrap_err()
        };
        assert_eq!(combine(&[]), SchemeError::Combine(CombineError::TooFew { needed: 3, got: 0 }));
        assert_eq!(combine(&all[..2]), SchemeError::Combine(CombineError::TooFew { needed: 3, got: 2 }));
        let twice = [&all[..2], &all[1..2]].concat();
        assert_eq!(combine(&twice), SchemeError::Combine(CombineError::Duplicate(index(2))));
        for stranger in [5, 65_535] {
            let strange = [&all[..2], &[(index(stranger), all[2].1.clone())]].concat();
            assert_eq!(combine(&strange), SchemeError::Combine(CombineError::UnknownParty(index(stranger))));
            assert_eq!(
                public.verify_share(&statement, index(stranger), &all[2].1, &mut rng(1)),
                Err(SchemeError::FalseShares(vec![index(stranger)]))
            );
        }
    }
}

#[test]
fn malformed_shares_are_refused() {
    let (public, keys) = key(Suite::Sh00Pkcs1Sha256, 1024, 2, 3, 11);
    let statement = statement(public.suite(), b"message");
    let all = shares(&public, &keys, &statement);
    let (party, share) = &all[0];
    let check = |bytes: &[u8]| public.verify_share(&statement, *party, bytes, &mut rng(1)).unwrap_err();
    assert_eq!(share.len(), 4 * LEN + 32);
    for len in [0, 1, LEN - 1, LEN + 1, 2 * LEN - 1, 4 * LEN + 1, 4 * LEN + 31, 4 * LEN + 33, 5000] {
        let mut bytes = share.clone();
        bytes.resize(len, 7);
        let error = check(&bytes);
        let SchemeError::MalformedShare { index, error: DecodeError::Length { .. } } = error else { panic!("{error}") };
        assert_eq!(index, *party);
        let shares = [(*party, &bytes[..]), (all[1].0, &all[1].1[..])];
        assert_eq!(public.combine(&statement, &shares, &mut rng(1)).unwrap_err(), error);
    }
    // The value and both commitments: zero, and more than any modulus.
    for part in 0..3 {
        for byte in [0, 0xff] {
            let mut bytes = share.clone();
            bytes[part * LEN..(part + 1) * LEN].fill(byte);
            let malformed = SchemeError::MalformedShare { index: *party, error: DecodeError::NotCanonical };
            assert_eq!(check(&bytes), malformed);
        }
    }
    // The lengths of other keys.
    for len in [256, 384, 512, 4 * 256 + 32] {
        let mut bytes = share.clone();
        bytes.resize(len, 7);
        assert_eq!(check(&bytes), SchemeError::FalseShares(vec![*party]));
    }
}

#[test]
fn numbers_out_of_range_are_false_shares() {
    let dealt = short_key::<Rsa>(2, 3, 12);
    let public = AnyPublicKey::of::<Rsa>(dealt.public.clone());
    let statement = statement(public.suite(), b"message");
    let modulus = dealt.public.modulus().value();
    let mut next = modulus.clone();
    next.add_u64(1);
    let [p, q] = primes(1024).expose();
    // N, N + 1, and numbers that are not coprime to N.
    let bad = [modulus, &next, p, q].map(|number| number.to_be_bytes(LEN).unwrap());
    let (bare, proven) = (typed_shares(&dealt, b"message", false), typed_shares(&dealt, b"message", true));
    let (bare, proven): (Vec<_>, Vec<_>) =
        (bare.iter().map(Rsa::encode_share).collect(), proven.iter().map(Rsa::encode_share).collect());
    for bad in &bad {
        // In the place of either party: one of the two coefficients is negative.
        for liar in 0..2 {
            let mut shares = vec![(index(1), bare[0].clone()), (index(2), bare[1].clone())];
            shares[liar].1.clone_from(bad);
            let combined = public.combine(&statement, &borrow(&shares), &mut rng(1)).map(drop);
            assert_eq!(combined, Err(SchemeError::Combine(CombineError::ResultInvalid)));
            for part in 0..3 {
                let mut shares = vec![(index(1), proven[0].clone()), (index(2), proven[1].clone())];
                shares[liar].1[part * LEN..(part + 1) * LEN].copy_from_slice(bad);
                let liar = shares[liar].0;
                let check = |at: usize| public.verify_share(&statement, shares[at].0, &shares[at].1, &mut rng(1));
                assert_eq!(check(usize::from(liar.get()) - 1), Err(SchemeError::FalseShares(vec![liar])));
                if part == 0 {
                    assert_eq!(culprits(&public, &statement, &shares), [liar]);
                }
            }
        }
    }
}

#[test]
fn a_proof_is_of_one_share_only() {
    for suite in SUITES {
        let ((public, keys), (_, foreign)) = (key(suite, 1024, 2, 3, 13), key(suite, 1024, 2, 3, 14));
        let (message, other) = (statement(suite, b"message"), statement(suite, b"other"));
        let all = shares(&public, &keys, &message);
        let others = shares(&public, &keys, &other);
        // Another sharing of the same primes: the same public key.
        let foreign_public = key(suite, 1024, 2, 3, 14).0;
        let foreign = shares(&foreign_public, &foreign, &message);
        assert_eq!(public.public_key_bytes(), foreign_public.public_key_bytes());
        let check = |bytes: &[u8]| public.verify_share(&message, index(1), bytes, &mut rng(1)).is_ok();
        assert!(check(&all[0].1));
        for false_share in [&others[0].1, &foreign[0].1, &all[1].1] {
            assert!(!check(false_share));
            assert!(!check(&[&all[0].1[..LEN], &false_share[LEN..]].concat()));
            assert!(!check(&[&false_share[..LEN], &all[0].1[LEN..]].concat()));
        }
        for position in 0..all[0].1.len() {
            // Every byte matters; some are tested.
            if position % 37 == 0 || position == all[0].1.len() - 1 {
                let mut flipped = all[0].1.clone();
                flipped[position] ^= 1;
                assert!(!check(&flipped), "byte {position}");
            }
        }
        // All suites' challenges differ, although the keys are the same.
        for wrong in SUITES.into_iter().filter(|wrong| *wrong != suite) {
            let (wrong_public, _) = key(wrong, 1024, 2, 3, 13);
            let message = statement(wrong, b"message");
            assert!(wrong_public.verify_share(&message, index(1), &all[0].1, &mut rng(1)).is_err());
        }
    }
}

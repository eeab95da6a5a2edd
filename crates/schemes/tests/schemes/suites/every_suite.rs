//! The requirements of all suites.

use crate::suites::fixture::{
    add_torsion, assert_refused, assert_unverified, borrow, has_proof_of_possession, identity_share, index, key,
    off_subgroup_point, one_round_suites, point_len, rng, shares, shift, statement,
};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, Combined, PublicMaterial as _, SchemeError};
use theta_schemes::{
    CombineError, MAX_COIN_NAME_LEN, MAX_MESSAGE_LEN, Purpose, RequestError, Statement, StatementBytes, Suite,
    ThresholdScheme as _,
};
use theta_sharing::ShareIndex;

for_every_suite!(
    every_subset_gives_the_same_result,
    a_false_share_is_named,
    errors_that_cancel_are_found,
    shares_of_others_are_false,
    selection_is_checked,
    malformed_shares_are_refused,
    shares_outside_the_subgroup_are_false,
    foreign_statements_are_refused,
    shares_of_other_suites_are_refused,
    bare_shares_do_without_blame,
);

#[test]
fn no_suite_is_forgotten() {
    let mut listed = for_every_suite!(@names);
    listed.sort_unstable();
    let mut known: Vec<_> = one_round_suites().collect();
    known.sort_unstable();
    assert_eq!(listed.to_vec(), known);
}

fn combine(
    public: &AnyPublicKey,
    statement: &StatementBytes,
    shares: &[(ShareIndex, Vec<u8>)],
) -> Result<Combined, SchemeError> {
    public.combine(statement, &borrow(shares), &mut rng(7))
}

fn verify_share(
    public: &AnyPublicKey,
    statement: &StatementBytes,
    (index, share): &(ShareIndex, Vec<u8>),
) -> Result<(), SchemeError> {
    public.verify_share(statement, *index, share, &mut rng(8))
}

/// All k-element subsets of 0..n.
fn subsets(n: usize, k: usize) -> Vec<Vec<usize>> {
    (0_u32..1 << n)
        .filter(|bits| bits.count_ones() as usize == k)
        .map(|bits| (0..n).filter(|i| bits >> i & 1 == 1).collect())
        .collect()
}

fn every_subset_gives_the_same_result(suite: Suite) {
    for (k, n) in [(1, 1), (1, 3), (2, 4), (3, 5), (4, 4)] {
        let (public, keys) = key(suite, k, n, 1);
        let request = statement(&public, 1);
        let all = shares(&public, &keys, &request);
        for share in &all {
            verify_share(&public, &request, share).unwrap();
        }
        let mut expected = None;
        for subset in subsets(n.into(), k.into()) {
            let mut chosen: Vec<_> = subset.iter().map(|i| all[*i].clone()).collect();
            if subset[0] % 2 == 1 {
                chosen.reverse();
            }
            let combined = combine(&public, &request, &chosen).unwrap();
            if suite.purpose() != Purpose::Decrypt {
                public.verify(request.as_statement().bytes(), combined.result.expose(), &combined.proof).unwrap();
                assert_unverified(public.verify(b"another", combined.result.expose(), &combined.proof));
            }
            let result = combined.result.expose().clone();
            assert_eq!(expected.get_or_insert_with(|| result.clone()), &result, "{k} of {n}, {subset:?}");
        }
        let other_request = statement(&public, 2);
        let other = combine(&public, &other_request, &shares(&public, &keys, &other_request)).unwrap();
        assert_ne!(expected.as_ref(), Some(other.result.expose()), "another request has another result");
    }
}

fn a_false_share_is_named(suite: Suite) {
    let (public, keys) = key(suite, 3, 5, 2);
    let request = statement(&public, 1);
    let honest = shares(&public, &keys, &request);
    for liar in 0..3 {
        let mut lying = honest.clone();
        lying[liar].1 = shift(suite, &lying[liar].1, 1);
        let named = SchemeError::FalseShares(vec![lying[liar].0]);
        assert_eq!(verify_share(&public, &request, &lying[liar]), Err(named.clone()));
        assert_eq!(combine(&public, &request, &lying).unwrap_err(), named);
    }
}

fn errors_that_cancel_are_found(suite: Suite) {
    let (public, keys) = key(suite, 2, 4, 3);
    let request = statement(&public, 1);
    let honest = shares(&public, &keys, &request);
    // Parties 1 and 2 have the coefficients 2 and -1; with (1, 2) the errors cancel in the combination, with (1, -1) in
    // a plain sum.
    for (first, second) in [(1, 2), (1, -1)] {
        let mut lying = honest[..2].to_vec();
        lying[0].1 = shift(suite, &lying[0].1, first);
        lying[1].1 = shift(suite, &lying[1].1, second);
        lying.push(honest[2].clone());
        let named = SchemeError::FalseShares(vec![index(1), index(2)]);
        match combine(&public, &request, &lying) {
            // The result has been checked and is right.
            Ok(combined) => {
                let truth = combine(&public, &request, &honest).unwrap();
                assert_eq!(combined.result.expose(), truth.result.expose());
                assert_eq!((first, second), (1, 2));
                assert!(
                    suite.purpose() != Purpose::Coin || has_proof_of_possession(suite),
                    "a Diffie-Hellman coin proves nothing"
                );
            }
            Err(error) => assert_eq!(error, named),
        }
        // In one batch, with an honest share between them.
        lying.swap(1, 2);
        theta_schemes::with_scheme!(suite, |S| if one_round {
            let key = public.get::<S>().unwrap();
            let parsed = S::parse_request(key, &request.as_statement()).unwrap();
            let decoded: Vec<_> = lying.iter().map(|(index, share)| S::decode_share(*index, share).unwrap()).collect();
            let mut culprits = S::verify_shares(key, &parsed, &decoded, &mut rng(4));
            culprits.sort_unstable();
            assert_eq!(culprits, [index(1), index(2)]);
        } else {
            panic!("{suite} takes two rounds")
        });
    }
}

fn shares_of_others_are_false(suite: Suite) {
    let (public, keys) = key(suite, 2, 4, 4);
    let (other_public, other_keys) = key(suite, 2, 4, 5);
    let request = statement(&public, 1);
    let honest = shares(&public, &keys, &request);
    let replayed = shares(&public, &keys, &statement(&public, 2))[0].clone();
    let other_key = shares(&other_public, &other_keys, &statement(&other_public, 1))[0].clone();
    let other_party = (index(1), honest[1].1.clone());
    for false_share in [replayed, other_key, other_party] {
        let named = SchemeError::FalseShares(vec![index(1)]);
        assert_eq!(verify_share(&public, &request, &false_share), Err(named.clone()));
        let mut lying = honest.clone();
        lying[0] = false_share;
        assert_eq!(combine(&public, &request, &lying).unwrap_err(), named);
    }
    assert_eq!(public.create_share(&other_keys[0], &request, &mut rng(1)), Err(SchemeError::OtherKey));
}

fn selection_is_checked(suite: Suite) {
    let (public, keys) = key(suite, 3, 4, 6);
    let request = statement(&public, 1);
    let honest = shares(&public, &keys, &request);
    let error = |shares: &[_]| combine(&public, &request, shares).unwrap_err();
    assert_eq!(error(&[]), CombineError::TooFew { needed: 3, got: 0 }.into());
    assert_eq!(error(&honest[..2]), CombineError::TooFew { needed: 3, got: 2 }.into());
    let twice = [honest[0].clone(), honest[1].clone(), honest[0].clone()];
    assert_eq!(error(&twice), CombineError::Duplicate(index(1)).into());
    for stranger in [5, 65_535] {
        let strange = (index(stranger), honest[2].1.clone());
        let named = SchemeError::FalseShares(vec![index(stranger)]);
        assert_eq!(verify_share(&public, &request, &strange), Err(named.clone()));
        let got = error(&[honest[0].clone(), honest[1].clone(), strange]);
        assert_eq!(got, CombineError::UnknownParty(index(stranger)).into());
    }
}

fn malformed_shares_are_refused(suite: Suite) {
    let (public, keys) = key(suite, 2, 3, 7);
    let request = statement(&public, 1);
    let honest = shares(&public, &keys, &request);
    let (first, good) = honest[0].clone();
    let mut bad = vec![
        vec![],
        good[..good.len() - 1].to_vec(),
        [good.clone(), vec![0]].concat(),
        vec![0; good.len()],
        vec![0xff; good.len()],
        identity_share(suite, &good),
        good.repeat(2),
    ];
    // The scalar that ends a proof, unreduced.
    if good.len() > point_len(suite) {
        let mut unreduced = good.clone();
        unreduced[good.len() - 32..].fill(0xff);
        bad.push(unreduced);
    }
    for bytes in bad {
        match verify_share(&public, &request, &(first, bytes.clone())) {
            Err(SchemeError::MalformedShare { index, .. }) => assert_eq!(index, first),
            // Zeros are a point of small order on Edwards curves.
            Err(SchemeError::FalseShares(named)) if suite.group().starts_with("ed") => assert_eq!(named, [first]),
            other => panic!("{} bytes: {other:?}", bytes.len()),
        }
        let combined = combine(&public, &request, &[(first, bytes), honest[1].clone()]);
        assert_refused(combined.map(drop), first);
    }
    for position in 0..good.len() {
        let mut flipped = good.clone();
        flipped[position] ^= 1;
        assert_refused(verify_share(&public, &request, &(first, flipped)), first);
    }
}

fn shares_outside_the_subgroup_are_false(suite: Suite) {
    let Some(point) = off_subgroup_point(suite) else { return };
    let (public, keys) = key(suite, 2, 3, 8);
    let request = statement(&public, 1);
    let honest = shares(&public, &keys, &request);
    let mut elsewhere = honest[0].1.clone();
    elsewhere.splice(..point.len(), point);
    // The second is a true share plus a component that no pairing detects.
    for bytes in [elsewhere, add_torsion(suite, &honest[0].1).unwrap()] {
        let mut lying = honest.clone();
        lying[0].1 = bytes;
        let named = SchemeError::FalseShares(vec![index(1)]);
        assert_eq!(verify_share(&public, &request, &lying[0]), Err(named.clone()));
        assert_eq!(combine(&public, &request, &lying).unwrap_err(), named);
    }
}

fn foreign_statements_are_refused(suite: Suite) {
    let (public, keys) = key(suite, 2, 3, 9);
    let statements = [Statement::Decapsulate(b"x"), Statement::Sign(b"x"), Statement::FlipCoin(b"x")];
    for foreign in statements.into_iter().filter(|statement| statement.purpose() != suite.purpose()) {
        let refusal = RequestError::Purpose { key: suite.purpose(), asked: foreign.purpose() };
        assert_eq!(public.check_request(foreign), Err(refusal.clone()));
        assert_eq!(public.create_share(&keys[0], foreign, &mut rng(1)), Err(refusal.into()));
    }
    let too_large = vec![0; MAX_MESSAGE_LEN + 1];
    let (statement, largest) = match suite.purpose() {
        Purpose::Decrypt => (Statement::Decapsulate(&too_large), &too_large[..0]),
        Purpose::Sign => (Statement::Sign(&too_large), &too_large[..1]),
        Purpose::Coin => (Statement::FlipCoin(&too_large), &too_large[..MAX_COIN_NAME_LEN]),
    };
    assert!(matches!(public.check_request(statement), Err(RequestError::TooLarge { .. })));
    match suite.purpose() {
        Purpose::Decrypt => {
            assert!(matches!(public.check_request(Statement::Decapsulate(largest)), Err(RequestError::Header(_))));
        }
        Purpose::Sign => public.check_request(Statement::Sign(largest)).unwrap(),
        Purpose::Coin => public.check_request(Statement::FlipCoin(largest)).unwrap(),
    }
}

/// All parties' shares without proofs, where the suite has such.
fn bare_shares(public: &AnyPublicKey, keys: &[AnyKeyShare], request: &StatementBytes) -> Vec<(ShareIndex, Vec<u8>)> {
    let bare = |key: &AnyKeyShare| {
        theta_schemes::with_scheme!(public.suite(), |S| if one_round {
            let (public, share) = (public.get::<S>().unwrap(), key.get::<S>().unwrap());
            let parsed = S::parse_request(public, &request.as_statement()).unwrap();
            let bare = S::create_bare_share(public, share, &parsed, &mut rng(5));
            assert_eq!(S::is_proven(&bare), public.suite().scheme() != "SG02");
            S::encode_share(&bare)
        } else {
            panic!("two rounds")
        })
    };
    keys.iter().map(|key| (key.index(), bare(key))).collect()
}

/// A proven share begins with the bare one, which is as good for the result; but only proven shares are blamed.
fn bare_shares_do_without_blame(suite: Suite) {
    let (public, keys) = key(suite, 2, 4, 11);
    let request = statement(&public, 1);
    let (proven, mut bare) = (shares(&public, &keys, &request), bare_shares(&public, &keys, &request));
    let truth = combine(&public, &request, &proven).unwrap();
    if suite.scheme() != "SG02" {
        assert!(bare.iter().zip(&proven).all(|(bare, proven)| bare.1.len() == proven.1.len()));
        return;
    }
    for (bare, proven) in bare.iter().zip(&proven) {
        assert_eq!(bare.1.len(), point_len(suite));
        assert!(proven.1.starts_with(&bare.1));
        assert_eq!(verify_share(&public, &request, bare), Err(SchemeError::FalseShares(vec![bare.0])));
    }
    assert_eq!(combine(&public, &request, &bare).unwrap().result.expose(), truth.result.expose());
    let mixed = [bare[3].clone(), proven[1].clone()];
    assert_eq!(combine(&public, &request, &mixed).unwrap().result.expose(), truth.result.expose());
    // A false bare share is detected, but nobody is named; the sender of a false proven share is.
    bare[0].1 = shift(suite, &bare[0].1, 1);
    let unknown = SchemeError::Combine(CombineError::ResultInvalid);
    assert_eq!(combine(&public, &request, &bare).unwrap_err(), unknown);
    assert_eq!(combine(&public, &request, &[bare[0].clone(), proven[1].clone()]).unwrap_err(), unknown);
    let lie = (proven[2].0, shift(suite, &proven[2].1, 1));
    let named = SchemeError::FalseShares(vec![lie.0]);
    assert_eq!(combine(&public, &request, &[bare[1].clone(), lie]).unwrap_err(), named);
}

fn shares_of_other_suites_are_refused(suite: Suite) {
    let (public, _) = key(suite, 2, 3, 10);
    let request = statement(&public, 1);
    for other in one_round_suites().filter(|other| *other != suite) {
        let (other_public, other_keys) = key(other, 2, 3, 10);
        let other_request = statement(&other_public, 1);
        let share = shares(&other_public, &other_keys, &other_request)[0].clone();
        assert_refused(verify_share(&public, &request, &share), share.0);
        assert_eq!(public.create_share(&other_keys[0], &request, &mut rng(1)), Err(SchemeError::OtherKey));
        if public.check_request(&other_request).is_ok() {
            assert_eq!(other.purpose(), suite.purpose());
            assert_ne!(suite.purpose(), Purpose::Decrypt, "a header is for one key only");
        }
    }
}

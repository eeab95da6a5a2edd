//! Bare shares that are checked by what k proven ones determine.

use std::sync::Arc;

use theta_schemes::keys::{AnyKeyShare, AnyPublicKey};
use theta_schemes::{Answer, StatementBytes, Suite};
use theta_sharing::ShareIndex;

use crate::sh00;
use crate::suites::fixture::{self, add_torsion, rng, shift};

const K: u16 = 3;
const N: u16 = 6;

/// A key of a suite with bare shares, and what its holders answer to one statement.
struct Group {
    suite: Suite,
    public: AnyPublicKey,
    keys: Vec<AnyKeyShare>,
    statement: StatementBytes,
}

impl Group {
    fn all() -> impl Iterator<Item = Self> {
        let suites = Suite::ALL.into_iter().filter(|suite| suite.scheme() == "SG02" || suite.group() == "RSA");
        suites.map(|suite| {
            let (public, keys) = Self::keys(suite, 5);
            let statement = match suite.group() {
                "RSA" => sh00::fixture::statement(suite, b"message"),
                _ => fixture::statement(&public, 1),
            };
            Self { suite, public, keys, statement }
        })
    }

    fn keys(suite: Suite, seed: u64) -> (AnyPublicKey, Vec<AnyKeyShare>) {
        match suite.group() {
            "RSA" => sh00::fixture::key(suite, 1024, K, N, seed),
            _ => fixture::key(suite, K, N, seed),
        }
    }

    fn answer(&self, place: usize) -> Arc<dyn Answer> {
        self.public.answer(&self.keys[place], &self.statement).unwrap()
    }

    fn bare(&self, place: usize) -> Vec<u8> {
        let gathered = self.answer(place).gather(false, &mut rng(1));
        assert!(gathered.is_bare);
        gathered.own
    }

    fn proven(&self, place: usize) -> Vec<u8> {
        self.answer(place).proven_share(&mut rng(1)).unwrap()
    }

    /// A share that is none of this holder's.
    fn falsified(&self, place: usize) -> Vec<u8> {
        // Another's true share is as false as any.
        if self.suite.group() == "RSA" {
            self.bare((place + 1) % usize::from(N))
        } else {
            shift(self.suite, &self.bare(place), 1)
        }
    }

    /// Who is named when these have proven their shares and the others have not, whose shares `bare` gives.
    fn named(&self, proven: &[usize], bare: impl Fn(usize) -> Vec<u8>) -> Vec<ShareIndex> {
        let mut shares = self.answer(proven[0]).gather(false, &mut rng(2)).shares;
        shares.put_own_proof(&mut rng(2));
        for place in (0..usize::from(N)).filter(|place| *place != proven[0]) {
            let share = if proven.contains(&place) { self.proven(place) } else { bare(place) };
            assert!(shares.put(self.keys[place].index(), &share).unwrap());
        }
        let mut named = shares.verify(&mut rng(3));
        assert_eq!(shares.len(), usize::from(N) - named.len());
        assert!(shares.combine().is_ok() || proven.len() < usize::from(K));
        named.sort_unstable();
        named
    }

    fn indices(&self, places: &[usize]) -> Vec<ShareIndex> {
        places.iter().map(|place| self.keys[*place].index()).collect()
    }
}

/// Every set of k or more proves that the true bare shares are true and finds all of the false ones.
#[test]
fn exactly_the_false_bare_shares_are_named() {
    for group in Group::all() {
        for proven in [&[0, 1, 2][..], &[5, 3, 1], &[2, 4, 5, 0]] {
            assert_eq!(group.named(proven, |place| group.bare(place)), [], "{}", group.suite);
            let others: Vec<usize> = (0..usize::from(N)).filter(|place| !proven.contains(place)).collect();
            for liars in [&others[..1], &others[1..], &others] {
                let bare = |place| if liars.contains(&place) { group.falsified(place) } else { group.bare(place) };
                assert_eq!(group.named(proven, bare), group.indices(liars), "{}", group.suite);
            }
        }
    }
}

/// The proof of a share of another key, which is as false as one that a broken machine makes, does not leave.
#[test]
fn no_false_proof_is_sent() {
    for group in Group::all().filter(|group| group.suite.group() == "RSA") {
        let answer = |keys: &[AnyKeyShare]| group.public.answer(&keys[0], &group.statement).unwrap();
        assert!(answer(&group.keys).proven_share(&mut rng(1)).is_some());
        // Keys of the same primes have one id, and other shares.
        let (_, keys) = Group::keys(group.suite, 6);
        assert!(answer(&keys).proven_share(&mut rng(1)).is_none(), "{}", group.suite);
        let mut shares = answer(&keys).gather(false, &mut rng(2)).shares;
        shares.put_own_proof(&mut rng(2));
        assert_eq!(shares.proven(), 0);
    }
}

/// Fewer than k say nothing about the others.
#[test]
fn nobody_is_named_by_fewer_than_k() {
    for group in Group::all() {
        assert_eq!(group.named(&[0, 4], |place| group.falsified(place)), [], "{}", group.suite);
    }
}

/// A component of small order is not of the share, whatever weights are drawn.
#[test]
fn components_of_small_order_are_named() {
    for group in Group::all().filter(|group| group.suite.group() != "RSA") {
        let Some(twisted) = add_torsion(group.suite, &group.bare(3)) else { continue };
        let bare = |place| if place == 3 { twisted.clone() } else { group.bare(place) };
        assert_eq!(group.named(&[0, 1, 2], bare), group.indices(&[3]), "{}", group.suite);
    }
}

/// Two errors that cancel in a sum without weights.
#[test]
fn errors_of_two_liars_do_not_cancel() {
    for group in Group::all().filter(|group| group.suite.group() != "RSA") {
        for (one, other) in [(1, -1), (1, 1), (5, -7)] {
            let bare = |place| match place {
                3 => shift(group.suite, &group.bare(place), one),
                4 => shift(group.suite, &group.bare(place), other),
                _ => group.bare(place),
            };
            assert_eq!(group.named(&[0, 1, 2], bare), group.indices(&[3, 4]), "{}", group.suite);
        }
    }
}

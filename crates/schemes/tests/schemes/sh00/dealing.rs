//! The dealer: finding new primes, and checking given ones.

use theta_groups::Secret;
use theta_groups::modular::{Integer, SearchProgress, find_safe_prime_pair};
use theta_keyfiles::PublicKeyText as _;
use theta_schemes::Suite;
use theta_schemes::keys::{DealError, deal_rsa, deal_rsa_primes, import_any};
use theta_schemes::signatures::sh00::{RsaDealError, RsaPrimes};

use crate::sh00::fixture::{borrow, primes, rng, shares, statement, threshold};

fn signs(suite: Suite, (public, keys): (theta_schemes::keys::AnyPublicKey, Vec<theta_schemes::keys::AnyKeyShare>)) {
    let statement = statement(suite, b"message");
    let all = shares(&public, &keys, &statement);
    let combined = public.combine(&statement, &borrow(&all[1..]), &mut rng(1)).unwrap();
    public.verify(b"message", combined.result.expose(), &combined.proof).unwrap();
}

#[test]
fn a_new_key_of_2048_bits() {
    let mut calls = Vec::new();
    let mut progress = |now: SearchProgress| calls.push(now);
    let suite = Suite::Sh00PssSha256;
    let dealt = deal_rsa(suite, 2048, threshold(2, 3), &mut progress, &mut rng(30)).unwrap();
    assert_eq!(dealt.0.to_text(&"new".parse().unwrap()).lines().filter(|line| line.starts_with("  \"")).count(), 3);
    signs(suite, dealt);
    assert!(calls.len() > 2);
    assert!(calls.windows(2).all(|pair| pair[0].tested <= pair[1].tested && pair[0].found <= pair[1].found));
    assert_eq!(calls.last().unwrap().found, 2);
}

#[test]
fn new_primes_of_512_bits() {
    let [p, q] = find_safe_prime_pair(512, &mut |_| (), &mut rng(31));
    let primes = RsaPrimes::new(p, q).unwrap();
    signs(Suite::Cks05Sh00, deal_rsa_primes(Suite::Cks05Sh00, &primes, threshold(2, 3), &mut rng(32)).unwrap());
}

#[test]
fn sizes_and_suites_that_do_not_fit() {
    let two_of_three = threshold(2, 3);
    for bits in [0, 1024, 2047, 2056, 8192] {
        let error = deal_rsa(Suite::Sh00Pkcs1Sha256, bits, two_of_three, &mut |_| (), &mut rng(1)).unwrap_err();
        assert_eq!(error, RsaDealError::Bits(bits));
    }
    let curve = Suite::FrostEd25519;
    assert_eq!(deal_rsa(curve, 2048, two_of_three, &mut |_| (), &mut rng(1)).unwrap_err(), RsaDealError::Suite(curve));
    assert_eq!(
        deal_rsa_primes(curve, primes(1024), two_of_three, &mut rng(1)).unwrap_err(),
        RsaDealError::Suite(curve)
    );
    let secret = Secret::new(vec![1; 32]);
    let error = import_any(Suite::Cks05Sh00, two_of_three, &secret, &mut rng(1)).unwrap_err();
    assert_eq!(error, DealError::RsaImport);
}

#[test]
fn primes_that_make_no_key() {
    let [p, q] = primes(1024).expose().map(Integer::clone);
    let [long, _] = primes(2048).expose().map(Integer::clone);
    let secret = |number: &Integer| Secret::new(number.clone());
    assert!(RsaPrimes::new(secret(&p), secret(&q)).is_ok());
    // (p - 1) / 2 is a prime, but not a safe one of this size; 2^511 + 2^510 + ... is a prime, but not safe.
    let mut half = p.clone();
    half.div_u64(2);
    let mut unsafe_prime = p.clone();
    loop {
        unsafe_prime.add_u64(2);
        if unsafe_prime.is_prime() {
            break;
        }
    }
    let mut even = p.clone();
    even.add_u64(1);
    for bad in [&p, &long, &half, &unsafe_prime, &even, &Integer::from_u64(0), &Integer::from_u64(7)] {
        assert_eq!(RsaPrimes::new(secret(&p), secret(bad)).unwrap_err(), RsaDealError::Primes);
        assert_eq!(RsaPrimes::new(secret(bad), secret(&p)).unwrap_err(), RsaDealError::Primes);
    }
}

//! Each step of each one-round scheme on a curve, for the group sizes of the literature: any 2 of 4, 3 of 7, 11 of 31, 43
//! of 127. Every suite in the table of suites is measured here, except those of `rsa.rs` and `frost.rs`.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be set up may stop at once"
)]

use std::{hint::black_box, time::Duration};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_payload as payload;
use theta_payload::Encrypt as _;
use theta_schemes::{
    Purpose, Statement, Suite, ThresholdScheme,
    keys::{AnyKeyShare, AnyPublicKey, deal_any},
    with_scheme,
};
use theta_sharing::Threshold;

const GROUPS: [(u16, u16); 4] = [(2, 4), (3, 7), (11, 31), (43, 127)];

/// The inputs that stay the same while a key is measured.
struct Subject<'a> {
    any: &'a AnyPublicKey,
    keys: &'a [AnyKeyShare],
    statement: Statement<'a>,
    threshold: Threshold,
}

fn scheme<S: ThresholdScheme>(c: &mut Criterion, subject: &Subject<'_>, public: &S::PublicKey, key: &S::KeyShare) {
    let Subject { any, keys, statement, threshold } = subject;
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let mut g = c.benchmark_group(format!("scheme/{}", S::SUITE.name()));
    let request = S::parse_request(public, statement).unwrap();
    let encoded: Vec<_> = keys[..usize::from(threshold.k())]
        .iter()
        .map(|key| (key.index(), any.create_share(key, *statement, &mut rng).unwrap()))
        .collect();
    let shares: Vec<_> = encoded.iter().map(|(index, bytes)| S::decode_share(*index, bytes).unwrap()).collect();
    let id = |name: &str| BenchmarkId::new(name, format!("{} of {}", threshold.k(), threshold.n()));
    if threshold.n() == 7 {
        let (index, bytes) = &encoded[0];
        g.bench_function("check request", |b| b.iter(|| S::parse_request(public, black_box(statement)).unwrap()));
        g.bench_function("create share", |b| b.iter(|| S::create_share(public, key, &request, &mut rng)));
        g.bench_function("decode share", |b| b.iter(|| S::decode_share(*index, black_box(bytes)).unwrap()));
        g.bench_function("verify one share", |b| {
            b.iter(|| assert!(S::verify_shares(public, &request, &shares[..1], &mut rng).is_empty()));
        });
    }
    g.bench_function(id("verify k shares"), |b| {
        b.iter(|| assert!(S::verify_shares(public, &request, &shares, &mut rng).is_empty()));
    });
    g.bench_function(id("combine"), |b| b.iter(|| S::combine(public, &request, &shares).is_ok()));
    g.finish();
}

/// The statement to answer: for ciphers the header of a ciphertext, otherwise any bytes.
fn asked(public: &AnyPublicKey, rng: &mut ChaCha20Rng) -> Vec<u8> {
    if public.suite().purpose() != Purpose::Decrypt {
        return b"a message of ordinary length".to_vec();
    }
    let ciphertext = public.encrypt(&[7; 1024], b"label", payload::Aead::default(), rng).unwrap();
    let (header, _) = payload::split_ciphertext(&ciphertext).unwrap();
    header.to_vec()
}

fn encryption(c: &mut Criterion, public: &AnyPublicKey, rng: &mut ChaCha20Rng) {
    c.bench_function(format!("scheme/{}/encrypt 1 KiB", public.suite()).as_str(), |b| {
        b.iter(|| public.encrypt(&[7; 1024], b"label", payload::Aead::default(), rng).unwrap());
    });
}

fn one_round(c: &mut Criterion) {
    for suite in
        Suite::ALL.into_iter().filter(|suite| !["FROST", "ECDSA"].contains(&suite.scheme()) && suite.group() != "RSA")
    {
        for (k, n) in GROUPS {
            let mut rng = ChaCha20Rng::seed_from_u64(u64::from(n));
            let threshold = Threshold::new(k, n).unwrap();
            let (any, keys) = deal_any(suite, threshold, &mut rng);
            if suite.purpose() == Purpose::Decrypt && n == 7 {
                encryption(c, &any, &mut rng);
            }
            let asked = asked(&any, &mut rng);
            let statement = match suite.purpose() {
                Purpose::Decrypt => Statement::Decapsulate(&asked),
                Purpose::Sign => Statement::Sign(&asked),
                Purpose::Coin => Statement::FlipCoin(&asked),
            };
            let subject = Subject { any: &any, keys: &keys, statement, threshold };
            with_scheme!(suite, |S| if one_round {
                scheme::<S>(c, &subject, any.get::<S>().unwrap(), keys[0].get::<S>().unwrap());
            } else {
            });
        }
    }
}

fn dealing(c: &mut Criterion) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut g = c.benchmark_group("dealer");
    g.sample_size(10);
    for suite in [Suite::Sg02Ristretto255, Suite::Bls04MinPk] {
        for (k, n) in [(3, 7), (1000, 3001)] {
            let threshold = Threshold::new(k, n).unwrap();
            g.bench_function(BenchmarkId::new(suite.name(), threshold), |b| {
                b.iter(|| deal_any(suite, threshold, &mut rng));
            });
        }
    }
}

criterion_group! {
    name = schemes;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(20);
    targets = one_round, dealing
}
criterion_main!(schemes);

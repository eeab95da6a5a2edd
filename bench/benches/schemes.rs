//! Each step of each scheme, for the group sizes of the literature: any 2 of 4, 3 of 7, 11 of 31, 43 of 127.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be set up may stop at once"
)]

use std::{hint::black_box, time::Duration};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_groups::{Ristretto255, bls12_381::G1};
use theta_schemes::{
    Purpose, Statement, ThresholdScheme,
    ciphers::{payload, sg02::Sg02},
    coins::cks05::Cks05,
    keys::{AnyPublicKey, CurveScheme, KeyScheme, deal, deal_any},
    signatures::bls04::{Bls04, MinPk, MinSig},
};
use theta_sharing::Threshold;

const GROUPS: [(u16, u16); 4] = [(2, 4), (3, 7), (11, 31), (43, 127)];

fn scheme<S: ThresholdScheme + CurveScheme>(c: &mut Criterion, any: fn(std::sync::Arc<S::PublicKey>) -> AnyPublicKey) {
    let mut g = c.benchmark_group(format!("scheme/{}", S::SUITE.name()));
    for (k, n) in GROUPS {
        let mut rng = ChaCha20Rng::seed_from_u64(u64::from(n));
        let threshold = Threshold::new(k, n).unwrap();
        let dealt = deal::<S>(threshold, &mut rng);
        let public = &dealt.public;
        let statement = statement::<S>(&any(public.clone()), &mut rng);
        let statement = match S::SUITE.purpose() {
            Purpose::Decrypt => Statement::Decapsulate(&statement),
            Purpose::Sign => Statement::Sign(&statement),
            Purpose::Coin => Statement::FlipCoin(&statement),
        };
        let request = S::parse_request(public, &statement).unwrap();
        let create = |i: usize, rng: &mut ChaCha20Rng| S::create_share(public, &dealt.shares[i], &request, rng);
        let shares: Vec<_> = (0..usize::from(k)).map(|i| create(i, &mut rng)).collect();
        let encoded = S::encode_share(&shares[0]);
        let id = |name: &str| BenchmarkId::new(name, format!("{k} of {n}"));
        if n == 7 {
            g.bench_function("check request", |b| b.iter(|| S::parse_request(public, black_box(&statement)).unwrap()));
            g.bench_function("create share", |b| b.iter(|| create(0, &mut rng)));
            g.bench_function("decode share", |b| {
                b.iter(|| S::decode_share(S::share_index(&shares[0]), black_box(&encoded)).unwrap());
            });
            g.bench_function("verify one share", |b| {
                b.iter(|| assert!(S::verify_shares(public, &request, &shares[..1], &mut rng).is_empty()));
            });
        }
        g.bench_function(id("verify k shares"), |b| {
            b.iter(|| assert!(S::verify_shares(public, &request, &shares, &mut rng).is_empty()));
        });
        g.bench_function(id("combine"), |b| b.iter(|| S::combine(public, &request, &shares).is_ok()));
    }
}

/// A ciphertext header for ciphers; for the others any bytes do.
fn statement<S: KeyScheme>(public: &AnyPublicKey, rng: &mut ChaCha20Rng) -> Vec<u8> {
    if S::SUITE.purpose() != Purpose::Decrypt {
        return b"a message of ordinary length".to_vec();
    }
    let ciphertext = public.encrypt(&[7; 1024], b"label", payload::Aead::default(), rng).unwrap();
    let (header, _) = payload::split_ciphertext(&ciphertext).unwrap();
    header.to_vec()
}

fn dealing(c: &mut Criterion) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut g = c.benchmark_group("dealer");
    g.sample_size(10);
    for suite in [theta_schemes::Suite::Sg02Ristretto255, theta_schemes::Suite::Bls04MinPk] {
        for (k, n) in [(3, 7), (1000, 3001)] {
            let threshold = Threshold::new(k, n).unwrap();
            g.bench_function(BenchmarkId::new(suite.name(), threshold), |b| {
                b.iter(|| deal_any(suite, threshold, &mut rng));
            });
        }
    }
}

fn all(c: &mut Criterion) {
    scheme::<Sg02<Ristretto255>>(c, AnyPublicKey::Sg02Ristretto255);
    scheme::<Sg02<G1>>(c, AnyPublicKey::Sg02Bls12381);
    scheme::<Bls04<MinPk>>(c, AnyPublicKey::Bls04MinPk);
    scheme::<Bls04<MinSig>>(c, AnyPublicKey::Bls04MinSig);
    scheme::<Cks05<Ristretto255>>(c, AnyPublicKey::Cks05Ristretto255);
    scheme::<Cks05<G1>>(c, AnyPublicKey::Cks05Bls12381);
    dealing(c);
}

criterion_group! {
    name = schemes;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(20);
    targets = all
}
criterion_main!(schemes);

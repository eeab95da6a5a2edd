//! Threshold RSA and the exponentiations that it cannot avoid, at 2048 bits.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be set up may stop at once"
)]

use std::{hint::black_box, time::Duration};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_groups::modular::Integer;
use theta_schemes::{
    Statement, ThresholdScheme,
    signatures::sh00::{ModulusSize, Pkcs1Sha256, RsaPrimes, Sh00, deal_primes},
};
use theta_sharing::Threshold;

type Rsa = Sh00<Pkcs1Sha256>;

const GROUPS: [(u16, u16); 3] = [(3, 7), (11, 31), (43, 127)];

fn rsa(c: &mut Criterion) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    // Finding primes takes seconds, so every run uses the same ones.
    let primes = RsaPrimes::generate(ModulusSize::DEFAULT, &mut |_| (), &mut rng);
    let mut g = c.benchmark_group("scheme/sh00-pkcs1-sha256");
    for (k, n) in GROUPS {
        let dealt = deal_primes::<Rsa>(&primes, Threshold::new(k, n).unwrap(), &mut rng);
        let (public, key) = (&dealt.public, &dealt.shares[0]);
        let request = Rsa::parse_request(public, &Statement::Sign(b"message to sign")).unwrap();
        if n == 7 {
            let modulus = public.modulus();
            let (base, secret) = (public.verification_base(), key.secret().expose());
            g.bench_function("raw exponentiation", |b| b.iter(|| modulus.pow(black_box(base), secret)));
            let public_exponent = Integer::from_u64(65_537);
            g.bench_function("raw opening", |b| b.iter(|| modulus.vartime_product(&[(base, &public_exponent)])));
            g.bench_function("raw inverse", |b| b.iter(|| modulus.vartime_inverse(black_box(base))));
            g.bench_function("create bare share", |b| {
                b.iter(|| Rsa::create_bare_share(public, key, &request, &mut rng));
            });
            g.bench_function("create proven share", |b| b.iter(|| Rsa::create_share(public, key, &request, &mut rng)));
        }
        let chosen = &dealt.shares[..usize::from(k)];
        let shares: Vec<_> = chosen.iter().map(|key| Rsa::create_share(public, key, &request, &mut rng)).collect();
        if n == 7 {
            g.bench_function("verify one share", |b| {
                b.iter(|| assert!(Rsa::verify_shares(public, &request, &shares[..1], &mut rng).is_empty()));
            });
        }
        let id = |name: &str| BenchmarkId::new(name, format!("{k} of {n}"));
        g.bench_function(id("verify k shares"), |b| {
            b.iter(|| assert!(Rsa::verify_shares(public, &request, &shares, &mut rng).is_empty()));
        });
        g.bench_function(id("combine"), |b| b.iter(|| Rsa::combine(public, &request, &shares).unwrap()));
        // The last k parties: their Lagrange coefficients are fractions.
        let last = dealt.shares.iter().rev().take(usize::from(k));
        let shares: Vec<_> = last.map(|key| Rsa::create_bare_share(public, key, &request, &mut rng)).collect();
        g.bench_function(id("combine the last"), |b| b.iter(|| Rsa::combine(public, &request, &shares).unwrap()));
    }
    g.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1));
    targets = rsa
}
criterion_main!(benches);

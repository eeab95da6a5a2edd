//! The raw operations of each group: the lower bound of every scheme on it.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be set up may stop at once"
)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_groups::{
    Ed448, Ed25519, Group, P256, Pairing, Ristretto255, Scalar, Secp256k1,
    bls12_381::{Bls12_381, G1, G2},
    bn254::{self, Bn254},
};

fn group<G: Group>(c: &mut Criterion) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let scalar = G::Scalar::random(&mut rng);
    let point = G::mul_base(&G::Scalar::random(&mut rng));
    let encoded = G::encode(&point);
    let mut g = c.benchmark_group(format!("group/{}", G::NAME));
    g.bench_function("mul_base", |b| b.iter(|| G::mul_base(black_box(&scalar))));
    g.bench_function("mul", |b| b.iter(|| black_box(point) * black_box(scalar)));
    g.bench_function("vartime_double_mul", |b| {
        b.iter(|| G::vartime_double_mul(black_box(&scalar), black_box(&point), black_box(&scalar)));
    });
    g.bench_function("encode", |b| b.iter(|| G::encode(black_box(&point))));
    g.bench_function("decode", |b| b.iter(|| G::decode(black_box(encoded.as_ref()))));
    g.bench_function("hash_to_group", |b| b.iter(|| G::hash_to_group(b"bench", black_box(&[b"a message"]))));
    for n in [3_usize, 11, 34, 43, 100, 667] {
        let scalars: Vec<_> = (0..n).map(|_| G::Scalar::random(&mut rng)).collect();
        let points: Vec<_> = (0..n).map(|_| G::mul_base(&G::Scalar::random(&mut rng))).collect();
        let short: Vec<u128> = (0..n).map(|i| u128::MAX / 3 - i as u128).collect();
        g.bench_with_input(BenchmarkId::new("vartime_msm", n), &n, |b, _| b.iter(|| G::vartime_msm(&scalars, &points)));
        g.bench_with_input(BenchmarkId::new("vartime_msm_short", n), &n, |b, _| {
            b.iter(|| G::vartime_msm_short(&short, &points));
        });
    }
}

fn pairing<P: Pairing>(c: &mut Criterion, name: &str) {
    let (g1, g2) = (P::G1::generator(), P::G2::generator());
    let pairs = [(g1, g2), (-g1, g2)];
    c.bench_function(format!("group/{name}/product of two pairings").as_str(), |b| {
        b.iter(|| P::vartime_product_is_one(black_box(&pairs)));
    });
}

fn all(c: &mut Criterion) {
    group::<Ristretto255>(c);
    group::<Ed25519>(c);
    group::<Ed448>(c);
    group::<P256>(c);
    group::<Secp256k1>(c);
    group::<G1>(c);
    group::<G2>(c);
    group::<bn254::G1>(c);
    group::<bn254::G2>(c);
    pairing::<Bls12_381>(c, "bls12-381");
    pairing::<Bn254>(c, "bn254");
}

criterion_group!(groups, all);
criterion_main!(groups);

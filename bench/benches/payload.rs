//! Sealing and opening payloads: the AEAD's own speed, not that of a loop around it.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be set up may stop at once"
)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_schemes::{Suite, ciphers::payload::Aead, keys::deal_any};
use theta_sharing::Threshold;

fn seal(c: &mut Criterion) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (public, _) = deal_any(Suite::Sg02Ristretto255, Threshold::new(2, 4).unwrap(), &mut rng);
    let mut g = c.benchmark_group("payload/seal 16 MiB");
    let plaintext = vec![7; 16 << 20];
    g.throughput(Throughput::Bytes(plaintext.len() as u64)).sample_size(10);
    for aead in [Aead::ChaCha20Poly1305, Aead::Aes256Gcm] {
        g.bench_function(BenchmarkId::from_parameter(aead), |b| {
            b.iter(|| public.encrypt(&plaintext, b"", aead, &mut rng).unwrap());
        });
    }
}

criterion_group!(payload, seal);
criterion_main!(payload);

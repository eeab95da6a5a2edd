//! Sealing and opening payloads, and the AEAD alone, whose speed they should reach.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be set up may stop at once"
)]

use aws_lc_rs::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_payload::{Aead, CHUNK_LEN, Encrypt as _, PayloadKey, open_bytes, split_ciphertext};
use theta_schemes::{Statement, Suite, keys::deal_any};
use theta_sharing::Threshold;

const AEADS: [(Aead, &Algorithm); 2] = [(Aead::ChaCha20Poly1305, &CHACHA20_POLY1305), (Aead::Aes256Gcm, &AES_256_GCM)];
const SIZES: [usize; 5] = [32, 1 << 10, 64 << 10, 1 << 20, 16 << 20];

fn payload(c: &mut Criterion) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (public, keys) = deal_any(Suite::Sg02Ristretto255, Threshold::new(1, 1).unwrap(), &mut rng);
    for (aead, algorithm) in AEADS {
        let mut g = c.benchmark_group(format!("payload/{aead}"));
        g.sample_size(10);
        for len in SIZES {
            let mut plaintext = vec![7; len];
            g.throughput(Throughput::Bytes(len as u64));
            let raw = LessSafeKey::new(UnboundKey::new(algorithm, &[7; 32]).unwrap());
            g.bench_function(BenchmarkId::new("AEAD alone", len), |b| {
                b.iter(|| {
                    for chunk in plaintext.chunks_mut(CHUNK_LEN) {
                        let nonce = Nonce::assume_unique_for_key([1; 12]);
                        let _ = raw.seal_in_place_separate_tag(nonce, Aad::empty(), chunk).unwrap();
                    }
                });
            });
            g.bench_function(BenchmarkId::new("encrypt", len), |b| {
                b.iter(|| public.encrypt(&plaintext, b"", aead, &mut rng).unwrap());
            });
            let ciphertext = public.encrypt(&plaintext, b"", aead, &mut rng).unwrap();
            let statement = Statement::Decapsulate(split_ciphertext(&ciphertext).unwrap().0);
            let share = public.create_share(&keys[0], statement, &mut rng).unwrap();
            let combined = public.combine(statement, &[(keys[0].index(), &share)], &mut rng).unwrap();
            let key = PayloadKey::from_bytes(combined.result.expose()).unwrap();
            g.bench_function(BenchmarkId::new("open", len), |b| b.iter(|| open_bytes(&key, &ciphertext).unwrap()));
        }
    }
}

criterion_group!(benches, payload);
criterion_main!(benches);

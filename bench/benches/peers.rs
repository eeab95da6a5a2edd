//! Our BLS and Ed25519 signatures and the crates that do the same, in one run: blst, blsttc (threshold BLS on blst) and
//! ed25519-dalek. Dealing is measured here without a peer; `frost.rs` compares it, and FROST, with the `frost-*` crates.
//!
//! Both sides of a comparison begin and end with the same values: messages are hashed, signatures decoded, and combined
//! signatures verified on both.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be set up may stop at once"
)]

use std::{hint::black_box, time::Duration};

use blst::{BLST_ERROR, min_pk};
use criterion::{Criterion, criterion_group, criterion_main};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use frost_ed25519::rand_core as old;
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use theta_groups::{Ristretto255, RistrettoScalar, Scalar, Secret};
use theta_schemes::{
    SignatureScheme, Statement, ThresholdScheme,
    ciphers::sg02::Sg02,
    keys::deal,
    signatures::{
        bls04::{Bls04, MinPk},
        frost::{self, Ed25519Sha512, Frost, SigningPackage},
    },
};
use theta_sharing::{Threshold, split};

const MESSAGE: &[u8] = b"a message of ordinary length";
const DST: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";
const GROUPS: [(u16, u16); 3] = [(3, 7), (11, 31), (43, 127)];

type Bls = Bls04<MinPk>;

/// Our random number generator behind the older trait that these crates use.
struct OldRng(ChaCha20Rng);

impl old::RngCore for OldRng {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn fill_bytes(&mut self, destination: &mut [u8]) {
        self.0.fill_bytes(destination);
    }

    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), old::Error> {
        self.0.fill_bytes(destination);
        Ok(())
    }
}

impl old::CryptoRng for OldRng {}

/// One signer's signature, and its verification.
fn bls_single(c: &mut Criterion) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut g = c.benchmark_group("peers/BLS signature");
    let dealt = deal::<Bls>(Threshold::new(1, 1).unwrap(), &mut rng);
    let (public, key) = (&dealt.public, &dealt.shares[0]);
    let statement = Statement::Sign(MESSAGE);
    let mut sign = || {
        let request = Bls::parse_request(public, &statement).unwrap();
        Bls::create_share(public, key, &request, &mut rng)
    };
    let signature = Bls::encode_share(&sign());
    g.bench_function("sign/ours", |b| b.iter(&mut sign));
    g.bench_function("verify/ours", |b| b.iter(|| Bls::verify(public, MESSAGE, black_box(&signature)).unwrap()));

    let theirs = min_pk::SecretKey::from_bytes(key.secret().expose().encode().as_ref()).unwrap();
    let their_key = theirs.sk_to_pk();
    assert_eq!(theirs.sign(MESSAGE, DST, &[]).to_bytes(), signature[..]);
    g.bench_function("sign/blst", |b| b.iter(|| theirs.sign(black_box(MESSAGE), DST, &[])));
    g.bench_function("verify/blst", |b| {
        b.iter(|| {
            let signature = min_pk::Signature::from_bytes(black_box(&signature)).unwrap();
            assert_eq!(signature.verify(true, MESSAGE, DST, &[], &their_key, false), BLST_ERROR::BLST_SUCCESS);
        });
    });
}

/// Shares, their verification, and combination with the check of the result.
fn bls_threshold(c: &mut Criterion) {
    for (k, n) in GROUPS {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let mut g = c.benchmark_group(format!("peers/threshold BLS {k}-of-{n}"));
        let dealt = deal::<Bls>(Threshold::new(k, n).unwrap(), &mut rng);
        let public = &dealt.public;
        let statement = Statement::Sign(MESSAGE);
        let request = Bls::parse_request(public, &statement).unwrap();
        let shares: Vec<_> = dealt.shares[..usize::from(k)]
            .iter()
            .map(|key| Bls::create_share(public, key, &request, &mut rng))
            .collect();
        g.bench_function("share/ours", |b| {
            b.iter(|| {
                let request = Bls::parse_request(public, &statement).unwrap();
                Bls::create_share(public, &dealt.shares[0], &request, &mut rng)
            });
        });
        g.bench_function("verify k shares/ours", |b| {
            b.iter(|| {
                let request = Bls::parse_request(public, &statement).unwrap();
                assert!(Bls::verify_shares(public, &request, &shares, &mut rng).is_empty());
            });
        });
        g.bench_function("combine and verify/ours", |b| {
            b.iter(|| {
                let request = Bls::parse_request(public, &statement).unwrap();
                Bls::combine(public, &request, &shares).unwrap()
            });
        });

        let theirs = blsttc::SecretKeySet::random(usize::from(k) - 1, &mut OldRng(rng.clone()));
        let their_public = theirs.public_keys();
        let keys: Vec<_> = (0..usize::from(k)).map(|i| theirs.secret_key_share(i)).collect();
        let public_keys: Vec<_> = (0..usize::from(k)).map(|i| their_public.public_key_share(i)).collect();
        let shares: Vec<_> = keys.iter().map(|key| key.sign(MESSAGE)).collect();
        g.bench_function("share/blsttc", |b| b.iter(|| keys[0].sign(black_box(MESSAGE))));
        g.bench_function("verify k shares/blsttc", |b| {
            b.iter(|| assert!(public_keys.iter().zip(&shares).all(|(key, share)| key.verify(share, MESSAGE))));
        });
        g.bench_function("combine and verify/blsttc", |b| {
            b.iter(|| {
                let signature = their_public.combine_signatures(shares.iter().enumerate()).unwrap();
                assert!(their_public.public_key().verify(&signature, MESSAGE));
            });
        });
    }
}

/// One signature by ed25519-dalek and one by a group of one, and their verification.
fn ed25519(c: &mut Criterion) {
    type Suite = Frost<Ed25519Sha512>;
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let mut g = c.benchmark_group("peers/Ed25519 signature");
    let dealt = deal::<Suite>(Threshold::new(1, 1).unwrap(), &mut rng);
    let (public, key) = (&dealt.public, &dealt.shares[0]);
    let mut sign = || {
        let (nonces, commitments) = frost::commit::<Ed25519Sha512>(key, &mut rng);
        let package = SigningPackage::new(public, vec![commitments], MESSAGE).unwrap();
        let share = frost::sign(&package, nonces, key).unwrap();
        frost::aggregate(public, &package, &[share], &mut rng).unwrap().encode()
    };
    let signature = sign();
    g.bench_function("sign/ours, 1 of 1, verified", |b| b.iter(&mut sign));
    g.bench_function("verify/ours", |b| b.iter(|| Suite::verify(public, MESSAGE, black_box(&signature)).unwrap()));

    let their_key = VerifyingKey::try_from(public.public_key_bytes()).unwrap();
    g.bench_function("verify/ed25519-dalek", |b| {
        b.iter(|| {
            let signature = Signature::from_slice(black_box(&signature)).unwrap();
            their_key.verify_strict(MESSAGE, &signature).unwrap();
        });
    });
    let alone = SigningKey::from_bytes(&[7; 32]);
    g.bench_function("sign/ed25519-dalek", |b| b.iter(|| alone.sign(black_box(MESSAGE))));
}

/// Dealing a polynomial alone, and a whole key of ours.
fn dealing(c: &mut Criterion) {
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let mut g = c.benchmark_group("dealing 1000-of-3001");
    g.sample_size(10);
    let threshold = Threshold::new(1000, 3001).unwrap();
    let secret = Secret::new(RistrettoScalar::random(&mut rng));
    g.bench_function("shares/ours", |b| b.iter(|| split(&secret, threshold, &mut rng)));
    g.bench_function("whole key/ours", |b| b.iter(|| deal::<Sg02<Ristretto255>>(threshold, &mut rng)));
}

criterion_group! {
    name = peers;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(20);
    targets = bls_single, bls_threshold, ed25519, dealing
}
criterion_main!(peers);

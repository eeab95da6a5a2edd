//! FROST and the `frost-*` crates, suite by suite: both in the same run, on the same keys and messages.
//!
//! Round one ends with the encoded commitments. Round two is what one signer does with everyone's commitments, aggregation
//! what a coordinator does with them and all shares; both begin and end with decoded values. Our implementation makes the
//! signing package each time.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be set up may stop at once"
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkGroup, Criterion, criterion_group, criterion_main, measurement::WallTime};
use frost_core::keys::{
    IdentifierList, KeyPackage, PublicKeyPackage, SigningShare, VerifyingShare, generate_with_dealer,
};
use frost_core::round1::{NonceCommitment, SigningCommitments as TheirCommitments};
use frost_core::round2::SignatureShare as TheirShare;
use frost_core::{Ciphersuite, Identifier, VerifyingKey};
use frost_ed25519::rand_core::{CryptoRng, Error, RngCore};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use theta_groups::Scalar;
use theta_schemes::keys::{Dealt, KeyShare, deal};
use theta_schemes::signatures::frost::{
    self, Ed448Shake256, Ed25519Sha512, Frost, FrostSuite, P256Sha256, Ristretto255Sha512, Secp256k1Sha256,
    SignatureShare, SigningCommitments, SigningPackage,
};
use theta_sharing::{ShareIndex, Threshold};

const SIZES: [(u16, u16); 3] = [(7, 10), (67, 100), (667, 1000)];
const MESSAGE: &[u8] = b"message to sign";

/// Our random number generator behind the older trait that these crates use.
struct OldRng(ChaCha20Rng);

impl RngCore for OldRng {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn fill_bytes(&mut self, destination: &mut [u8]) {
        self.0.fill_bytes(destination);
    }

    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), Error> {
        self.0.fill_bytes(destination);
        Ok(())
    }
}

impl CryptoRng for OldRng {}

fn identifier<T: Ciphersuite>(index: ShareIndex) -> Identifier<T> {
    index.get().try_into().unwrap()
}

/// The commitments of all signers but one, whose nonces are not kept; the last signer makes its own in each run.
struct Session<C: FrostSuite, T: Ciphersuite> {
    dealt: Dealt<C::Group>,
    their_public: PublicKeyPackage<T>,
    their_key: KeyPackage<T>,
    commitments: Vec<SigningCommitments<C>>,
    shares: Vec<SignatureShare<C>>,
    their_package: frost_core::SigningPackage<T>,
    their_shares: BTreeMap<Identifier<T>, TheirShare<T>>,
}

impl<C: FrostSuite, T: Ciphersuite> Session<C, T> {
    fn new(k: u16, n: u16, rng: &mut ChaCha20Rng) -> Self {
        let dealt = deal::<Frost<C>>(Threshold::new(k, n).unwrap(), rng);
        let verifying_key = VerifyingKey::deserialize(dealt.public.public_key_bytes()).unwrap();
        let verifying_shares: BTreeMap<_, _> = dealt
            .public
            .threshold()
            .indices()
            .zip(dealt.public.verification_keys())
            .map(|(i, key)| (identifier(i), VerifyingShare::deserialize(key.bytes()).unwrap()))
            .collect();
        let their_key = their_key_package(&dealt.shares[0], &verifying_shares, verifying_key, k);
        // Every third party is absent.
        let signers: Vec<_> =
            dealt.shares.iter().filter(|share| n == k || share.index().get() % 3 != 2).take(k.into()).collect();
        assert_eq!(signers.len(), usize::from(k));
        let (nonces, commitments): (Vec<_>, Vec<_>) = signers.iter().map(|key| frost::commit::<C>(key, rng)).unzip();
        let package = SigningPackage::new(&dealt.public, commitments.clone(), MESSAGE).unwrap();
        let shares: Vec<_> =
            nonces.into_iter().zip(signers).map(|(nonces, key)| frost::sign(&package, nonces, key).unwrap()).collect();
        let their_list = commitments.iter().map(|ours| (identifier(ours.index()), their_commitments(ours))).collect();
        Self {
            their_public: PublicKeyPackage::new(verifying_shares, verifying_key, Some(k)),
            their_key,
            their_package: frost_core::SigningPackage::new(their_list, MESSAGE),
            their_shares: shares
                .iter()
                .map(|share| (identifier(share.index()), TheirShare::deserialize(&share.encode()).unwrap()))
                .collect(),
            commitments,
            shares,
            dealt,
        }
    }
}

fn their_key_package<G: theta_groups::Group, T: Ciphersuite>(
    share: &KeyShare<G>,
    verifying_shares: &BTreeMap<Identifier<T>, VerifyingShare<T>>,
    verifying_key: VerifyingKey<T>,
    k: u16,
) -> KeyPackage<T> {
    let id = identifier(share.index());
    let secret = SigningShare::deserialize(share.secret().expose().encode().as_ref()).unwrap();
    KeyPackage::new(id, secret, verifying_shares[&id], verifying_key, k)
}

fn their_commitments<C: FrostSuite, T: Ciphersuite>(ours: &SigningCommitments<C>) -> TheirCommitments<T> {
    let bytes = ours.encode();
    let (hiding, binding) = bytes.split_at(bytes.len() / 2);
    let read = |bytes| NonceCommitment::deserialize(bytes).unwrap();
    TheirCommitments::new(read(hiding), read(binding))
}

fn suite<C: FrostSuite, T: Ciphersuite>(criterion: &mut Criterion) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for (k, n) in SIZES {
        let mut group = criterion.benchmark_group(format!("{} {k}-of-{n}", C::SUITE));
        group.sample_size(10).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(400));
        let session = Session::<C, T>::new(k, n, &mut rng);
        key_generation::<C, T>(&mut group, k, n, &mut rng);
        round_one(&mut group, &session, &mut rng);
        round_two(&mut group, &session, &mut rng);
        aggregation(&mut group, &session, &mut rng);
        group.finish();
    }
}

type Group<'a> = BenchmarkGroup<'a, WallTime>;

fn key_generation<C: FrostSuite, T: Ciphersuite>(group: &mut Group<'_>, k: u16, n: u16, rng: &mut ChaCha20Rng) {
    let threshold = Threshold::new(k, n).unwrap();
    group.bench_function("key generation/ours", |bencher| bencher.iter(|| deal::<Frost<C>>(threshold, rng)));
    let mut rng = OldRng(ChaCha20Rng::seed_from_u64(2));
    group.bench_function("key generation/frost-core", |bencher| {
        bencher.iter(|| generate_with_dealer::<T, _>(n, k, IdentifierList::Default, &mut rng).unwrap());
    });
}

fn round_one<C: FrostSuite, T: Ciphersuite>(group: &mut Group<'_>, session: &Session<C, T>, rng: &mut ChaCha20Rng) {
    let key = &session.dealt.shares[0];
    group.bench_function("round 1/ours", |bencher| {
        bencher.iter(|| {
            let (nonces, commitments) = frost::commit::<C>(key, rng);
            (nonces, commitments.encode())
        });
    });
    let mut rng = OldRng(ChaCha20Rng::seed_from_u64(3));
    group.bench_function("round 1/frost-core", |bencher| {
        bencher.iter(|| {
            let (nonces, commitments) = frost_core::round1::commit::<T, _>(session.their_key.signing_share(), &mut rng);
            let bytes = [commitments.hiding(), commitments.binding()].map(|half| half.serialize().unwrap());
            (nonces, bytes)
        });
    });
}

fn round_two<C: FrostSuite, T: Ciphersuite>(group: &mut Group<'_>, session: &Session<C, T>, rng: &mut ChaCha20Rng) {
    let (public, key) = (&session.dealt.public, &session.dealt.shares[0]);
    group.bench_function("round 2/ours", |bencher| {
        let setup = || {
            let (nonces, mine) = frost::commit::<C>(key, rng);
            let mut list = session.commitments.clone();
            list[0] = mine;
            (nonces, list)
        };
        let signed = |(nonces, list)| {
            let package = SigningPackage::new(public, list, MESSAGE).unwrap();
            frost::sign(&package, nonces, key).unwrap()
        };
        bencher.iter_batched(setup, signed, BatchSize::SmallInput);
    });
    let mut rng = OldRng(ChaCha20Rng::seed_from_u64(4));
    let (nonces, mine) = frost_core::round1::commit::<T, _>(session.their_key.signing_share(), &mut rng);
    let mut list = session.their_package.signing_commitments().clone();
    list.insert(*session.their_key.identifier(), mine);
    let package = frost_core::SigningPackage::new(list, MESSAGE);
    group.bench_function("round 2/frost-core", |bencher| {
        bencher.iter(|| frost_core::round2::sign(black_box(&package), &nonces, &session.their_key).unwrap());
    });
}

fn aggregation<C: FrostSuite, T: Ciphersuite>(group: &mut Group<'_>, session: &Session<C, T>, rng: &mut ChaCha20Rng) {
    let public = &session.dealt.public;
    group.bench_function("aggregate/ours", |bencher| {
        let aggregated = |list| {
            let package = SigningPackage::new(public, list, MESSAGE).unwrap();
            frost::aggregate(public, &package, &session.shares, rng).unwrap()
        };
        bencher.iter_batched(|| session.commitments.clone(), aggregated, BatchSize::SmallInput);
    });
    group.bench_function("aggregate/frost-core", |bencher| {
        bencher.iter(|| {
            frost_core::aggregate(black_box(&session.their_package), &session.their_shares, &session.their_public)
                .unwrap()
        });
    });
}

fn every_suite(criterion: &mut Criterion) {
    suite::<Ristretto255Sha512, frost_ristretto255::Ristretto255Sha512>(criterion);
    suite::<Ed25519Sha512, frost_ed25519::Ed25519Sha512>(criterion);
    suite::<Ed448Shake256, frost_ed448::Ed448Shake256>(criterion);
    suite::<P256Sha256, frost_p256::P256Sha256>(criterion);
    suite::<Secp256k1Sha256, frost_secp256k1::Secp256K1Sha256>(criterion);
}

criterion_group!(benches, every_suite);
criterion_main!(benches);

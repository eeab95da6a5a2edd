//! The costs that `docs/adr/0001-groups.md` quotes: `cargo bench -p theta-sharing`.
//!
//! The least of many runs, in microseconds: what the code costs when nothing else disturbs the machine.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::hint::black_box;
use std::time::Instant;
use theta_groups::bls12_381::{Bls12_381, G1, G2};
use theta_groups::{Ed448, Ed25519, Group, P256, Pairing, Ristretto255, Scalar, Secp256k1, Secret, Transcript, bn254};
use theta_sharing::dleq::{
    Bases, ClaimSet, DleqClaim, DleqProof, Generator, prove, vartime_false_among, vartime_verify, vartime_verify_batch,
};
use theta_sharing::{Encoded, ShareIndex, coefficients_at_zero, vartime_interpolate_at_zero};

fn least<T>(mut run: impl FnMut() -> T) -> f64 {
    (0..60)
        .map(|_| {
            let start = Instant::now();
            black_box(run());
            start.elapsed().as_secs_f64() * 1e6
        })
        .fold(f64::MAX, f64::min)
}

fn group<G: Group>(rng: &mut ChaCha20Rng) {
    let scalar = G::Scalar::random(rng);
    let point = G::mul_base(&scalar);
    let encoded = G::encode(&point);
    println!("{}", G::NAME);
    println!("  g * s                 {:8.1}", least(|| G::mul_base(&scalar)));
    println!("  p * s                 {:8.1}", least(|| point * scalar));
    println!("  hash                  {:8.1}", least(|| G::hash_to_group(b"theta/bench", &[b"message"])));
    println!("  encode                {:8.1}", least(|| G::encode(&point)));
    println!("  decode                {:8.1}", least(|| G::decode(encoded.as_ref())));
    println!("  decode, no subgroup   {:8.1}", least(|| G::decode_unchecked_subgroup(encoded.as_ref())));
    for n in [3_u16, 11, 34, 43, 100] {
        let scalars: Vec<_> = (0..n).map(|_| G::Scalar::random(rng)).collect();
        let points: Vec<_> = scalars.iter().map(G::mul_base).collect();
        let short: Vec<u128> = (0..n).map(|i| u128::MAX / (u128::from(i) + 3)).collect();
        println!(
            "  msm of {n:3}            {:8.1}   short {:8.1}   encode each {:6.1}",
            least(|| G::vartime_msm(&scalars, &points)),
            least(|| G::vartime_msm_short(&short, &points)),
            least(|| G::encode_batch(&points)) / f64::from(n),
        );
    }
}

fn interpolation<G: Group>(rng: &mut ChaCha20Rng) {
    println!("{}: combination of shares", G::NAME);
    let sets: [(&str, Vec<u16>); 7] = [
        ("1 2 3", (1..=3).collect()),
        ("2 5 7", vec![2, 5, 7]),
        ("1..=11", (1..=11).collect()),
        ("11 of 31, every third", (0..11).map(|i| 3 * i + 1).collect()),
        ("34 of 100, every third", (0..34).map(|i| 3 * i + 1).collect()),
        ("43 of 127, every third", (0..43).map(|i| 3 * i + 1).collect()),
        ("334 of 1000, every third", (0..334).map(|i| 3 * i + 1).collect()),
    ];
    for (name, numbers) in sets {
        let shares: Vec<(ShareIndex, G::Element)> = numbers
            .iter()
            .filter_map(|number| ShareIndex::try_from(*number).ok())
            .map(|index| (index, G::mul_base(&G::Scalar::random(rng))))
            .collect();
        let (indices, elements): (Vec<_>, Vec<_>) = shares.iter().copied().unzip();
        println!(
            "  {name:25} {:8.1}   coefficients alone {:8.1}   with them in full {:8.1}",
            least(|| vartime_interpolate_at_zero::<G>(&shares)),
            least(|| coefficients_at_zero::<G::Scalar>(&indices)),
            least(|| coefficients_at_zero::<G::Scalar>(&indices).map(|scalars| G::vartime_msm(&scalars, &elements))),
        );
    }
}

fn proofs<G: Group>(rng: &mut ChaCha20Rng) {
    println!("{}: proofs of equal logarithms", G::NAME);
    let base = G::hash_to_group(b"theta/bench", &[b"base"]);
    let bases = Generator::<G>::new().with(Encoded::new(base));
    let context = Transcript::new("theta/bench");
    let cases: Vec<_> = (0..34)
        .map(|_| {
            let secret = Secret::new(G::Scalar::random(rng));
            let image_g = Encoded::new(G::mul_base(secret.expose()));
            let image = Encoded::new(base * *secret.expose());
            let proof = prove(&context, &secret, &bases, &image_g, &image, rng);
            (secret, image_g, image, proof)
        })
        .collect();
    let claims: Vec<DleqClaim<'_, G>> = cases
        .iter()
        .map(|(_, image_g, image, proof)| DleqClaim { image_g: *image_g, image: *image, proof, context: &context })
        .collect();
    if let [(secret, image_g, image, _), ..] = cases.as_slice() {
        println!("  prove                 {:8.1}", least(|| prove(&context, secret, &bases, image_g, image, rng)));
    }
    if let [claim, ..] = claims.as_slice() {
        println!("  verify one            {:8.1}", least(|| vartime_verify(&bases, claim)));
    }
    for n in [3, 11, 34] {
        let batch = claims.get(..n).unwrap_or_default();
        println!("  verify {n:2}, each       {:8.1}", least(|| vartime_verify_batch(&bases, batch, rng)) / n as f64);
    }
}

/// H, V and the proof.
type Proven<G> = (Encoded<G>, Encoded<G>, DleqProof<G>);

fn claims_of<'a, G: Group>(proofs: &'a [Proven<G>], context: &'a Transcript) -> Vec<DleqClaim<'a, G>> {
    let claim = |(image_g, image, proof): &'a Proven<G>| DleqClaim { image_g: *image_g, image: *image, proof, context };
    proofs.iter().map(claim).collect()
}

/// The proofs of `count` shares of each of many requests, which have a base each, by the same provers.
struct Requests<G: Group>(Vec<(Bases<G>, Vec<Proven<G>>)>);

impl<G: Group> Requests<G> {
    fn new(requests: u8, count: usize, context: &Transcript, rng: &mut ChaCha20Rng) -> Self {
        let keys: Vec<_> = (0..count).map(|_| Secret::new(G::Scalar::random(rng))).collect();
        let request = |request| {
            let base = G::hash_to_group(b"theta/bench", &[&[request]]);
            let bases = Generator::<G>::new().with(Encoded::new(base));
            let proofs = keys.iter().map(|secret| {
                let image_g = Encoded::new(G::mul_base(secret.expose()));
                let image = Encoded::new(base * *secret.expose());
                (image_g, image, prove(context, secret, &bases, &image_g, &image, rng))
            });
            (bases, proofs.collect())
        };
        Self((0..requests).map(request).collect())
    }
}

/// The proofs of one request's shares against those of many requests in one sum, in microseconds a request. The membership of
/// shares in the subgroup costs the same in both and is left out.
fn together<G: Group>(rng: &mut ChaCha20Rng) {
    println!("{}: proofs of several requests, each request", G::NAME);
    let context = Transcript::new("theta/bench");
    for count in [1, 2, 10] {
        let Requests(requests) = Requests::<G>::new(32, count, &context, rng);
        let claims: Vec<(&Bases<G>, Vec<DleqClaim<'_, G>>)> =
            requests.iter().map(|(bases, proofs)| (bases, claims_of(proofs, &context))).collect();
        let sets: Vec<ClaimSet<'_, G>> = claims.iter().map(|(bases, claims)| (*bases, claims.as_slice())).collect();
        if let [(bases, claims), ..] = sets.as_slice() {
            let alone = match claims {
                [claim] => least(|| vartime_verify(bases, claim)),
                claims => least(|| vartime_verify_batch(bases, claims, rng)),
            };
            print!("  {count:2} shares: alone {alone:8.1}");
        }
        for together in [2, 4, 8, 16, 32] {
            let batch = sets.get(..together).unwrap_or_default();
            print!("   {together:2} {:8.1}", least(|| vartime_false_among(batch, rng)) / together as f64);
        }
        println!();
    }
}

fn main() {
    if std::env::args().any(|argument| argument == "together") {
        return every_together(&mut ChaCha20Rng::seed_from_u64(1));
    }
    let rng = &mut ChaCha20Rng::seed_from_u64(1);
    group::<Ristretto255>(rng);
    group::<G1>(rng);
    group::<G2>(rng);
    let (p, q) = (G1::generator(), G2::hash_to_group(b"theta/bench", &[b"q"]));
    println!("two pairings and check  {:8.1}", least(|| Bls12_381::vartime_product_is_one(&[(p, q), (-p, q)])));
    interpolation::<Ristretto255>(rng);
    interpolation::<G1>(rng);
    interpolation::<G2>(rng);
    proofs::<Ristretto255>(rng);
    proofs::<G1>(rng);
    every_together(rng);
}

fn every_together(rng: &mut ChaCha20Rng) {
    together::<Ristretto255>(rng);
    together::<Ed25519>(rng);
    together::<P256>(rng);
    together::<Secp256k1>(rng);
    together::<bn254::G1>(rng);
    together::<G1>(rng);
    together::<Ed448>(rng);
}

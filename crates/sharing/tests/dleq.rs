//! What a proof of equal discrete logarithms must accept, and everything that it must not.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests fail by panicking")]

use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, Rng, SeedableRng, TryCryptoRng, TryRng};
use theta_groups::bls12_381::{G1, G2};
use theta_groups::{DecodeError, Ed25519, Group, Ristretto255, Scalar, Secret, Transcript};
use theta_sharing::Encoded;
use theta_sharing::dleq::{
    Bases, DleqClaim, DleqProof, Generator, prove, vartime_false_among, vartime_false_sets, vartime_verify,
    vartime_verify_batch,
};

/// The bases g and `base`.
fn bases<G: Group>(base: G::Element) -> Bases<G> {
    Generator::new().with(Encoded::new(base))
}

/// One prover's true statement and its proof, owned.
struct Case<G: Group> {
    secret: Secret<G::Scalar>,
    image_g: G::Element,
    image: G::Element,
    proof: DleqProof<G>,
    context: Transcript,
}

impl<G: Group> Case<G> {
    fn new(base: &G::Element, party: u8, rng: &mut ChaCha20Rng) -> Self {
        let secret = Secret::new(G::Scalar::random(rng));
        let (image_g, image) = (G::mul_base(secret.expose()), *base * *secret.expose());
        let context = Transcript::new("theta/test/dleq").with("party", &[party]);
        let proof = prove(&context, &secret, &bases::<G>(*base), &Encoded::new(image_g), &Encoded::new(image), rng);
        Self { secret, image_g, image, proof, context }
    }

    fn claim(&self) -> DleqClaim<'_, G> {
        DleqClaim {
            image_g: Encoded::new(self.image_g),
            image: Encoded::new(self.image),
            proof: &self.proof,
            context: &self.context,
        }
    }
}

fn setup<G: Group>(n: u8) -> (G::Element, Vec<Case<G>>, ChaCha20Rng) {
    let mut rng = ChaCha20Rng::seed_from_u64(u64::from(n));
    let base = G::hash_to_group(b"theta/test", &[b"base"]);
    let cases = (0..n).map(|party| Case::new(&base, party, &mut rng)).collect();
    (base, cases, rng)
}

/// Asserts that single and batch verification agree on `claims`, and returns the positions of the false ones.
fn false_claims<G: Group>(base: &G::Element, claims: &[DleqClaim<'_, G>], rng: &mut ChaCha20Rng) -> Vec<usize> {
    let bases = bases(*base);
    let singly: Vec<usize> = (0..claims.len()).filter(|i| !vartime_verify(&bases, &claims[*i])).collect();
    assert_eq!(vartime_verify_batch(&bases, claims, rng), singly);
    singly
}

/// The proof's bytes with one changed by `change`, decoded again.
fn tampered<G: Group>(proof: &DleqProof<G>, change: impl FnOnce(&mut Vec<u8>)) -> DleqProof<G> {
    let mut bytes = Vec::new();
    proof.encode_into(&mut bytes);
    change(&mut bytes);
    DleqProof::decode(&bytes).unwrap()
}

fn true_claims_are_accepted<G: Group>() {
    for n in [0, 1, 2, 3, 8, 13] {
        let (base, cases, mut rng) = setup::<G>(n);
        let claims: Vec<_> = cases.iter().map(Case::claim).collect();
        assert!(false_claims(&base, &claims, &mut rng).is_empty());
    }
}

fn proofs_round_trip<G: Group>() {
    let (base, cases, _) = setup::<G>(1);
    let mut bytes = vec![7];
    cases[0].proof.encode_into(&mut bytes);
    assert_eq!(bytes.len(), 1 + DleqProof::<G>::encoded_len());
    assert_eq!(bytes[0], 7);
    let proof = DleqProof::decode(&bytes[1..]).unwrap();
    assert!(vartime_verify(&bases(base), &DleqClaim { proof: &proof, ..cases[0].claim() }));
    let expected = DleqProof::<G>::encoded_len();
    for len in [0, 1, expected - 1, expected + 1] {
        let error = DleqProof::<G>::decode(&vec![0; len]).unwrap_err();
        assert_eq!(error, DecodeError::Length { expected, got: len });
    }
    let scalar_at = 2 * G::ENCODED_LEN;
    bytes.remove(0);
    bytes[scalar_at..].fill(0xff);
    assert_eq!(DleqProof::<G>::decode(&bytes).unwrap_err(), DecodeError::NotCanonical);
}

/// Every single change to a true claim, one by one.
fn lies_are_refused<G: Group>() {
    let (base, cases, mut rng) = setup::<G>(3);
    let [case, other, third] = cases.as_slice() else { unreachable!() };
    let context = Transcript::new("theta/test/other");
    let unbound = Transcript::new("theta/test/dleq");
    let len = G::ENCODED_LEN;
    let random = G::encode(&G::mul_base(&G::Scalar::random(&mut rng)));
    let swapped = tampered(&case.proof, |bytes| {
        let (a, b) = bytes.split_at_mut(len);
        a.swap_with_slice(&mut b[..len]);
    });
    let replaced_a = tampered(&case.proof, |bytes| bytes[..len].copy_from_slice(random.as_ref()));
    let replaced_b = tampered(&case.proof, |bytes| bytes[len..2 * len].copy_from_slice(random.as_ref()));
    let garbage_a = tampered(&case.proof, |bytes| bytes[..len].fill(0xff));
    let garbage_b = tampered(&case.proof, |bytes| bytes[len..2 * len].fill(0xff));
    let identity = G::encode(&G::identity());
    let identity_a = tampered(&case.proof, |bytes| bytes[..len].copy_from_slice(identity.as_ref()));
    let identity_b = tampered(&case.proof, |bytes| bytes[len..2 * len].copy_from_slice(identity.as_ref()));
    let response = tampered(&case.proof, |bytes| {
        let one_more = G::Scalar::decode(&bytes[2 * len..]).unwrap() + G::Scalar::ONE;
        bytes[2 * len..].copy_from_slice(one_more.encode().as_ref());
    });
    let lies = [
        ("wrong image", DleqClaim { image: Encoded::new(case.image + base), ..case.claim() }),
        ("wrong image of g", DleqClaim { image_g: Encoded::new(case.image_g + G::generator()), ..case.claim() }),
        (
            "images swapped",
            DleqClaim { image_g: Encoded::new(case.image), image: Encoded::new(case.image_g), ..case.claim() },
        ),
        (
            "negated images",
            DleqClaim { image_g: Encoded::new(-case.image_g), image: Encoded::new(-case.image), ..case.claim() },
        ),
        ("both images of another", DleqClaim { proof: &case.proof, context: &case.context, ..other.claim() }),
        ("the share of another", DleqClaim { image: Encoded::new(other.image), ..case.claim() }),
        ("the proof of another", DleqClaim { proof: &third.proof, ..case.claim() }),
        ("another context", DleqClaim { context: &context, ..case.claim() }),
        ("a context with less in it", DleqClaim { context: &unbound, ..case.claim() }),
        ("the context of another", DleqClaim { context: &other.context, ..case.claim() }),
        ("commitments swapped", DleqClaim { proof: &swapped, ..case.claim() }),
        ("first commitment replaced", DleqClaim { proof: &replaced_a, ..case.claim() }),
        ("second commitment replaced", DleqClaim { proof: &replaced_b, ..case.claim() }),
        ("first commitment garbage", DleqClaim { proof: &garbage_a, ..case.claim() }),
        ("second commitment garbage", DleqClaim { proof: &garbage_b, ..case.claim() }),
        ("first commitment the identity", DleqClaim { proof: &identity_a, ..case.claim() }),
        ("second commitment the identity", DleqClaim { proof: &identity_b, ..case.claim() }),
        ("response changed", DleqClaim { proof: &response, ..case.claim() }),
        ("image the identity", DleqClaim { image: Encoded::new(G::identity()), ..case.claim() }),
        ("image of g the identity", DleqClaim { image_g: Encoded::new(G::identity()), ..case.claim() }),
    ];
    for (name, lie) in &lies {
        assert!(!vartime_verify(&bases(base), lie), "{name}");
        assert_eq!(vartime_verify_batch(&bases(base), std::slice::from_ref(lie), &mut rng), [0], "{name}");
    }
    // All of them between true ones.
    let mut claims = vec![case.claim()];
    for (_, lie) in &lies {
        claims.push(lie.clone());
        claims.push(other.claim());
    }
    let odd: Vec<usize> = (0..lies.len()).map(|i| 2 * i + 1).collect();
    assert_eq!(false_claims(&base, &claims, &mut rng), odd);
}

fn another_base_is_refused<G: Group>() {
    let (base, cases, mut rng) = setup::<G>(2);
    let claims: Vec<_> = cases.iter().map(Case::claim).collect();
    for wrong in [base + base, -base, G::generator(), G::identity()] {
        assert_eq!(false_claims(&wrong, &claims, &mut rng), [0, 1]);
    }
}

/// The zero key: H and V are the identity and any proof of x = 0 holds, so the statement says nothing.
fn the_zero_secret_is_refused<G: Group>() {
    let (base, _, mut rng) = setup::<G>(0);
    let zero = Secret::new(G::Scalar::ZERO);
    let context = Transcript::new("theta/test/dleq");
    let identity = Encoded::new(G::identity());
    let proof = prove(&context, &zero, &bases::<G>(base), &identity, &identity, &mut rng);
    let claim = DleqClaim { image_g: identity, image: identity, proof: &proof, context: &context };
    assert_eq!(false_claims(&base, &[claim], &mut rng), [0]);
}

fn every_set_of_culprits_is_found<G: Group>() {
    let (base, mut cases, mut rng) = setup::<G>(5);
    for mask in 0..32_u8 {
        let claims: Vec<_> = (0..5)
            .map(|i| {
                let claim = cases[i].claim();
                if mask >> i & 1 == 1 {
                    DleqClaim { image: Encoded::new(cases[i].image + base), ..claim }
                } else {
                    claim
                }
            })
            .collect();
        let expected: Vec<usize> = (0..5).filter(|i| mask >> i & 1 == 1).collect();
        assert_eq!(false_claims(&base, &claims, &mut rng), expected);
    }
    cases.clear();
}

/// Two provers who know each other's secrets shift their responses by +d and -d. The sum of all equations without
/// weights would still hold. So would a sum that gave both equations of one claim the same weight, for a claim wrong
/// in both by cancelling amounts.
fn errors_that_cancel_are_found<G: Group>() {
    let (base, cases, mut rng) = setup::<G>(4);
    let d = G::Scalar::random(&mut rng);
    let len = G::ENCODED_LEN;
    let shifted = |proof: &DleqProof<G>, by: G::Scalar| {
        tampered(proof, |bytes| {
            let response = G::Scalar::decode(&bytes[2 * len..]).unwrap() + by;
            bytes[2 * len..].copy_from_slice(response.encode().as_ref());
        })
    };
    let (plus, minus) = (shifted(&cases[1].proof, d), shifted(&cases[2].proof, -d));
    let claims = [
        cases[0].claim(),
        DleqClaim { proof: &plus, ..cases[1].claim() },
        DleqClaim { proof: &minus, ..cases[2].claim() },
        cases[3].claim(),
    ];
    let response = |proof: &DleqProof<G>| {
        let mut bytes = Vec::new();
        proof.encode_into(&mut bytes);
        G::Scalar::decode(&bytes[2 * len..]).unwrap()
    };
    let honest: G::Scalar = cases.iter().map(|case| response(&case.proof)).sum();
    let lying: G::Scalar = claims.iter().map(|claim| response(claim.proof)).sum();
    assert_eq!(honest, lying, "the unweighted sum cannot tell");
    assert_eq!(false_claims(&base, &claims, &mut rng), [1, 2]);

    // A = g^w + E and B = U^w - E, with the challenge computed honestly over them: A + B is right.
    let case = &cases[0];
    let (w, e) = (G::Scalar::random(&mut rng), G::mul_base(&d));
    let (a, b) = (G::encode(&(G::mul_base(&w) + e)), G::encode(&(base * w - e)));
    let challenge: G::Scalar = case
        .context
        .clone()
        .with("proof", b"theta/dleq/v1")
        .with("g", G::encode(&G::generator()).as_ref())
        .with("h", G::encode(&case.image_g).as_ref())
        .with("u", G::encode(&base).as_ref())
        .with("v", G::encode(&case.image).as_ref())
        .with("a", a.as_ref())
        .with("b", b.as_ref())
        .challenge();
    let s = w + challenge * *case.secret.expose();
    let bytes = [a.as_ref(), b.as_ref(), s.encode().as_ref()].concat();
    let proof = DleqProof::decode(&bytes).unwrap();
    assert_eq!(G::mul_base(&s) + base * s, (G::mul_base(&w) + base * w) + (case.image_g + case.image) * challenge);
    let claims = [DleqClaim { proof: &proof, ..case.claim() }, cases[3].claim()];
    assert_eq!(false_claims(&base, &claims, &mut rng), [0]);
}

/// The lies of one claim among sets, each about a base of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    None,
    Image,
    Response,
    Commitment,
    Context,
    /// The proof of the same prover about the next set's base.
    OfAnotherSet,
}

/// One prover for each position, who proves for every set; provers have the same keys in all sets, as parties have in all requests.
fn sets_of<G: Group>(lies: &[Vec<Lie>], seed: u64) -> (Vec<Bases<G>>, Vec<Vec<Case<G>>>) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let most = lies.iter().map(Vec::len).max().unwrap_or(0);
    let secrets: Vec<_> = (0..most).map(|_| G::Scalar::random(&mut rng)).collect();
    let base = |set: usize| G::hash_to_group(b"theta/test", &[&set.to_le_bytes()]);
    let prove_for = |set: usize, position: usize, rng: &mut ChaCha20Rng| {
        let (base, secret) = (base(set), Secret::new(secrets[position]));
        let (image_g, image) = (G::mul_base(secret.expose()), base * *secret.expose());
        let context = Transcript::new("theta/test/dleq").with("set", &set.to_le_bytes());
        let proof = prove(&context, &secret, &bases::<G>(base), &Encoded::new(image_g), &Encoded::new(image), rng);
        Case { secret, image_g, image, proof, context }
    };
    let len = G::ENCODED_LEN;
    let made = lies.iter().enumerate().map(|(set, lies)| {
        let case = |(position, lie): (usize, &Lie)| {
            let case = prove_for(set, position, &mut rng);
            match lie {
                Lie::None => case,
                Lie::Image => Case { image: case.image + G::generator(), ..case },
                Lie::Response => Case {
                    proof: tampered(&case.proof, |bytes| {
                        let more = G::Scalar::decode(&bytes[2 * len..]).unwrap() + G::Scalar::ONE;
                        bytes[2 * len..].copy_from_slice(more.encode().as_ref());
                    }),
                    ..case
                },
                Lie::Commitment => Case { proof: tampered(&case.proof, |bytes| bytes[..len].fill(0xff)), ..case },
                Lie::Context => Case { context: Transcript::new("theta/test/other"), ..case },
                Lie::OfAnotherSet => Case { context: case.context, ..prove_for(set + 1, position, &mut rng) },
            }
        };
        lies.iter().enumerate().map(case).collect()
    });
    let made: Vec<Vec<_>> = made.collect();
    ((0..lies.len()).map(|set| bases(base(set))).collect(), made)
}

/// Checks that sets verified together give the same as each claim by itself, and returns the false ones.
fn false_in_sets<G: Group>(bases: &[Bases<G>], cases: &[Vec<Case<G>>]) -> Vec<(usize, usize)> {
    let claims: Vec<Vec<_>> = cases.iter().map(|set| set.iter().map(Case::claim).collect()).collect();
    let sets: Vec<_> = bases.iter().zip(&claims).map(|(bases, claims)| (bases, claims.as_slice())).collect();
    let singly: Vec<_> = sets
        .iter()
        .enumerate()
        .flat_map(|(set, (bases, claims))| {
            let of_set = claims.iter().enumerate().filter(|(_, claim)| !vartime_verify(bases, claim));
            of_set.map(move |(position, _)| (set, position))
        })
        .collect();
    assert_eq!(vartime_false_among(&sets, &mut ChaCha20Rng::seed_from_u64(3)), singly);
    let mut false_sets: Vec<usize> = singly.iter().map(|(set, _)| *set).collect();
    false_sets.dedup();
    assert_eq!(vartime_false_sets(&sets, &mut ChaCha20Rng::seed_from_u64(3)), false_sets);
    singly
}

fn sets_on_their_own_bases<G: Group>() {
    use Lie::{Commitment, Context, Image, None, OfAnotherSet, Response};
    let lies = [
        vec![None, Image, None],
        vec![],
        vec![None, None],
        vec![OfAnotherSet, Response, None],
        vec![Commitment, Context],
    ];
    let (bases, cases) = sets_of::<G>(&lies, 1);
    assert_eq!(false_in_sets(&bases, &cases), [(0, 1), (3, 0), (3, 1), (4, 0), (4, 1)]);
    assert!(vartime_false_among::<G>(&[], &mut ChaCha20Rng::seed_from_u64(3)).is_empty());
    // Errors of two sets that cancel in a sum without weights: the same prover's images, moved apart.
    let (bases, mut cases) = sets_of::<G>(&[vec![None; 2], vec![None; 2]], 2);
    assert!(false_in_sets(&bases, &cases).is_empty());
    let error = G::hash_to_group(b"theta/test", &[b"error"]);
    (cases[0][1].image, cases[1][1].image) = (cases[0][1].image + error, cases[1][1].image - error);
    assert_eq!(false_in_sets(&bases, &cases), [(0, 1), (1, 1)]);
    // A set on the identity is false as a whole, and no other is.
    let identity = Generator::new().with(Encoded::new(G::identity()));
    let (bases, cases) = sets_of::<G>(&[vec![None], vec![None; 2], vec![None]], 3);
    assert_eq!(false_in_sets(&[bases[0], identity, bases[2]], &cases), [(1, 0), (1, 1)]);
}

fn lie() -> impl Strategy<Value = Lie> {
    prop_oneof![
        8 => Just(Lie::None),
        1 => Just(Lie::Image),
        1 => Just(Lie::Response),
        1 => Just(Lie::Commitment),
        1 => Just(Lie::Context),
        1 => Just(Lie::OfAnotherSet),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the sets and whoever lies about what: together they give the same verdicts as one by one.
    #[test]
    fn together_is_as_one_by_one(lies in proptest::collection::vec(proptest::collection::vec(lie(), 0..5), 0..6), seed: u64) {
        let (bases, cases) = sets_of::<Ristretto255>(&lies, seed);
        let found = false_in_sets(&bases, &cases);
        let positions = |(set, lies): (usize, &Vec<Lie>)| {
            lies.iter().enumerate().filter(|(_, lie)| **lie != Lie::None).map(|(position, _)| (set, position)).collect::<Vec<_>>()
        };
        let expected: Vec<_> = lies.iter().enumerate().flat_map(positions).collect();
        prop_assert_eq!(found, expected);
    }
}

/// A random generator that always gives the same bytes, as in a cloned virtual machine.
struct Stuck;

impl TryRng for Stuck {
    type Error = core::convert::Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(4)
    }
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(4)
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        bytes.fill(4);
        Ok(())
    }
}

impl TryCryptoRng for Stuck {}

/// With equal nonces w, two responses would give the secret away as (s1 - s2) / (e1 - e2).
fn repeated_randomness_does_not_repeat_nonces<G: Group>() {
    let (base, cases, _) = setup::<G>(1);
    let case = &cases[0];
    let commitment = |context: &Transcript, base: &G::Element| {
        let (image_g, image) = (Encoded::new(case.image_g), Encoded::new(*base * *case.secret.expose()));
        let rng: &mut dyn CryptoRng = &mut Stuck;
        let mut bytes = Vec::new();
        prove(context, &case.secret, &bases::<G>(*base), &image_g, &image, rng).encode_into(&mut bytes);
        bytes[..G::ENCODED_LEN].to_vec()
    };
    let other = Transcript::new("theta/test/other");
    let first = commitment(&case.context, &base);
    assert_eq!(first, commitment(&case.context, &base));
    assert_ne!(first, commitment(&other, &base));
    assert_ne!(first, commitment(&case.context, &(base + base)));
}

/// Random bytes as proofs: never a panic, never accepted.
fn noise_is_refused<G: Group>() {
    let (base, cases, mut rng) = setup::<G>(1);
    for _ in 0..50 {
        let mut bytes = vec![0; DleqProof::<G>::encoded_len()];
        rng.fill_bytes(&mut bytes);
        // Small enough a scalar in either byte order.
        let scalar = 2 * G::ENCODED_LEN;
        bytes[scalar] &= 0x0f;
        *bytes.last_mut().unwrap() &= 0x0f;
        let proof = DleqProof::decode(&bytes).unwrap();
        assert_eq!(false_claims(&base, &[DleqClaim { proof: &proof, ..cases[0].claim() }], &mut rng), [0]);
    }
}

macro_rules! instantiate {
    ($($name:ident: $group:ty;)*) => { $( mod $name { instantiate!(@ $group: true_claims_are_accepted proofs_round_trip
        lies_are_refused another_base_is_refused the_zero_secret_is_refused every_set_of_culprits_is_found
        errors_that_cancel_are_found sets_on_their_own_bases repeated_randomness_does_not_repeat_nonces noise_is_refused); } )* };
    (@ $group:ty: $($test:ident)*) => { $(#[test] fn $test() { super::$test::<$group>(); })* };
}

instantiate! {
    ristretto255: super::Ristretto255;
    ed25519: super::Ed25519;
    g1: super::G1;
    g2: super::G2;
}

//! BLS12-381 against the RFC, against signatures of another implementation, and against malicious points.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use serde_json::Value;
use theta_groups::bls12_381::{Bls12_381, BlsScalar, G1, G2};
use theta_groups::{DecodeError, Group, Pairing, Scalar};

fn product_is_one(pairs: &[(<G1 as Group>::Element, <G2 as Group>::Element)]) -> bool {
    Bls12_381::vartime_product_is_one(pairs)
}

/// RFC 9380, appendices J.9.1 and J.10.1, read from uncompressed coordinates.
fn check_hash_vectors<G: Group>(file: &str) {
    let file: Value = serde_json::from_str(file).unwrap();
    let dst = file["dst"].as_str().unwrap().as_bytes();
    let vectors = file["vectors"].as_array().unwrap();
    assert_eq!(vectors.len(), 5);
    for vector in vectors {
        let message = vector["msg"].as_str().unwrap().as_bytes();
        let coordinate = |name: &str| -> Vec<u8> {
            // Compressed points begin with the highest coefficient.
            let coefficients = vector[name].as_array().unwrap();
            coefficients.iter().rev().flat_map(|c| hex::decode(c.as_str().unwrap()).unwrap()).collect()
        };
        let (x, y) = (coordinate("x"), coordinate("y"));
        let encoded = G::encode(&G::hash_to_group(dst, &[message]));
        let mut bare = encoded.as_ref().to_vec();
        bare[0] &= 0x1f;
        assert_eq!(bare, x);
        assert_eq!(encoded.as_ref()[0] & 0x20 != 0, is_larger_than_its_negative(&y), "sign of y");
        assert_eq!(encoded.as_ref()[0] & 0xc0, 0x80, "compressed, finite");
    }
}

/// Lexicographically, highest coefficient first: y > (p - 1) / 2.
fn is_larger_than_its_negative(y: &[u8]) -> bool {
    let half =
        hex::decode("0d0088f51cbff34d258dd3db21a5d66bb23ba5c279c2895fb39869507b587b120f55ffff58a9ffffdcff7fffffffd555")
            .unwrap();
    let first = y.chunks(48).find(|c| c.iter().any(|byte| *byte != 0)).unwrap();
    first > half.as_slice()
}

#[test]
fn hash_to_g1_matches_rfc_9380() {
    check_hash_vectors::<G1>(include_str!("../../../../vectors/rfc9380/BLS12381G1_XMD_SHA-256_SSWU_RO.json"));
}

#[test]
fn hash_to_g2_matches_rfc_9380() {
    check_hash_vectors::<G2>(include_str!("../../../../vectors/rfc9380/BLS12381G2_XMD_SHA-256_SSWU_RO.json"));
}

/// One of the signature vectors that Ethereum's consensus tests publish, made with py_ecc: an implementation that
/// shares nothing with blst. It ties together the encodings, the hash, multiplication and the pairing.
#[test]
fn a_signature_of_another_implementation_comes_out_the_same() {
    let secret =
        BlsScalar::decode(&hex::decode("263dbd792f5b1be47ed85f8938c0f29586af0d3ac7b977f21c278fe1462040e3").unwrap());
    let public = "a491d1b0ecd9bb917989f0e74f0dea0422eac4a873e5e2644f368dffb9a6e20fd6e10c1b77654d067c0618f6e5a7f79a";
    let signature = "b6ed936746e01f8ecf281f020953fbf1f01debd5657c4a383940b020b26507f6076334f91e2366c96e9ab279fb515809\
                     0352ea1c5b0c9274504f4f0e7053af24802e51e4568d164fe986834f41e55c8e850ce1f98458c0cfc9ab380b55285a55";
    let secret = secret.unwrap();
    let h = G2::hash_to_group(b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_", &[&[0; 32]]);
    assert_eq!(hex::encode(G1::encode(&G1::mul_base(&secret))), public);
    assert_eq!(hex::encode(G2::encode(&(h * secret))), signature);
    assert!(product_is_one(&[(G1::mul_base(&secret), h), (-G1::generator(), h * secret)]));
}

#[test]
fn generators_are_the_standard_ones() {
    assert_eq!(
        hex::encode(G1::encode(&G1::generator())),
        "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb"
    );
    assert_eq!(
        hex::encode(G2::encode(&G2::generator())),
        "93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e\
         024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
    );
}

#[test]
fn the_pairing_is_bilinear_and_not_degenerate() {
    let rng = &mut ChaCha20Rng::seed_from_u64(1);
    let (a, b) = (BlsScalar::random(rng), BlsScalar::random(rng));
    let (p, q) = (G1::mul_base(&BlsScalar::random(rng)), G2::mul_base(&BlsScalar::random(rng)));
    assert!(product_is_one(&[(p * a, q * b), (-(p * (a * b)), q)]));
    assert!(product_is_one(&[(p * a, q), (p * b, q), (-p, q * (a + b))]));
    assert!(!product_is_one(&[(p * a, q * b), (p * (a * b), q)]));
    assert!(!product_is_one(&[(p * a, q * b), (-(p * (a + b)), q)]));
    assert!(!product_is_one(&[(p, q)]));
    assert!(!product_is_one(&[(G1::generator(), G2::generator())]));
}

#[test]
fn the_pairing_with_the_identity_is_one() {
    let (g1, g2) = (G1::generator(), G2::generator());
    assert!(product_is_one(&[]));
    assert!(product_is_one(&[(G1::identity(), g2)]));
    assert!(product_is_one(&[(g1, G2::identity()), (G1::identity(), G2::identity())]));
    assert!(product_is_one(&[(g1, g2), (G1::identity(), g2), (-g1, g2), (g1, G2::identity())]));
    assert!(!product_is_one(&[(g1, g2), (G1::identity(), g2)]));
}

/// More pairs than the library's inner loop takes at once.
#[test]
fn long_products_of_pairings() {
    let rng = &mut ChaCha20Rng::seed_from_u64(2);
    for n in [15, 16, 17, 33] {
        let scalars: Vec<(BlsScalar, BlsScalar)> =
            (0..n).map(|_| (BlsScalar::random(rng), BlsScalar::random(rng))).collect();
        let total = scalars.iter().map(|(a, b)| *a * *b).sum::<BlsScalar>();
        let mut pairs: Vec<_> = scalars.iter().map(|(a, b)| (G1::mul_base(a), G2::mul_base(b))).collect();
        assert!(!product_is_one(&pairs));
        pairs.push((-G1::mul_base(&total), G2::generator()));
        assert!(product_is_one(&pairs), "n = {n}");
    }
}

/// A compressed x-coordinate.
fn compressed(len: usize, x: u8, flags: u8) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[len - 1] = x;
    bytes[0] |= flags;
    bytes
}

/// Points on the curve but outside the subgroup: almost all of those with a small x.
fn points_outside_the_subgroup<G: Group>() {
    let (mut outside, mut off_curve) = (0, 0);
    for x in 0..40 {
        let bytes = compressed(G::ENCODED_LEN, x, 0x80);
        match G::decode(&bytes) {
            Err(DecodeError::Subgroup) => {
                outside += 1;
                assert_eq!(G::decode_allowing_identity(&bytes), Err(DecodeError::Subgroup));
                let element = G::decode_unchecked_subgroup(&bytes).unwrap();
                assert!(!G::is_in_subgroup(&element));
                assert!(!G::is_in_subgroup(&(element + G::generator())));
                assert!(!G::is_in_subgroup(&G::vartime_msm_short(&[1, 1], &[element, G::generator()])));
                assert_eq!(G::encode(&element).as_ref(), bytes);
            }
            Err(DecodeError::NotCanonical) => {
                off_curve += 1;
                assert_eq!(G::decode_unchecked_subgroup(&bytes), Err(DecodeError::NotCanonical));
            }
            other => panic!("x = {x}: {other:?}"),
        }
    }
    assert!(outside > 10 && off_curve > 10);
}

#[test]
fn g1_refuses_points_outside_the_subgroup() {
    points_outside_the_subgroup::<G1>();
}

#[test]
fn g2_refuses_points_outside_the_subgroup() {
    points_outside_the_subgroup::<G2>();
}

fn flags_are_strict<G: Group>() {
    let refused = |bytes: Vec<u8>| assert_eq!(G::decode_allowing_identity(&bytes), Err(DecodeError::NotCanonical));
    let generator = G::encode(&G::generator());
    for flags in [0x00, 0x20, 0x40, 0x60, 0xc0, 0xe0] {
        let mut bytes = generator.as_ref().to_vec();
        bytes[0] = bytes[0] & 0x1f | flags;
        refused(bytes);
    }
    refused(compressed(G::ENCODED_LEN, 1, 0xc0)); // infinity with something in it
    refused(compressed(G::ENCODED_LEN, 0, 0xe0)); // negative infinity
    refused(compressed(G::ENCODED_LEN, 0, 0x40)); // infinity, uncompressed
    // x = p and the largest 381-bit x.
    let mut bytes =
        hex::decode("1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab")
            .unwrap();
    bytes.resize(G::ENCODED_LEN, 0);
    bytes[0] |= 0x80;
    refused(bytes);
    let mut bytes = vec![0xff; G::ENCODED_LEN];
    bytes[0] = 0x9f;
    refused(bytes);
}

#[test]
fn g1_flags_are_strict() {
    flags_are_strict::<G1>();
}

#[test]
fn g2_flags_are_strict() {
    flags_are_strict::<G2>();
}

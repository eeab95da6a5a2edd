//! BN254 against another implementation's vectors, against the EVM's encodings, and against malicious points.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use serde_json::Value;
use theta_groups::bn254::{Bn254, Bn254Scalar, G1, G2};
use theta_groups::{DecodeError, Group, Pairing, Scalar};

fn product_is_one(pairs: &[(<G1 as Group>::Element, <G2 as Group>::Element)]) -> bool {
    Bn254::vartime_product_is_one(pairs)
}

fn vectors(file: &str) -> Vec<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    let file: Value = serde_json::from_str(file).unwrap();
    let dst = file["dst"].as_str().unwrap().as_bytes();
    let vectors = file["vectors"].as_array().unwrap();
    assert_eq!(vectors.len(), 5);
    let point = |vector: &Value| {
        // The EVM writes the highest coefficient first.
        ["x", "y"]
            .into_iter()
            .flat_map(|name| match &vector[name] {
                Value::Array(coefficients) => coefficients.iter().rev().cloned().collect(),
                single => vec![single.clone()],
            })
            .flat_map(|coefficient| hex::decode(coefficient.as_str().unwrap()).unwrap())
            .collect()
    };
    vectors
        .iter()
        .map(|vector| (dst.to_vec(), vector["msg"].as_str().unwrap().as_bytes().to_vec(), point(vector)))
        .collect()
}

#[test]
fn hash_to_g1_matches_gnark_crypto() {
    for (dst, message, point) in vectors(include_str!("../../../../vectors/bn254/BN254G1_XMD_SHA-256_SVDW_RO.json")) {
        assert_eq!(G1::encode_uncompressed_evm(&G1::hash_to_group(&dst, &[&message])).to_vec(), point);
    }
}

#[test]
fn hash_to_g2_matches_gnark_crypto() {
    for (dst, message, point) in vectors(include_str!("../../../../vectors/bn254/BN254G2_XMD_SHA-256_SVDW_RO.json")) {
        assert_eq!(G2::encode_uncompressed_evm(&G2::hash_to_group(&dst, &[&message])).to_vec(), point);
    }
}

/// P1 and P2 of EIP-197.
#[test]
fn generators_are_those_of_the_evm() {
    let mut p1 = [0; 64];
    (p1[31], p1[63]) = (1, 2);
    assert_eq!(G1::encode_uncompressed_evm(&G1::generator()), p1);
    assert_eq!(
        hex::encode(G2::encode_uncompressed_evm(&G2::generator())),
        "198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2\
         1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed\
         090689d0585ff075ec9e99ad690c3395bc4b313370b38ef355acdadcd122975b\
         12c85ea5db8c6deb4aab71808dcb408fe3d1e7690c43d37b4ce6cc0166fa7daa"
    );
    assert_eq!(G1::encode_uncompressed_evm(&G1::identity()), [0; 64]);
    assert_eq!(G2::encode_uncompressed_evm(&G2::identity()), [0; 128]);
}

/// The smaller y of the generator is 2; x is 1.
#[test]
fn compression_is_that_of_gnark_crypto() {
    let mut one = [0; 32];
    one[31] = 1;
    one[0] = 0x80;
    assert_eq!(G1::encode(&G1::generator()), one);
    one[0] = 0xc0;
    assert_eq!(G1::encode(&-G1::generator()), one);
    let mut identity = [0; 64];
    identity[0] = 0x40;
    assert_eq!(G2::encode(&G2::identity()), identity);
    assert_eq!(G1::encode(&G1::identity()), identity[..32]);
    // y of the generator of G2 has the imaginary part 0x0906..., below half of the modulus.
    let g2 = G2::encode(&G2::generator());
    assert_eq!(hex::encode(&g2[..4]), "998e9393");
    assert_eq!(hex::encode(&G2::encode(&-G2::generator())[..4]), "d98e9393");
}

#[test]
fn the_pairing_is_bilinear_and_not_degenerate() {
    let rng = &mut ChaCha20Rng::seed_from_u64(1);
    let (a, b) = (Bn254Scalar::random(rng), Bn254Scalar::random(rng));
    let (p, q) = (G1::mul_base(&Bn254Scalar::random(rng)), G2::mul_base(&Bn254Scalar::random(rng)));
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

#[test]
fn long_products_of_pairings() {
    let rng = &mut ChaCha20Rng::seed_from_u64(2);
    let scalars: Vec<(Bn254Scalar, Bn254Scalar)> =
        (0..17).map(|_| (Bn254Scalar::random(rng), Bn254Scalar::random(rng))).collect();
    let total = scalars.iter().map(|(a, b)| *a * *b).sum::<Bn254Scalar>();
    let mut pairs: Vec<_> = scalars.iter().map(|(a, b)| (G1::mul_base(a), G2::mul_base(b))).collect();
    assert!(!product_is_one(&pairs));
    pairs.push((-G1::mul_base(&total), G2::generator()));
    assert!(product_is_one(&pairs));
}

fn compressed(len: usize, x: u8, flags: u8) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[len - 1] = x;
    bytes[0] |= flags;
    bytes
}

/// Points on the twist but outside the subgroup: almost all of those with a small x. Curve points are all inside.
#[test]
fn points_outside_the_subgroup_are_refused() {
    let (mut outside, mut off_curve) = (0, 0);
    for x in 0..40 {
        let bytes = compressed(64, x, 0x80);
        match G2::decode(&bytes) {
            Err(DecodeError::Subgroup) => {
                outside += 1;
                assert_eq!(G2::decode_allowing_identity(&bytes), Err(DecodeError::Subgroup));
                let element = G2::decode_unchecked_subgroup(&bytes).unwrap();
                assert!(!G2::is_in_subgroup(&element));
                assert!(!G2::is_in_subgroup(&(element + G2::generator())));
                assert!(!G2::is_in_subgroup(&G2::vartime_msm_short(&[1, 1], &[element, G2::generator()])));
                assert_eq!(G2::encode(&element).as_slice(), bytes);
            }
            Err(DecodeError::NotCanonical) => {
                off_curve += 1;
                assert_eq!(G2::decode_unchecked_subgroup(&bytes), Err(DecodeError::NotCanonical));
            }
            other => panic!("x = {x}: {other:?}"),
        }
        match G1::decode(&compressed(32, x, 0xc0)) {
            Ok(element) => assert_eq!(G1::encode(&element).to_vec(), compressed(32, x, 0xc0)),
            Err(error) => assert_eq!(error, DecodeError::NotCanonical),
        }
    }
    assert!(outside > 10 && off_curve > 10);
}

fn flags_are_strict<G: Group>() {
    let refused = |bytes: Vec<u8>| assert_eq!(G::decode_allowing_identity(&bytes), Err(DecodeError::NotCanonical));
    let generator = G::encode(&G::generator());
    for flags in [0x00, 0x40] {
        let mut bytes = generator.as_ref().to_vec();
        bytes[0] = bytes[0] & 0x3f | flags;
        refused(bytes);
    }
    refused(compressed(G::ENCODED_LEN, 1, 0x40)); // infinity with something in it
    refused(compressed(G::ENCODED_LEN, 0, 0x00)); // all zeros: the EVM's infinity
    // x = p, which is 0 modulo p, x = p + 1, and the largest 254-bit x.
    for x in [
        "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47",
        "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd48",
        "3fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    ] {
        for flags in [0x40, 0x80, 0xc0] {
            let mut bytes = hex::decode(x).unwrap();
            bytes.resize(G::ENCODED_LEN, 0);
            bytes[0] |= flags;
            refused(bytes);
        }
    }
}

#[test]
fn g1_flags_are_strict() {
    flags_are_strict::<G1>();
}

#[test]
fn g2_flags_are_strict() {
    flags_are_strict::<G2>();
}

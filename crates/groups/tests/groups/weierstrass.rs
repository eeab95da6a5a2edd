//! P-256 and secp256k1 against RFC 9380, SEC2, other implementations, and malicious encodings.

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use serde_json::Value;
use theta_groups::{DecodeError, Group, P256, P256Scalar, Scalar, Secp256k1, Secp256k1Scalar};

/// SEC1, section 2.3.3, compressed, from big-endian coordinates.
fn compressed(x: &[u8], y: &[u8]) -> Vec<u8> {
    [&[2 | y.last().unwrap() & 1], x].concat()
}

/// RFC 9380, appendices J.1.1 and J.8.1.
fn check_hash_vectors<G: Group>(file: &str) {
    let file: Value = serde_json::from_str(file).unwrap();
    let dst = file["dst"].as_str().unwrap().as_bytes();
    let vectors = file["vectors"].as_array().unwrap();
    assert_eq!(vectors.len(), 5);
    for vector in vectors {
        let message = vector["msg"].as_str().unwrap().as_bytes();
        let coordinate = |name: &str| hex::decode(vector[name][0].as_str().unwrap()).unwrap();
        let h = G::hash_to_group(dst, &[message]);
        assert_eq!(G::encode(&h).as_ref(), compressed(&coordinate("x"), &coordinate("y")));
    }
}

#[test]
fn hash_to_p256_matches_rfc_9380() {
    check_hash_vectors::<P256>(include_str!("../../../../vectors/rfc9380/P256_XMD_SHA-256_SSWU_RO.json"));
}

#[test]
fn hash_to_secp256k1_matches_rfc_9380() {
    check_hash_vectors::<Secp256k1>(include_str!("../../../../vectors/rfc9380/secp256k1_XMD_SHA-256_SSWU_RO.json"));
}

/// The generators of SEC2, sections 2.4.2 and 2.4.1, and their doubles.
#[test]
fn generators_are_the_standard_ones() {
    let multiple = |i| hex::encode(P256::encode(&P256::mul_base(&P256Scalar::from_u64(i))));
    assert_eq!(multiple(1), "036b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296");
    assert_eq!(multiple(2), "037cf27b188d034f7e8a52380304b51ac3c08969e277f21b35a60b48fc47669978");
    let multiple = |i| hex::encode(Secp256k1::encode(&Secp256k1::mul_base(&Secp256k1Scalar::from_u64(i))));
    assert_eq!(multiple(1), "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798");
    assert_eq!(multiple(2), "02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5");
}

/// The orders of SEC2: no scalar reaches them, and hashes are reduced modulo them.
#[test]
fn the_orders_are_the_standard_ones() {
    fn check<S: Scalar>(order: &str) {
        let mut order = hex::decode(order).unwrap();
        assert_eq!(S::decode(&order), Err(DecodeError::NotCanonical));
        assert_eq!(S::from_uniform_bytes(&order), S::ZERO);
        order[31] -= 1;
        assert_eq!(S::decode(&order), Ok(-S::ONE));
    }
    check::<P256Scalar>("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");
    check::<Secp256k1Scalar>("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
}

/// Scalars at the edges, and others.
fn scalars<S: Scalar>() -> Vec<S> {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let edges = [S::ONE, S::from_u64(2), -S::ONE, -S::from_u64(2), S::from_u128(u128::MAX), S::from_u64(1 << 63)];
    edges.into_iter().chain((0..20).map(|_| S::random(&mut rng))).collect()
}

#[test]
fn p256_multiplies_as_aws_lc_does() {
    for (a, b) in scalars::<P256Scalar>().into_iter().zip(scalars::<P256Scalar>().into_iter().rev()) {
        let key = PrivateKey::from_private_key(&ECDH_P256, a.encode().as_ref()).unwrap();
        let public = key.compute_public_key().unwrap();
        let (x, y) = public.as_ref()[1..].split_at(32);
        let ours = P256::mul_base(&a);
        assert_eq!(P256::encode(&ours).as_ref(), compressed(x, y));
        assert_eq!(P256::decode(&compressed(x, y)), Ok(ours));
        // The library takes compressed points as well; what two parties agree on is the product's x.
        let point = P256::mul_base(&b);
        let peer = UnparsedPublicKey::new(&ECDH_P256, P256::encode(&point));
        agree(&key, peer, (), |x| {
            assert_eq!(P256::encode(&(point * a))[1..], *x);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn secp256k1_multiplies_and_adds_as_libsecp256k1_does() {
    let all = scalars::<Secp256k1Scalar>();
    for (a, b) in all.iter().zip(all.iter().rev()) {
        let theirs =
            secp256k1::PublicKey::from_secret_key(&secp256k1::SecretKey::from_secret_bytes(a.encode()).unwrap());
        let ours = Secp256k1::mul_base(a);
        assert_eq!(Secp256k1::encode(&ours), theirs.serialize());
        assert_eq!(Secp256k1::decode(&theirs.serialize()), Ok(ours));
        let product = theirs.mul_tweak(&secp256k1::Scalar::from_be_bytes(b.encode()).unwrap()).unwrap();
        assert_eq!(Secp256k1::encode(&(ours * *b)), product.serialize());
        if let Ok(sum) = theirs.combine(&product) {
            assert_eq!(Secp256k1::encode(&(ours + ours * *b)), sum.serialize());
        } else {
            assert!(Secp256k1::is_identity(&(ours + ours * *b)));
        }
    }
}

fn refuses_as_not_canonical<G: Group>(bytes: &[u8]) {
    for decode in [G::decode, G::decode_allowing_identity, G::decode_unchecked_subgroup] {
        assert_eq!(decode(bytes), Err(DecodeError::NotCanonical), "{}", hex::encode(bytes));
    }
}

/// `prime`: the size of the coordinates' field. `y`: the generator's.
fn every_point_has_one_encoding<G: Group>(prime: &str, y: &str) {
    // The identity is 33 zeros, not the single zero of SEC1, and nothing else that begins with zero.
    let identity = G::encode(&G::identity());
    assert_eq!(identity.as_ref(), [0; 33]);
    assert_eq!(G::decode_allowing_identity(&[0; 33]), Ok(G::identity()));
    assert_eq!(G::decode(&[0; 33]), Err(DecodeError::Identity));
    assert_eq!(G::decode_allowing_identity(&[0]), Err(DecodeError::Length { expected: 33, got: 1 }));
    let generator = G::encode(&G::generator()).as_ref().to_vec();
    for i in 1..33 {
        let mut bytes = [0; 33];
        bytes[i] = 1;
        refuses_as_not_canonical::<G>(&bytes);
    }
    // Uncompressed and hybrid forms, whole and cut to a compressed one's length.
    let y = hex::decode(y).unwrap();
    for tag in (0..=0xff).filter(|tag| *tag != 2 && *tag != 3) {
        let long = [&[tag], &generator[1..], &y].concat();
        assert_eq!(G::decode(&long), Err(DecodeError::Length { expected: 33, got: 65 }));
        refuses_as_not_canonical::<G>(&long[..33]);
    }
    // The other sign is the inverse.
    let mut negated = generator;
    negated[0] ^= 1;
    assert_eq!(G::decode(&negated), Ok(-G::generator()));
    // x from p on, up to 2^256 - 1; among them are x of points once reduced.
    let prime = hex::decode(prime).unwrap();
    for tag in [2, 3] {
        refuses_as_not_canonical::<G>(&[&[tag], &[0xff; 32][..]].concat());
        for low in 0..=0xff - prime[31] {
            let mut bytes = [&[tag], prime.as_slice()].concat();
            bytes[32] += low;
            refuses_as_not_canonical::<G>(&bytes);
        }
    }
    // About half of all x belong to no point; none of those may pass, and all others come back as they were.
    let mut refused = 0;
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    for _ in 0..200 {
        let mut bytes = [2; 33];
        rng.fill_bytes(&mut bytes[1..]);
        match G::decode(&bytes) {
            Ok(element) => assert_eq!(G::encode(&element).as_ref(), bytes),
            Err(error) => {
                assert_eq!(error, DecodeError::NotCanonical);
                refused += 1;
            }
        }
    }
    assert!((50..150).contains(&refused), "{refused}");
}

#[test]
fn p256_has_one_encoding_for_each_point() {
    every_point_has_one_encoding::<P256>(
        "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff",
        "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
    );
    // x = 0 belongs to two points, x = p to none.
    for tag in [2, 3] {
        let bytes = [&[tag], &[0; 32][..]].concat();
        assert_eq!(P256::encode(&P256::decode(&bytes).unwrap()).as_ref(), bytes);
    }
}

#[test]
fn secp256k1_has_one_encoding_for_each_point() {
    every_point_has_one_encoding::<Secp256k1>(
        "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f",
        "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8",
    );
    // 0^3 + 7 and 5^3 + 7 are no squares.
    for tag in [2, 3] {
        for x in [0, 5] {
            let mut bytes = [0; 33];
            (bytes[0], bytes[32]) = (tag, x);
            refuses_as_not_canonical::<Secp256k1>(&bytes);
        }
    }
}

/// Points and scalars with everything that incomplete formulas get wrong: repeated and opposite points, the identity,
/// and scalars at the edges. The naive sum is extended by one product at a time, so that every number of them is tried.
fn msm_is_the_naive_sum<G: Group>(seed: u64) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut points: Vec<G::Element> = Vec::new();
    let edges = [G::Scalar::ZERO, G::Scalar::ONE, -G::Scalar::ONE, G::Scalar::from_u128(u128::MAX)];
    let mut scalars: Vec<G::Scalar> = Vec::new();
    let mut short: Vec<u128> = Vec::new();
    let (mut sum, mut short_sum) = (G::identity(), G::identity());
    for n in 0..=667_usize {
        if n <= 100 || n == 667 {
            assert_eq!(G::vartime_msm(&scalars, &points), sum, "n = {n}");
            assert_eq!(G::vartime_msm_short(&short, &points), short_sum, "short, n = {n}");
        }
        let point = match (n % 11, points.get(n / 2)) {
            (3, Some(point)) => *point,
            (5, Some(point)) => -*point,
            (7, _) => G::identity(),
            _ => G::mul_base(&G::Scalar::random(&mut rng)),
        };
        let scalar = match (n % 13, scalars.get(n / 2)) {
            // With a repeated or opposite point now and then: the same product once more, or its inverse.
            (3 | 5, Some(scalar)) => *scalar,
            (i @ 8..=11, _) => edges[i - 8],
            _ => G::Scalar::random(&mut rng),
        };
        let short_scalar = match n % 7 {
            2 => 0,
            3 => 1,
            4 => u128::MAX,
            5 => u128::from(rng.next_u64()),
            _ => u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()),
        };
        sum = sum + point * scalar;
        short_sum = short_sum + point * G::Scalar::from_u128(short_scalar);
        points.push(point);
        scalars.push(scalar);
        short.push(short_scalar);
    }
    // Nothing but one point, its inverse, and scalars at the edges.
    for n in [2, 5, 40, 200] {
        let point = G::mul_base(&G::Scalar::random(&mut rng));
        let points: Vec<_> = (0..n).map(|i| if i % 3 == 1 { -point } else { point }).collect();
        let scalars: Vec<_> = (0..n).map(|i| edges[i / 3 % 4]).collect();
        let naive = points.iter().zip(&scalars).map(|(p, s)| *p * *s).sum::<G::Element>();
        assert_eq!(G::vartime_msm(&scalars, &points), naive);
        let same = vec![G::Scalar::random(&mut rng); n];
        let naive = points.iter().zip(&same).map(|(p, s)| *p * *s).sum::<G::Element>();
        assert_eq!(G::vartime_msm(&same, &points), naive);
    }
}

#[test]
fn p256_msm_is_the_naive_sum() {
    msm_is_the_naive_sum::<P256>(3);
}

#[test]
fn secp256k1_msm_is_the_naive_sum() {
    msm_is_the_naive_sum::<Secp256k1>(4);
}

/// The sum of two products as verifiers compute it is the sum of two products.
fn double_multiplication_is_the_sum<G: Group>() {
    let edges = [G::Scalar::ZERO, G::Scalar::ONE, -G::Scalar::ONE, G::Scalar::from_u128(u128::MAX)];
    let all = || edges.into_iter().chain([G::Scalar::from_uniform_bytes(&[0x5a; 64])]);
    for point in [G::hash_to_group(b"a tag", &[b"a point"]), G::generator(), -G::generator(), G::identity()] {
        for a in all() {
            for b in all() {
                assert_eq!(G::vartime_double_mul(&a, &point, &b), G::mul_base(&a) + point * b);
            }
        }
    }
}

#[test]
fn double_multiplication() {
    double_multiplication_is_the_sum::<P256>();
    double_multiplication_is_the_sum::<Secp256k1>();
}

/// The generators of SEC2, sections 2.4.1 and 2.4.2.
#[test]
fn points_are_written_without_compression_for_those_who_cannot_undo_it() {
    let p256 = "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5";
    assert_eq!(hex::encode(P256::encode_uncompressed(&P256::generator()).unwrap()), p256);
    let secp256k1 = "0479be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8";
    assert_eq!(hex::encode(Secp256k1::encode_uncompressed(&Secp256k1::generator()).unwrap()), secp256k1);
    assert_eq!(P256::encode_uncompressed(&P256::identity()), None);
    assert_eq!(Secp256k1::encode_uncompressed(&Secp256k1::identity()), None);
}

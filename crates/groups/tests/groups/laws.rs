//! Laws that every group must obey, tested for each.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use theta_groups::bls12_381::{G1, G2};
use theta_groups::{DecodeError, Ed448, Ed25519, Group, P256, Ristretto255, Scalar, Secp256k1};

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn random_element<G: Group>(rng: &mut ChaCha20Rng) -> G::Element {
    G::mul_base(&G::Scalar::random(rng))
}

fn random_elements<G: Group>(n: usize, rng: &mut ChaCha20Rng) -> Vec<G::Element> {
    (0..n).map(|_| random_element::<G>(rng)).collect()
}

fn scalars_are_a_field<S: Scalar>() {
    let mut rng = rng(1);
    for _ in 0..20 {
        let (a, b, c) = (S::random(&mut rng), S::random(&mut rng), S::random(&mut rng));
        assert_eq!((a + b) + c, a + (b + c));
        assert_eq!((a * b) * c, a * (b * c));
        assert_eq!((a + b, a * b), (b + a, b * a));
        assert_eq!(a * (b + c), a * b + a * c);
        assert_eq!(a - b, a + -b);
        assert_eq!(a * a.invert(), S::ONE);
        assert_eq!([a, b, c].into_iter().sum::<S>(), a + b + c);
        let mut sum = a;
        sum += b;
        assert_eq!(sum, a + b);
    }
    assert_eq!(S::ZERO.invert(), S::ZERO);
    assert_eq!(-S::ZERO, S::ZERO);
    assert_ne!(S::ZERO, S::ONE);
    assert_ne!(S::random(&mut rng), S::random(&mut rng));
}

fn small_integers_embed<S: Scalar>() {
    assert_eq!(S::from_u64(0), S::ZERO);
    assert_eq!(S::from_u64(1), S::ONE);
    assert_eq!(S::from_u64(6) * S::from_u64(7), S::from_u64(42));
    assert_eq!(S::from_u64(u64::MAX) + S::ONE, S::from_u128(1 << 64));
    assert_eq!(S::from_u64(1 << 63) * S::from_u64(1 << 63), S::from_u128(1 << 126));
    assert_eq!(S::from_u128(u128::MAX) + S::ONE, S::from_u128(1 << 127) + S::from_u128(1 << 127));
}

fn scalar_encodings_are_canonical<S: Scalar>() {
    let mut rng = rng(2);
    for scalar in [S::ZERO, S::ONE, -S::ONE, S::random(&mut rng)] {
        let bytes = scalar.encode();
        assert_eq!(bytes.as_ref().len(), S::ENCODED_LEN);
        assert_eq!(S::decode(bytes.as_ref()), Ok(scalar));
    }
    // The order itself is -1 plus one, in whichever end the encoding starts.
    let largest = (-S::ONE).encode();
    let mut order = largest.as_ref().to_vec();
    if S::ONE.encode().as_ref()[0] == 1 {
        order[0] += 1;
    } else {
        order[S::ENCODED_LEN - 1] += 1;
    }
    assert_eq!(S::decode(&order), Err(DecodeError::NotCanonical));
    assert_eq!(S::decode(&vec![0xff; S::ENCODED_LEN]), Err(DecodeError::NotCanonical));
    for len in [0, S::ENCODED_LEN - 1, S::ENCODED_LEN + 1] {
        assert_eq!(S::decode(&vec![0; len]), Err(DecodeError::Length { expected: S::ENCODED_LEN, got: len }));
    }
}

fn wide_reduction_is_exact<S: Scalar>(big_endian: bool) {
    // Computed byte by byte in the field.
    for (len, fill) in
        [0, 1, 31, 32, 48, 64, 65, 84, 114, 128].into_iter().flat_map(|len| (0..4).map(move |fill| (len, fill)))
    {
        let mut bytes = vec![0; len];
        match fill {
            0 => {}
            1 => bytes.fill(0xff),
            _ => rng(fill).fill_bytes(&mut bytes),
        }
        let mut digits = bytes.clone();
        if !big_endian {
            digits.reverse();
        }
        let expected =
            digits.iter().fold(S::ZERO, |sum, digit| sum * S::from_u64(256) + S::from_u64(u64::from(*digit)));
        assert_eq!(S::from_uniform_bytes(&bytes), expected);
    }
}

fn batch_inversion_is_inversion<S: Scalar>() {
    let mut rng = rng(3);
    for n in [0, 1, 2, 17] {
        let values: Vec<S> = (0..n).map(|i| if i % 3 == 1 { S::ZERO } else { S::random(&mut rng) }).collect();
        let mut inverted = values.clone();
        S::vartime_batch_invert(&mut inverted);
        assert_eq!(inverted, values.iter().map(S::invert).collect::<Vec<_>>());
    }
    let mut zeros = [S::ZERO; 3];
    S::vartime_batch_invert(&mut zeros);
    assert_eq!(zeros, [S::ZERO; 3]);
}

fn elements_are_a_group<G: Group>() {
    let mut rng = rng(4);
    let zero = G::identity();
    assert!(G::is_identity(&zero) && !G::is_identity(&G::generator()));
    for _ in 0..5 {
        let (p, q, r) = (random_element::<G>(&mut rng), random_element::<G>(&mut rng), random_element::<G>(&mut rng));
        assert_eq!((p + q) + r, p + (q + r));
        assert_eq!(p + q, q + p);
        assert_eq!((p + zero, zero + p), (p, p));
        assert_eq!(p - p, zero);
        assert_eq!(p - q, p + -q);
        assert_eq!(p + p, p * G::Scalar::from_u64(2));
        assert_eq!([p, q, r].into_iter().sum::<G::Element>(), p + q + r);
        assert_ne!(p, q);
        assert!(G::is_in_subgroup(&p));

        let (a, b) = (G::Scalar::random(&mut rng), G::Scalar::random(&mut rng));
        assert_eq!(p * (a + b), p * a + p * b);
        assert_eq!(p * a * b, p * (a * b));
        assert_eq!((p + q) * a, p * a + q * a);
        assert_eq!(G::mul_base(&a), G::generator() * a);
        assert_eq!(p * G::Scalar::ONE, p);
        assert_eq!(p * -G::Scalar::ONE, -p);
        assert_eq!(p * G::Scalar::ZERO, zero);
        assert_eq!(zero * a, zero);
    }
    assert_eq!(-zero, zero);
    assert_eq!(G::mul_base(&G::Scalar::ZERO), zero);
    // The order of the group is the order of the field: (q - 1) g + g = 0.
    assert_eq!(G::mul_base(&-G::Scalar::ONE) + G::generator(), zero);
}

fn msm_is_the_naive_sum<G: Group>() {
    let mut rng = rng(5);
    for n in [0, 1, 2, 3, 7, 31, 32, 33, 64, 200] {
        let mut points = random_elements::<G>(n, &mut rng);
        let mut scalars: Vec<G::Scalar> = (0..n).map(|_| G::Scalar::random(&mut rng)).collect();
        let mut short: Vec<u128> =
            (0..n).map(|_| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())).collect();
        if n >= 7 {
            // The cases that incomplete addition formulas get wrong.
            points[1] = G::identity();
            points[2] = points[0];
            points[3] = -points[0];
            points[4] = points[0];
            scalars[5] = G::Scalar::ZERO;
            scalars[6] = -G::Scalar::ONE;
            (scalars[2], scalars[3]) = (scalars[0], scalars[0]);
            (short[2], short[3]) = (short[0], short[0]);
            (short[4], short[5], short[6]) = (0, 1, u128::MAX);
        }
        let naive = points.iter().zip(&scalars).map(|(p, s)| *p * *s).sum::<G::Element>();
        assert_eq!(G::vartime_msm(&scalars, &points), naive, "full scalars, n = {n}");
        let naive = points.iter().zip(&short).map(|(p, s)| *p * G::Scalar::from_u128(*s)).sum::<G::Element>();
        assert_eq!(G::vartime_msm_short(&short, &points), naive, "short scalars, n = {n}");
    }
}

fn msm_of_small_scalars<G: Group>() {
    let mut rng = rng(6);
    for bits in [1, 2, 7, 8, 9, 15, 16, 17, 31, 40, 63, 64, 65, 100, 127] {
        for n in [1, 2, 5, 40] {
            let points = random_elements::<G>(n, &mut rng);
            let mut scalars: Vec<u128> = (0..n)
                .map(|_| (u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())) >> (128 - bits))
                .collect();
            scalars[0] = (1 << bits) - 1;
            let naive = points.iter().zip(&scalars).map(|(p, s)| *p * G::Scalar::from_u128(*s)).sum::<G::Element>();
            assert_eq!(G::vartime_msm_short(&scalars, &points), naive, "{bits} bits, n = {n}");
        }
    }
    assert_eq!(G::vartime_msm_short(&[0, 0], &random_elements::<G>(2, &mut rng)), G::identity());
}

fn msm_ignores_what_has_no_partner<G: Group>() {
    let mut rng = rng(7);
    let points = random_elements::<G>(5, &mut rng);
    let scalars: Vec<G::Scalar> = (0..5).map(|_| G::Scalar::random(&mut rng)).collect();
    let expected = points[0] * scalars[0] + points[1] * scalars[1];
    assert_eq!(G::vartime_msm(&scalars, &points[..2]), expected);
    assert_eq!(G::vartime_msm(&scalars[..2], &points), expected);
    assert_eq!(G::vartime_msm(&[], &points), G::identity());
    assert_eq!(G::vartime_msm_short(&[3, 4, 5], &points[..1]), points[0] * G::Scalar::from_u64(3));
    assert_eq!(G::vartime_msm_short(&[3], &points), points[0] * G::Scalar::from_u64(3));
}

fn encodings_round_trip<G: Group>() {
    let mut rng = rng(8);
    let mut elements = random_elements::<G>(40, &mut rng);
    elements[7] = G::identity();
    elements[39] = G::identity();
    let batch = G::encode_batch(&elements);
    assert_eq!(batch, elements.iter().map(G::encode).collect::<Vec<_>>());
    for (element, bytes) in elements.iter().zip(&batch) {
        assert_eq!(bytes.as_ref().len(), G::ENCODED_LEN);
        assert_eq!(G::decode_allowing_identity(bytes.as_ref()), Ok(*element));
        assert_eq!(G::Encoding::try_from(bytes.as_ref()).ok(), Some(*bytes));
    }
    assert!(G::encode_batch(&[]).is_empty());
    assert_eq!(G::encode_batch(&[G::identity()]), [G::encode(&G::identity())]);
}

fn bad_encodings_are_refused<G: Group>() {
    let identity = G::encode(&G::identity());
    assert_eq!(G::decode(identity.as_ref()), Err(DecodeError::Identity));
    assert_eq!(G::decode_unchecked_subgroup(identity.as_ref()), Err(DecodeError::Identity));
    assert_eq!(G::decode_allowing_identity(identity.as_ref()), Ok(G::identity()));
    let generator = G::encode(&G::generator());
    for decode in [G::decode, G::decode_allowing_identity, G::decode_unchecked_subgroup] {
        assert_eq!(decode(generator.as_ref()), Ok(G::generator()));
        assert_eq!(decode(&vec![0xff; G::ENCODED_LEN]), Err(DecodeError::NotCanonical));
        for len in [0, 1, G::ENCODED_LEN - 1, G::ENCODED_LEN + 1, 2 * G::ENCODED_LEN] {
            let expected = Err(DecodeError::Length { expected: G::ENCODED_LEN, got: len });
            assert_eq!(decode(&vec![0; len]), expected);
        }
    }
    // Random bytes must never panic, and what they decode to must encode to them.
    let mut rng = rng(9);
    for _ in 0..200 {
        let mut bytes = vec![0; G::ENCODED_LEN];
        rng.fill_bytes(&mut bytes);
        if let Ok(element) = G::decode_unchecked_subgroup(&bytes) {
            assert_eq!(G::encode(&element).as_ref(), bytes);
        }
    }
}

fn hashing_separates<G: Group>() {
    let h = G::hash_to_group(b"dst", &[b"message"]);
    assert_eq!(h, G::hash_to_group(b"dst", &[b"mess", b"age"]));
    assert_eq!(h, G::hash_to_group(b"dst", &[b"m", b"", b"ess", b"age"]));
    assert_ne!(h, G::hash_to_group(b"dst2", &[b"message"]));
    assert_ne!(h, G::hash_to_group(b"dst", &[b"message2"]));
    assert_ne!(G::hash_to_group(&[b'x'; 255], &[b"m"]), G::hash_to_group(&[b'x'; 256], &[b"m"]));
    assert_eq!(G::hash_to_group(b"dst", &[]), G::hash_to_group(b"dst", &[b""]));
    for message in 0..10_u8 {
        let h = G::hash_to_group(b"dst", &[&[message]]);
        assert!(G::is_in_subgroup(&h) && !G::is_identity(&h));
        assert_eq!(G::decode(G::encode(&h).as_ref()), Ok(h));
    }
}

/// A hash that is g times a computable scalar lets anyone with the public key forge signatures and predict coins. The obvious
/// ways to make that mistake are ruled out one by one.
fn hash_is_no_known_multiple_of_the_generator<G: Group>() {
    use sha2::{Digest, Sha256, Sha512};
    use theta_groups::Transcript;
    for message in [b"".as_slice(), b"abc", b"a coin's name"] {
        let dst = b"theta/test";
        let h = G::hash_to_group(dst, &[message]);
        let joined = [dst.as_slice(), message].concat();
        let mut guesses = vec![G::Scalar::ONE];
        for input in [message, &joined] {
            let wide: [u8; 64] = Sha512::digest(input).into();
            let mut low = [0; 64];
            low[..32].copy_from_slice(&Sha256::digest(input));
            let mut high = [0; 64];
            high[32..].copy_from_slice(&Sha256::digest(input));
            let mut raw = [0; 64];
            raw[..input.len()].copy_from_slice(input);
            for bytes in [wide, low, high, raw] {
                let mut reversed = bytes;
                reversed.reverse();
                guesses.push(G::Scalar::from_uniform_bytes(&bytes));
                guesses.push(G::Scalar::from_uniform_bytes(&reversed));
            }
        }
        guesses.push(Transcript::new("theta/test").with("message", message).challenge());
        for guess in guesses {
            assert_ne!(h, G::mul_base(&guess));
            assert_ne!(h, -G::mul_base(&guess));
        }
    }
    // Two hashes are in no small ratio, as a * g and b * g with small a and b would be.
    let (h1, h2) = (G::hash_to_group(b"d", &[b"1"]), G::hash_to_group(b"d", &[b"2"]));
    let (mut left, mut right) = (h1, h2);
    for _ in 0..50 {
        assert!(left != h2 && right != h1 && left != -h2 && right != -h1);
        left = left + h1;
        right = right + h2;
    }
}

fn elements_and_scalars_can_be_wiped<G: Group>() {
    use zeroize::Zeroize;
    let mut scalar = G::Scalar::from_u64(7);
    scalar.zeroize();
    assert_eq!(scalar, G::Scalar::ZERO);
    let mut element = G::generator();
    element.zeroize();
    assert_ne!(element, G::generator());
}

macro_rules! instantiate {
    ($name:ident, $group:ty, big_endian: $big_endian:literal) => {
        mod $name {
            use super::*;
            instantiate!(@scalar $group: scalars_are_a_field small_integers_embed scalar_encodings_are_canonical
                batch_inversion_is_inversion);
            instantiate!(@group $group: elements_are_a_group msm_is_the_naive_sum msm_of_small_scalars
                msm_ignores_what_has_no_partner encodings_round_trip bad_encodings_are_refused hashing_separates
                hash_is_no_known_multiple_of_the_generator elements_and_scalars_can_be_wiped);

            #[test]
            fn wide_reduction_is_exact() {
                super::wide_reduction_is_exact::<<$group as Group>::Scalar>($big_endian);
            }
        }
    };
    (@scalar $group:ty: $($law:ident)*) => { $(#[test] fn $law() { super::$law::<<$group as Group>::Scalar>(); })* };
    (@group $group:ty: $($law:ident)*) => { $(#[test] fn $law() { super::$law::<$group>(); })* };
}

instantiate!(ristretto255, Ristretto255, big_endian: false);
instantiate!(ed25519, Ed25519, big_endian: false);
instantiate!(ed448, Ed448, big_endian: false);
instantiate!(bls12_381_g1, G1, big_endian: true);
instantiate!(bls12_381_g2, G2, big_endian: true);
instantiate!(bn254_g1, theta_groups::bn254::G1, big_endian: true);
instantiate!(bn254_g2, theta_groups::bn254::G2, big_endian: true);
instantiate!(p256, P256, big_endian: true);
instantiate!(secp256k1, Secp256k1, big_endian: true);

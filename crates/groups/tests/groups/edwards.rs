//! The groups of Ed25519 and Ed448 against the RFCs, and against malicious points.

use serde_json::Value;
use sha2::{Digest, Sha512};
use shake::{ExtendableOutput, Shake256, Update};
use theta_groups::{DecodeError, Ed448, Ed448Scalar, Ed25519, Ed25519Scalar, Group, Scalar};

/// A point from big-endian affine coordinates, encoded as RFC 8032 has it.
fn encoding(len: usize, x: &[u8], y: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = y.iter().rev().copied().collect();
    bytes.resize(len, 0);
    bytes[len - 1] |= x.last().unwrap() << 7;
    bytes
}

/// RFC 9380, appendices J.5.1 and J.6.1.
fn check_hash_vectors<G: Group>(file: &str) {
    let file: Value = serde_json::from_str(file).unwrap();
    let dst = file["dst"].as_str().unwrap().as_bytes();
    let vectors = file["vectors"].as_array().unwrap();
    assert_eq!(vectors.len(), 5);
    for vector in vectors {
        let message = vector["msg"].as_str().unwrap().as_bytes();
        let coordinate = |name: &str| hex::decode(vector[name][0].as_str().unwrap()).unwrap();
        let h = G::hash_to_group(dst, &[message]);
        assert_eq!(G::encode(&h).as_ref(), encoding(G::ENCODED_LEN, &coordinate("x"), &coordinate("y")));
    }
}

#[test]
fn hash_to_ed25519_matches_rfc_9380() {
    check_hash_vectors::<Ed25519>(include_str!("../../../../vectors/rfc9380/edwards25519_XMD_SHA-512_ELL2_RO.json"));
}

#[test]
fn hash_to_ed448_matches_rfc_9380() {
    check_hash_vectors::<Ed448>(include_str!("../../../../vectors/rfc9380/edwards448_XOF_SHAKE256_ELL2_RO.json"));
}

/// RFC 9380 wants tags that are not empty; an empty one must do no harm.
#[test]
fn an_empty_tag_does_no_harm() {
    assert_ne!(Ed25519::hash_to_group(b"", &[b"m"]), Ed25519::hash_to_group(b"", &[b"n"]));
    assert_ne!(Ed448::hash_to_group(b"", &[b"m"]), Ed448::hash_to_group(b"", &[b"n"]));
}

fn shake256(parts: &[&[u8]]) -> [u8; 114] {
    let mut out = [0; 114];
    parts.iter().fold(Shake256::default(), |hash, part| hash.chain(part)).finalize_xof_into(&mut out);
    out
}

/// RFC 8032, sections 5.1.5 and 5.2.5: secret scalar and public key; 5.1.7 and 5.2.7: the equation of verification.
fn check_signatures<G: Group>(file: &str, secret: impl Fn(&[u8]) -> G::Scalar, hash: impl Fn([&[u8]; 3]) -> G::Scalar) {
    let file: Value = serde_json::from_str(file).unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    assert!(vectors.len() >= 3);
    for vector in vectors {
        let field = |name: &str| hex::decode(vector[name].as_str().unwrap()).unwrap();
        let public = G::mul_base(&secret(&field("secret_key")));
        assert_eq!(G::encode(&public).as_ref(), field("public_key"));
        assert_eq!(G::decode(&field("public_key")), Ok(public));
        if vector.get("context").is_some_and(|context| context != "") {
            continue;
        }
        let (signature, message) = (field("signature"), field("message"));
        let (r, s) = signature.split_at(G::ENCODED_LEN);
        let challenge = hash([r, &field("public_key"), &message]);
        let s = G::Scalar::decode(s).unwrap();
        assert_eq!(G::decode(r), Ok(G::vartime_double_mul(&s, &public, &-challenge)));
        assert_ne!(G::decode(r), Ok(G::vartime_double_mul(&s, &public, &challenge)));
    }
}

#[test]
fn ed25519_keys_and_signatures_match_rfc_8032() {
    let secret = |seed: &[u8]| {
        let mut bytes = Sha512::digest(seed);
        bytes[0] &= 0xf8;
        bytes[31] = bytes[31] & 0x7f | 0x40;
        Ed25519Scalar::from_uniform_bytes(&bytes[..32])
    };
    let hash = |parts: [&[u8]; 3]| Ed25519Scalar::from_uniform_bytes(&Sha512::digest(parts.concat()));
    check_signatures::<Ed25519>(include_str!("../../../../vectors/rfc8032/ed25519.json"), secret, hash);
}

#[test]
fn ed448_keys_and_signatures_match_rfc_8032() {
    let secret = |seed: &[u8]| {
        let mut bytes = shake256(&[seed]);
        bytes[0] &= 0xfc;
        bytes[55] |= 0x80;
        bytes[56] = 0;
        Ed448Scalar::from_uniform_bytes(&bytes[..57])
    };
    let hash = |parts: [&[u8]; 3]| Ed448Scalar::from_uniform_bytes(&shake256(&[b"SigEd448\0\0", &parts.concat()]));
    check_signatures::<Ed448>(include_str!("../../../../vectors/rfc8032/ed448.json"), secret, hash);
}

#[test]
fn generators_are_the_standard_ones() {
    assert_eq!(hex::encode(Ed25519::encode(&Ed25519::generator())), format!("58{}", "66".repeat(31)));
    assert_eq!(
        hex::encode(Ed448::encode(&Ed448::generator())),
        "14fa30f25b790898adc8d74e2c13bdfdc4397ce61cffd33ad7c2a0051e9c78874098a36c7373ea4b62c7c9563720768824bcb66e71463f6900"
    );
}

/// Points that 8 (4 on Ed448's curve) multiplies to the neutral element, without that element itself.
const LOW_ORDER_25519: [&str; 7] = [
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
];
const LOW_ORDER_448: [&str; 3] = [
    "fefffffffffffffffffffffffffffffffffffffffffffffffffffffffeffffffffffffffffffffffffffffffffffffffffffffffffffffff00",
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000080",
];

/// Points outside the prime-order subgroup, alone and added to honest ones, are on the curve and refused.
fn points_outside_the_subgroup<G: Group>(low_order: &[&str], cofactor: u64) {
    let honest =
        [G::generator(), G::hash_to_group(b"a tag", &[b"an honest point"]), G::mul_base(&G::Scalar::from_u64(1 << 40))];
    for encoded in low_order {
        let encoded = hex::decode(encoded).unwrap();
        assert_eq!(G::decode(&encoded), Err(DecodeError::Subgroup));
        assert_eq!(G::decode_allowing_identity(&encoded), Err(DecodeError::Subgroup));
        let low = G::decode_unchecked_subgroup(&encoded).unwrap();
        assert_eq!(G::encode(&low).as_ref(), encoded);
        assert!(!G::is_identity(&low) && !G::is_in_subgroup(&low));
        assert!(G::is_identity(&(0..cofactor).map(|_| low).sum()));
        for honest in honest {
            let mixed = honest + low;
            assert!(!G::is_in_subgroup(&mixed));
            let encoded = G::encode(&mixed);
            assert_eq!(G::decode(encoded.as_ref()), Err(DecodeError::Subgroup));
            assert_eq!(G::decode_allowing_identity(encoded.as_ref()), Err(DecodeError::Subgroup));
            assert_eq!(G::decode_unchecked_subgroup(encoded.as_ref()), Ok(mixed));
            // A sum says so as well, unless the parts outside cancel out.
            assert!(!G::is_in_subgroup(&G::vartime_msm_short(&[1, 1], &[mixed, honest])));
            assert!(G::is_in_subgroup(&G::vartime_msm_short(&[1, 1], &[mixed, -low])));
        }
    }
}

#[test]
fn ed25519_refuses_points_outside_the_subgroup() {
    points_outside_the_subgroup::<Ed25519>(&LOW_ORDER_25519, 8);
}

#[test]
fn ed448_refuses_points_outside_the_subgroup() {
    points_outside_the_subgroup::<Ed448>(&LOW_ORDER_448, 4);
}

fn refuses_as_not_canonical<G: Group>(bytes: &[u8]) {
    for decode in [G::decode, G::decode_allowing_identity, G::decode_unchecked_subgroup] {
        assert_eq!(decode(bytes), Err(DecodeError::NotCanonical), "{}", hex::encode(bytes));
    }
}

#[test]
fn ed25519_has_one_encoding_for_each_point() {
    // y from p to 2^255 - 1, with either sign. The first two stand for points of small order.
    for low in 0xed..=0xff {
        for high in [0x7f, 0xff] {
            let mut bytes = [0xff; 32];
            (bytes[0], bytes[31]) = (low, high);
            refuses_as_not_canonical::<Ed25519>(&bytes);
        }
    }
    // x = 0 with the sign set: minus the neutral element, minus the point of order 2.
    let mut bytes = Ed25519::encode(&Ed25519::identity());
    bytes[31] |= 0x80;
    refuses_as_not_canonical::<Ed25519>(&bytes);
    let mut bytes = hex::decode(LOW_ORDER_25519[0]).unwrap();
    bytes[31] |= 0x80;
    refuses_as_not_canonical::<Ed25519>(&bytes);
    // No point has y = 2.
    let mut bytes = [0; 32];
    bytes[0] = 2;
    refuses_as_not_canonical::<Ed25519>(&bytes);
}

#[test]
fn ed448_has_one_encoding_for_each_point() {
    // y from p to p + 255, with either sign: p is -1 as an integer below 2^448, minus 2^224.
    for low in 0..=0xff_u8 {
        for sign in [0, 0x80] {
            let mut bytes = [0xff; 57];
            (bytes[28], bytes[56]) = (0xfe, sign);
            if low != 0 {
                // p + low: the ones carry into 2^224.
                bytes[..28].fill(0);
                (bytes[0], bytes[28]) = (low - 1, 0xff);
            }
            refuses_as_not_canonical::<Ed448>(&bytes);
        }
    }
    // Every stray bit of the last byte.
    for element in [Ed448::generator(), Ed448::identity(), -Ed448::generator()] {
        for bit in 0..7 {
            let mut bytes = Ed448::encode(&element);
            bytes[56] |= 1 << bit;
            refuses_as_not_canonical::<Ed448>(&bytes);
        }
    }
    // x = 0 with the sign set: minus the neutral element, minus the point of order 2.
    let mut bytes = Ed448::encode(&Ed448::identity());
    bytes[56] |= 0x80;
    refuses_as_not_canonical::<Ed448>(&bytes);
    let mut bytes = hex::decode(LOW_ORDER_448[0]).unwrap();
    bytes[56] |= 0x80;
    refuses_as_not_canonical::<Ed448>(&bytes);
}

#[test]
fn ed448_scalars_have_57_bytes_with_the_last_one_zero() {
    let mut bytes = Ed448Scalar::from_u64(7).encode();
    assert_eq!(Ed448Scalar::decode(&bytes), Ok(Ed448Scalar::from_u64(7)));
    bytes[56] = 1;
    assert_eq!(Ed448Scalar::decode(&bytes), Err(DecodeError::NotCanonical));
    // The order of the group (RFC 8032, section 5.2), and the largest scalar.
    let order = "f34458ab92c27823558fc58d72c26c219036d6ae49db4ec4e923ca7cffffffffffffffffffffffffffffffffffffffffffffffffffffff3f00";
    let mut order = hex::decode(order).unwrap();
    assert_eq!(Ed448Scalar::decode(&order), Err(DecodeError::NotCanonical));
    assert_eq!(Ed448Scalar::from_uniform_bytes(&order), Ed448Scalar::ZERO);
    order[0] -= 1;
    assert_eq!(Ed448Scalar::decode(&order), Ok(-Ed448Scalar::ONE));
}

/// The sum of two products as verifiers compute it is the sum of two products.
fn double_multiplication_is_the_sum<G: Group>() {
    let h = G::hash_to_group(b"a tag", &[b"a point"]);
    let scalars = [G::Scalar::ZERO, G::Scalar::ONE, -G::Scalar::ONE, G::Scalar::from_uniform_bytes(&[0x5a; 128])];
    for a in scalars {
        for b in scalars {
            assert_eq!(G::vartime_double_mul(&a, &h, &b), G::mul_base(&a) + h * b);
        }
    }
}

#[test]
fn double_multiplication() {
    double_multiplication_is_the_sum::<Ed25519>();
    double_multiplication_is_the_sum::<Ed448>();
    double_multiplication_is_the_sum::<theta_groups::Ristretto255>();
}

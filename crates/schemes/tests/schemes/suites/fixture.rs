//! Fixtures for the tests of all suites.

use std::{fs, path::Path};

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::Value;
use theta_groups::bls12_381::{G1, G2};
use theta_groups::{Ed448, Ed25519, Group, P256, Ristretto255, Scalar, Secp256k1, bn254};
use theta_payload::{Aead, Encrypt, split_ciphertext};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, SchemeError, deal_any};
use theta_schemes::{Purpose, StatementBytes, Suite, VerifyError};
use theta_sharing::{ShareIndex, Threshold};

/// A file of vectors/.
pub(crate) fn vector(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(file);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

pub(crate) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

pub(crate) fn index(i: u16) -> ShareIndex {
    ShareIndex::try_from(i).unwrap()
}

pub(crate) fn key(suite: Suite, k: u16, n: u16, seed: u64) -> (AnyPublicKey, Vec<AnyKeyShare>) {
    deal_any(suite, Threshold::new(k, n).unwrap(), &mut rng(seed))
}

/// A statement that the key answers; different numbers give different ones.
pub(crate) fn statement(public: &AnyPublicKey, number: u64) -> StatementBytes {
    match public.suite().purpose() {
        Purpose::Decrypt => {
            let plaintext = format!("plaintext {number}");
            let ciphertext = public
                .encrypt(plaintext.as_bytes(), b"label", Aead::default(), &mut rng(number))
                .expect("a key for encryption");
            let (header, _) = split_ciphertext(&ciphertext).unwrap();
            StatementBytes::Decapsulate(header.to_vec().into())
        }
        Purpose::Sign => StatementBytes::Sign(format!("message {number}").into_bytes().into()),
        Purpose::Coin => StatementBytes::FlipCoin(format!("coin {number}").into_bytes().into()),
    }
}

/// All parties' shares of the statement.
pub(crate) fn shares(
    public: &AnyPublicKey,
    keys: &[AnyKeyShare],
    statement: &StatementBytes,
) -> Vec<(ShareIndex, Vec<u8>)> {
    let mut rng = rng(99);
    keys.iter().map(|key| (key.index(), public.create_share(key, statement, &mut rng).unwrap())).collect()
}

/// Asserts that a share is refused, by its bytes or its proof, and that only its sender is named.
pub(crate) fn assert_refused(answer: Result<(), SchemeError>, sender: ShareIndex) {
    match answer {
        Err(SchemeError::MalformedShare { index, .. }) => assert_eq!(index, sender),
        Err(SchemeError::FalseShares(named)) => assert_eq!(named, [sender]),
        other => panic!("party {sender}: {other:?}"),
    }
}

/// Asserts that a result is refused: its bytes are no result, or it does not verify.
pub(crate) fn assert_unverified(answer: Result<(), SchemeError>) {
    match answer {
        Err(SchemeError::Verify(VerifyError::Invalid | VerifyError::Malformed(_))) => {}
        other => panic!("{other:?}"),
    }
}

pub(crate) fn borrow(shares: &[(ShareIndex, Vec<u8>)]) -> Vec<(ShareIndex, &[u8])> {
    shares.iter().map(|(index, share)| (*index, share.as_slice())).collect()
}

/// Runs generic code on the group of the point that begins a share of the suite.
macro_rules! with_share_group {
    ($suite:expr, |$group:ident| $body:expr) => {
        match ($suite, $suite.group()) {
            (Suite::Bls04MinPk | Suite::Cks05Bls04MinPk, _) => with_share_group!(@run $group = G2, $body),
            (_, "bls12-381") => with_share_group!(@run $group = G1, $body),
            (_, "bn254") => with_share_group!(@run $group = bn254::G1, $body),
            (_, "ristretto255") => with_share_group!(@run $group = Ristretto255, $body),
            (_, "ed25519") => with_share_group!(@run $group = Ed25519, $body),
            (_, "ed448") => with_share_group!(@run $group = Ed448, $body),
            (_, "p256") => with_share_group!(@run $group = P256, $body),
            (_, "secp256k1") => with_share_group!(@run $group = Secp256k1, $body),
            (suite, group) => panic!("{suite} is on a group that these tests do not know: {group}"),
        }
    };
    (@run $group:ident = $type:ty, $body:expr) => {{
        type $group = $type;
        $body
    }};
}

/// Adds `g * delta` to the point that begins a share of the suite.
pub(crate) fn shift(suite: Suite, share: &[u8], delta: i64) -> Vec<u8> {
    with_share_group!(suite, |G| shift_in::<G>(share, delta))
}

fn shift_in<G: Group>(share: &[u8], delta: i64) -> Vec<u8> {
    let (point, proof) = share.split_at(G::ENCODED_LEN);
    let size = G::Scalar::from_u64(delta.unsigned_abs());
    let delta = if delta < 0 { -size } else { size };
    let shifted = G::decode(point).unwrap() + G::generator() * delta;
    [G::encode(&shifted).as_ref(), proof].concat()
}

/// A share of the suite's length whose point is the identity.
pub(crate) fn identity_share(suite: Suite, share: &[u8]) -> Vec<u8> {
    with_share_group!(suite, |G| {
        [<G as Group>::encode(&G::identity()).as_ref(), &share[<G as Group>::ENCODED_LEN..]].concat()
    })
}

/// Length of a share's point.
pub(crate) fn point_len(suite: Suite) -> usize {
    with_share_group!(suite, |G| <G as Group>::ENCODED_LEN)
}

/// An encoded point of the suite's share curve outside the prime-order subgroup, if the curve has such.
pub(crate) fn off_subgroup_point(suite: Suite) -> Option<Vec<u8>> {
    with_share_group!(suite, |G| off_subgroup::<G>())
}

/// The first of the points with small coordinates that is outside, in either byte order.
fn off_subgroup<G: Group>() -> Option<Vec<u8>> {
    (1..=255).find_map(|coordinate| {
        let mut big_endian = vec![0; G::ENCODED_LEN];
        big_endian[0] = 0x80;
        *big_endian.last_mut()? = coordinate;
        let mut little_endian = vec![0; G::ENCODED_LEN];
        little_endian[0] = coordinate;
        [big_endian, little_endian]
            .into_iter()
            .find(|bytes| G::decode_unchecked_subgroup(bytes).is_ok_and(|point| !G::is_in_subgroup(&point)))
    })
}

/// Adds a point of the cofactor's torsion, which no pairing detects: the order times a point outside the subgroup.
pub(crate) fn add_torsion(suite: Suite, share: &[u8]) -> Option<Vec<u8>> {
    let point = off_subgroup_point(suite)?;
    Some(with_share_group!(suite, |G| add_torsion_in::<G>(share, &point)))
}

fn add_torsion_in<G: Group>(share: &[u8], off_subgroup: &[u8]) -> Vec<u8> {
    let point = G::decode_unchecked_subgroup(off_subgroup).unwrap();
    // The order less one.
    let mut digits = (-G::Scalar::ONE).encode().as_ref().to_vec();
    if G::Scalar::ONE.encode().as_ref()[0] == 1 {
        digits.reverse();
    }
    let bits = digits.into_iter().flat_map(|byte| (0..8).rev().map(move |i| byte >> i & 1));
    // By doubling and adding, because faster multiplications assume the subgroup.
    let multiple = bits.fold(G::identity(), |sum, bit| if bit == 1 { sum + sum + point } else { sum + sum });
    let torsion = multiple + point;
    assert!(!G::is_identity(&torsion));
    let (head, proof) = share.split_at(G::ENCODED_LEN);
    let moved = G::decode(head).unwrap() + torsion;
    assert!(!G::is_in_subgroup(&moved));
    [G::encode(&moved).as_ref(), proof].concat()
}

/// The suites of one round whose keys are on a curve: those that [`for_every_suite`] lists.
pub(crate) fn one_round_suites() -> impl Iterator<Item = Suite> {
    curve_suites().filter(|suite| is_one_round(*suite))
}

/// Whether parties answer in one round, each with one share.
pub(crate) fn is_one_round(suite: Suite) -> bool {
    theta_schemes::with_scheme!(suite, |S| if one_round { true } else { false })
}

/// All suites whose keys are on a curve.
pub(crate) fn curve_suites() -> impl Iterator<Item = Suite> {
    Suite::ALL.into_iter().filter(|suite| suite.group() != "RSA")
}

/// Whether keys of the suite carry a proof of possession.
pub(crate) fn has_proof_of_possession(suite: Suite) -> bool {
    suite.name().contains("bls04")
}

/// One test for each suite of one round whose keys are on a curve.
macro_rules! for_every_suite {
    (@names) => {
        [Suite::Sg02Ristretto255, Suite::Sg02Bls12381, Suite::Sg02Ed25519, Suite::Sg02Bn254, Suite::Sg02P256, Suite::Sg02Secp256k1, Suite::Bz03Bls12381, Suite::Bz03Bn254, Suite::Bls04MinPk, Suite::Bls04MinSig, Suite::Bls04Bn254, Suite::Cks05Ristretto255, Suite::Cks05Bls12381, Suite::Cks05Ed25519, Suite::Cks05Ed448, Suite::Cks05Bn254, Suite::Cks05P256, Suite::Cks05Secp256k1, Suite::Cks05Bls04MinPk, Suite::Cks05Bls04MinSig]
    };
    ($($test:ident),+ $(,)?) => {
        for_every_suite!(@suite sg02_ristretto255 Sg02Ristretto255 $($test)+);
        for_every_suite!(@suite sg02_bls12381 Sg02Bls12381 $($test)+);
        for_every_suite!(@suite sg02_ed25519 Sg02Ed25519 $($test)+);
        for_every_suite!(@suite sg02_bn254 Sg02Bn254 $($test)+);
        for_every_suite!(@suite sg02_p256 Sg02P256 $($test)+);
        for_every_suite!(@suite sg02_secp256k1 Sg02Secp256k1 $($test)+);
        for_every_suite!(@suite bz03_bls12381 Bz03Bls12381 $($test)+);
        for_every_suite!(@suite bz03_bn254 Bz03Bn254 $($test)+);
        for_every_suite!(@suite bls04_min_pk Bls04MinPk $($test)+);
        for_every_suite!(@suite bls04_min_sig Bls04MinSig $($test)+);
        for_every_suite!(@suite bls04_bn254 Bls04Bn254 $($test)+);
        for_every_suite!(@suite cks05_ristretto255 Cks05Ristretto255 $($test)+);
        for_every_suite!(@suite cks05_bls12381 Cks05Bls12381 $($test)+);
        for_every_suite!(@suite cks05_ed25519 Cks05Ed25519 $($test)+);
        for_every_suite!(@suite cks05_ed448 Cks05Ed448 $($test)+);
        for_every_suite!(@suite cks05_bn254 Cks05Bn254 $($test)+);
        for_every_suite!(@suite cks05_p256 Cks05P256 $($test)+);
        for_every_suite!(@suite cks05_secp256k1 Cks05Secp256k1 $($test)+);
        for_every_suite!(@suite cks05_bls04_min_pk Cks05Bls04MinPk $($test)+);
        for_every_suite!(@suite cks05_bls04_min_sig Cks05Bls04MinSig $($test)+);
    };
    (@suite $module:ident $suite:ident $($test:ident)*) => {
        mod $module {
            $(#[test]
            fn $test() {
                super::$test(theta_schemes::Suite::$suite);
            })*
        }
    };
}

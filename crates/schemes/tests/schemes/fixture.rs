//! What the tests of all suites share.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use theta_groups::bls12_381::{G1, G2};
use theta_groups::bn254;
use theta_groups::{Group, Ristretto255, Scalar};
use theta_schemes::ciphers::payload::{Aead, split_ciphertext};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, deal_any};
use theta_schemes::{Purpose, StatementBytes, Suite};
use theta_sharing::{ShareIndex, Threshold};

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

pub(crate) fn borrow(shares: &[(ShareIndex, Vec<u8>)]) -> Vec<(ShareIndex, &[u8])> {
    shares.iter().map(|(index, share)| (*index, share.as_slice())).collect()
}

/// Adds `g * delta` to the point that begins a share of the suite.
pub(crate) fn shift(suite: Suite, share: &[u8], delta: i64) -> Vec<u8> {
    match suite {
        Suite::Sg02Ristretto255 | Suite::Cks05Ristretto255 => shift_in::<Ristretto255>(share, delta),
        Suite::Bls04MinPk => shift_in::<G2>(share, delta),
        Suite::Bz03Bn254 | Suite::Bls04Bn254 => shift_in::<bn254::G1>(share, delta),
        _ => shift_in::<G1>(share, delta),
    }
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
    let mut bytes = share.to_vec();
    let point = point_len(suite);
    bytes[..point].fill(0);
    bytes[0] = match suite {
        Suite::Bz03Bn254 | Suite::Bls04Bn254 => 0x40,
        _ if point == 32 => 0,
        _ => 0xc0,
    };
    bytes
}

/// Length of a share's point.
pub(crate) fn point_len(suite: Suite) -> usize {
    match suite {
        Suite::Sg02Ristretto255 | Suite::Cks05Ristretto255 | Suite::Bz03Bn254 | Suite::Bls04Bn254 => 32,
        Suite::Bls04MinPk => 96,
        _ => 48,
    }
}

/// An encoded point of the suite's share curve outside the prime-order subgroup, if the curve has such.
pub(crate) fn off_subgroup_point(suite: Suite) -> Option<Vec<u8>> {
    match point_len(suite) {
        96 => Some(off_subgroup::<G2>()),
        48 => Some(off_subgroup::<G1>()),
        _ => None,
    }
}

fn off_subgroup<G: Group>() -> Vec<u8> {
    (1..=255)
        .find_map(|x| {
            let mut bytes = vec![0; G::ENCODED_LEN];
            bytes[0] = 0x80;
            *bytes.last_mut()? = x;
            let point = G::decode_unchecked_subgroup(&bytes).ok()?;
            (!G::is_in_subgroup(&point)).then_some(bytes)
        })
        .expect("almost every point is outside the subgroup")
}

/// The order of the prime-order subgroups of BLS12-381.
const ORDER: &str = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";

/// Adds a point that the order times any element of the subgroup does not reach, and that a pairing does not see: the
/// order times a point outside the subgroup.
pub(crate) fn add_torsion(suite: Suite, share: &[u8]) -> Option<Vec<u8>> {
    let point = off_subgroup_point(suite)?;
    Some(if suite == Suite::Bls04MinPk {
        add_torsion_in::<G2>(share, &point)
    } else {
        add_torsion_in::<G1>(share, &point)
    })
}

fn add_torsion_in<G: Group>(share: &[u8], off_subgroup: &[u8]) -> Vec<u8> {
    let point = G::decode_unchecked_subgroup(off_subgroup).unwrap();
    let bits = hex::decode(ORDER).unwrap().into_iter().flat_map(|byte| (0..8).rev().map(move |i| byte >> i & 1));
    // Doubling and adding, since faster multiplications assume the subgroup.
    let torsion = bits.fold(G::identity(), |sum, bit| if bit == 1 { sum + sum + point } else { sum + sum });
    assert!(!G::is_identity(&torsion));
    let (head, proof) = share.split_at(G::ENCODED_LEN);
    let moved = G::decode(head).unwrap() + torsion;
    assert!(!G::is_in_subgroup(&moved));
    [G::encode(&moved).as_ref(), proof].concat()
}

/// One test for each suite.
macro_rules! for_every_suite {
    ($($test:ident),* $(,)?) => {
        for_every_suite!(@suite sg02_ristretto255 Sg02Ristretto255 $($test)*);
        for_every_suite!(@suite sg02_bls12381 Sg02Bls12381 $($test)*);
        for_every_suite!(@suite bz03_bls12381 Bz03Bls12381 $($test)*);
        for_every_suite!(@suite bz03_bn254 Bz03Bn254 $($test)*);
        for_every_suite!(@suite bls04_min_pk Bls04MinPk $($test)*);
        for_every_suite!(@suite bls04_min_sig Bls04MinSig $($test)*);
        for_every_suite!(@suite bls04_bn254 Bls04Bn254 $($test)*);
        for_every_suite!(@suite cks05_ristretto255 Cks05Ristretto255 $($test)*);
        for_every_suite!(@suite cks05_bls12381 Cks05Bls12381 $($test)*);
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

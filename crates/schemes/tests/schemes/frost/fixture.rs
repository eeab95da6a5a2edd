//! Fixtures of the tests.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::Value;
use theta_groups::Group;
use theta_schemes::keys::{Dealt, deal};
use theta_schemes::signatures::frost::{
    AggregateError, Frost, FrostSuite, Signature, SignatureShare, SigningCommitments, SigningNonces, SigningPackage,
    aggregate, commit, sign,
};
use theta_sharing::{ShareIndex, Threshold};

pub(crate) type Element<C> = <<C as FrostSuite>::Group as Group>::Element;
pub(crate) type Scalar<C> = <<C as FrostSuite>::Group as Group>::Scalar;

pub(crate) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

pub(crate) fn index(i: u16) -> ShareIndex {
    ShareIndex::try_from(i).unwrap()
}

pub(crate) fn key<C: FrostSuite>(k: u16, n: u16, seed: u64) -> Dealt<C::Group> {
    deal::<Frost<C>>(Threshold::new(k, n).unwrap(), &mut rng(seed))
}

/// Round one of the parties at these positions.
pub(crate) fn commit_all<C: FrostSuite>(
    dealt: &Dealt<C::Group>,
    positions: &[usize],
    seed: u64,
) -> (Vec<SigningNonces<C>>, Vec<SigningCommitments<C>>) {
    let mut rng = rng(seed);
    positions.iter().map(|i| commit::<C>(&dealt.shares[*i], &mut rng)).unzip()
}

/// A session up to the shares.
pub(crate) fn session<C: FrostSuite>(
    dealt: &Dealt<C::Group>,
    positions: &[usize],
    message: &[u8],
    seed: u64,
) -> (SigningPackage<C>, Vec<SignatureShare<C>>) {
    let (nonces, commitments) = commit_all::<C>(dealt, positions, seed);
    let package = SigningPackage::new(&dealt.public, commitments, message).unwrap();
    let shares = sign_all(dealt, &package, nonces);
    (package, shares)
}

pub(crate) fn sign_all<C: FrostSuite>(
    dealt: &Dealt<C::Group>,
    package: &SigningPackage<C>,
    nonces: Vec<SigningNonces<C>>,
) -> Vec<SignatureShare<C>> {
    nonces
        .into_iter()
        .map(|nonces| {
            let position = nonces.index().position();
            sign(package, nonces, &dealt.shares[position]).unwrap()
        })
        .collect()
}

pub(crate) fn aggregated<C: FrostSuite>(
    dealt: &Dealt<C::Group>,
    package: &SigningPackage<C>,
    shares: &[SignatureShare<C>],
) -> Result<Signature<C>, AggregateError> {
    aggregate(&dealt.public, package, shares, &mut rng(77))
}

/// The share with `delta` added to it.
pub(crate) fn shift<C: FrostSuite>(share: &SignatureShare<C>, delta: Scalar<C>) -> SignatureShare<C> {
    use theta_groups::Scalar as _;
    let response = Scalar::<C>::decode(&share.encode()).unwrap() + delta;
    SignatureShare::decode(share.index(), response.encode().as_ref()).unwrap()
}

/// All k-element subsets of 0..n.
pub(crate) fn subsets(n: usize, k: usize) -> Vec<Vec<usize>> {
    (0_u32..1 << n)
        .filter(|bits| bits.count_ones() as usize == k)
        .map(|bits| (0..n).filter(|i| bits >> i & 1 == 1).collect())
        .collect()
}

pub(crate) fn unhex(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

pub(crate) fn vectors(file: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(file).unwrap();
    file["vectors"].as_array().unwrap().clone()
}

/// One test for each suite.
macro_rules! for_every_frost_suite {
    ($($test:ident),* $(,)?) => {
        for_every_frost_suite!(@suite ristretto255 Ristretto255Sha512 $($test)*);
        for_every_frost_suite!(@suite ed25519 Ed25519Sha512 $($test)*);
        for_every_frost_suite!(@suite ed448 Ed448Shake256 $($test)*);
        for_every_frost_suite!(@suite p256 P256Sha256 $($test)*);
        for_every_frost_suite!(@suite secp256k1 Secp256k1Sha256 $($test)*);
        for_every_frost_suite!(@suite secp256k1_tr Secp256k1Taproot $($test)*);
    };
    (@suite $module:ident $suite:ident $($test:ident)*) => {
        mod $module {
            $(#[test]
            fn $test() {
                super::$test::<theta_schemes::signatures::frost::$suite>();
            })*
        }
    };
}

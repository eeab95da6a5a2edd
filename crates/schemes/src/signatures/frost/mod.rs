//! FROST (Komlo and Goldberg, SAC 2020) as in RFC 9591, byte for byte: Schnorr signatures of k parties in two rounds, the first of
//! which can be done in advance. Also Taproot keys (BIP-340, BIP-341) and re-randomised keys.
//!
//! 1. Each signer [`commit`]s to a pair of nonces and keeps the [`SigningNonces`] to itself.
//! 2. A coordinator collects the [`SigningCommitments`] of k or more signers. Everyone makes the same [`SigningPackage`] of
//!    them and the message, and each signer [`sign`]s it, which uses up the nonces.
//! 3. Anyone can [`aggregate`] the shares. The signature is verified; if it is false, all senders of false shares are named.
//!
//! See `spec/frost.md`. A nonce that answers two packages reveals the key share, so [`SigningNonces`] cannot be used
//! twice: they are neither cloned, copied nor stored, and [`sign`] takes them by value.
//!
//! ```compile_fail,E0382
//! # use theta_schemes::keys::KeyShare;
//! # use theta_schemes::signatures::frost::{FrostSuite, SigningNonces, SigningPackage, sign};
//! fn sign_both<C: FrostSuite>(
//!     packages: [&SigningPackage<C>; 2],
//!     nonces: SigningNonces<C>,
//!     key: &KeyShare<C::Group>,
//! ) {
//!     let _ = sign(packages[0], nonces, key);
//!     let _ = sign(packages[1], nonces, key); // error[E0382]: use of moved value: `nonces`
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use theta_schemes::signatures::frost::{FrostSuite, SigningNonces};
//! fn keep<C: FrostSuite>(nonces: SigningNonces<C>) -> [SigningNonces<C>; 2] {
//!     [nonces.clone(), nonces] // error[E0599]: no method named `clone`
//! }
//! ```

mod aggregate;
mod commitment;
mod derived_key;
mod frost_key;
mod keyed;
mod nonce;
mod package;
mod rerandomized;
mod share;
mod signature;
mod suites;

use core::marker::PhantomData;

use crate::keys::scheme::{Curve, TwoRounds};
use crate::keys::{CurveScheme, KeyScheme, KeyShare, PublicKeySet};
use crate::{SignatureScheme, Suite, VerifyError};

pub use aggregate::{AggregateError, aggregate, false_shares, verify_share};
pub use commitment::{PackageError, SigningCommitments};
pub use derived_key::DerivedKey;
pub use frost_key::FrostKey;
pub use nonce::{SigningNonces, commit, commit_batch};
pub use package::SigningPackage;
pub use rerandomized::{
    MAX_SEED_LEN, MIN_SEED_LEN, SeedError, check_seed, randomized_key, randomizer_seed, verify_with_key,
};
pub use share::{SignError, SignatureShare, sign};
pub use signature::{Signature, VerifyingKey};
pub use suites::{
    Ed448Shake256, Ed25519Sha512, FrostSuite, P256Sha256, Ristretto255Sha512, Secp256k1Sha256, Secp256k1Taproot,
    SuiteHash,
};
pub(crate) use suites::{ElementOf, ScalarOf};

/// The scheme in one of its suites.
#[derive(Clone, Copy, Debug)]
pub struct Frost<C>(PhantomData<C>);

impl<C: FrostSuite> KeyScheme for Frost<C> {
    type PublicKey = PublicKeySet<C::Group>;
    type KeyShare = KeyShare<C::Group>;
    type Kind = Curve;
    type Family = TwoRounds;
    const SUITE: Suite = C::SUITE;

    fn verifying_key_bytes(public: &Self::PublicKey) -> &[u8] {
        C::standard_encoding(public.public_key_bytes())
    }
}

impl<C: FrostSuite> CurveScheme for Frost<C> {
    type KeyGroup = C::Group;
}

impl<C: FrostSuite> SignatureScheme for Frost<C> {
    fn verify(public: &Self::PublicKey, message: &[u8], signature: &[u8]) -> Result<(), VerifyError> {
        DerivedKey::<C>::new(public).verifying_key().verify(message, signature)
    }
}

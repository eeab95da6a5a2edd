//! Re-randomised keys: signatures that verify under x + alpha and cannot be linked to x or to each other (Gouvêa and Komlo,
//! *Re-Randomized FROST*, 2024), compatible with the crate `frost-rerandomized` 3.

use rand_core::CryptoRng;
use theta_groups::{Scalar, Secret};

use super::commitment::{CommitmentList, is_list};
use super::{DerivedKey, FrostSuite, PackageError, ScalarOf, SigningCommitments, SigningPackage, SuiteHash};
use crate::keys::{AnyPublicKey, PublicKeySet};
use crate::{Suite, VerifyError};

/// The least length of a seed in bytes: that of the shortest scalar.
pub const MIN_SEED_LEN: usize = 32;
/// The greatest length of a seed in bytes.
pub const MAX_SEED_LEN: usize = 64;

/// Why a key cannot sign with a seed: the caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeedError {
    /// The scheme has no re-randomised signatures.
    #[error("keys of {0} make no re-randomised signatures: name a key of a FROST suite, or leave the randomizer out")]
    Suite(Suite),
    /// The seed is too short to be secret, or too long.
    #[error("a randomizer has {MIN_SEED_LEN} to {MAX_SEED_LEN} random bytes, this one has {0}")]
    Length(usize),
}

/// Whether keys of a suite sign with a seed of this length in bytes.
///
/// # Errors
/// [`SeedError`].
pub fn check_seed(suite: Suite, length: usize) -> Result<(), SeedError> {
    if suite.scheme() != "FROST" {
        return Err(SeedError::Suite(suite));
    }
    if (MIN_SEED_LEN..=MAX_SEED_LEN).contains(&length) { Ok(()) } else { Err(SeedError::Length(length)) }
}

/// The re-randomised key, in its standard encoding, of a seed and the commitments of a session
/// ([`SigningPackage::encoded_commitments`]). `None` for keys of other schemes, for a list that is not of k or more parties of the key, and otherwise
/// with negligible probability.
///
/// A signature that verifies under this key by [`verify_with_key`] was made by the group for this seed. The commitments need not be
/// trusted: whatever they are, the tweak is a hash of them, and a signature under a key with a hashed tweak takes the group's key.
#[must_use]
pub fn randomized_key(public: &AnyPublicKey, seed: &Secret<Vec<u8>>, encoded_commitments: &[u8]) -> Option<Vec<u8>> {
    public.object().frost()?.randomized(seed, encoded_commitments)
}

/// Verifies a signature with a key in its standard encoding, of the suite that `public` has.
///
/// # Errors
/// [`VerifyError`]; [`VerifyError::Invalid`] also for keys of other schemes.
pub fn verify_with_key(public: &AnyPublicKey, key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), VerifyError> {
    public.object().frost().ok_or(VerifyError::Invalid)?.verify_with([key, message, signature])
}

/// A fresh seed. The coordinator sends it to the signers with the commitments, and to nobody else, because knowing it suffices to
/// link the signature to the group's key.
#[must_use]
pub fn randomizer_seed<C: FrostSuite>(rng: &mut (impl CryptoRng + ?Sized)) -> Secret<Vec<u8>> {
    let mut seed = Secret::new(vec![0; ScalarOf::<C>::ENCODED_LEN]);
    rng.fill_bytes(seed.expose_mut());
    seed
}

impl<C: FrostSuite> SigningPackage<C> {
    /// A package to be signed with x + alpha, where alpha is the hash of the seed and all commitments, so that a coordinator
    /// cannot choose it. The signature verifies under [`SigningPackage::key`].
    ///
    /// # Errors
    /// [`PackageError`].
    pub fn randomized(
        public: &PublicKeySet<C::Group>,
        seed: &Secret<Vec<u8>>,
        commitments: Vec<SigningCommitments<C>>,
        message: &[u8],
    ) -> Result<Self, PackageError> {
        let list = CommitmentList::new(public.threshold(), commitments)?;
        let encoded_list = list.encode();
        let key = DerivedKey::randomized(public, seed, &encoded_list)?;
        Self::assemble(key, list, &encoded_list, message)
    }

    /// All commitments as RFC 9591, section 4.3, encodes them. A re-randomised key follows from these and the seed.
    #[must_use]
    pub fn encoded_commitments(&self) -> Vec<u8> {
        self.list().encode()
    }
}

impl<C: FrostSuite> DerivedKey<C> {
    /// x + alpha, where alpha is the hash of the seed and all commitments of a session.
    ///
    /// Seed and list are hashed one behind the other, as `frost-rerandomized` does, and seeds differ in length. So the list has to be one: it is a whole
    /// number of entries, each longer than two seeds differ, and no part of a seed passes for the beginning of a list or the other way round.
    ///
    /// # Errors
    /// [`PackageError::List`]; [`PackageError::Tweak`], which has negligible probability.
    pub fn randomized(
        public: &PublicKeySet<C::Group>,
        seed: &Secret<Vec<u8>>,
        encoded_commitments: &[u8],
    ) -> Result<Self, PackageError> {
        if !is_list::<C>(public.threshold(), encoded_commitments) {
            return Err(PackageError::List);
        }
        let randomizer = C::Hash::to_scalar(C::CONTEXT, b"randomizer", &[seed.expose(), encoded_commitments])(&[]);
        Self::tweaked(public, false, Secret::new(randomizer))
    }
}

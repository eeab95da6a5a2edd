//! Re-randomised keys: signatures that verify under x + alpha and cannot be linked to x or to each other (Gouvea-Komlo,
//! *Re-Randomized FROST*, 2024), compatible with the crate `frost-rerandomized` 3.

use rand_core::CryptoRng;
use theta_groups::{Scalar, Secret};

use super::commitment::CommitmentList;
use super::{DerivedKey, FrostSuite, PackageError, ScalarOf, SigningCommitments, SigningPackage, SuiteHash};
use crate::keys::PublicKeySet;

/// A fresh seed, which the coordinator sends to the signers beside the commitments, and to nobody else: whoever knows it
/// can link the signature to the group's key.
#[must_use]
pub fn randomizer_seed<C: FrostSuite>(rng: &mut (impl CryptoRng + ?Sized)) -> Secret<Vec<u8>> {
    let mut seed = Secret::new(vec![0; ScalarOf::<C>::ENCODED_LEN]);
    rng.fill_bytes(seed.expose_mut());
    seed
}

impl<C: FrostSuite> SigningPackage<C> {
    /// A package to be signed with x + alpha, where alpha is the hash of the seed and all commitments, so that a coordinator
    /// cannot choose it. Which key the signature verifies under is for [`SigningPackage::key`] to say.
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
        let randomizer = C::Hash::to_scalar(C::CONTEXT, b"randomizer", &[seed.expose(), &encoded_list])(&[]);
        let key = DerivedKey::tweaked(public, false, Secret::new(randomizer))?;
        Self::assemble(key, list, &encoded_list, message)
    }
}

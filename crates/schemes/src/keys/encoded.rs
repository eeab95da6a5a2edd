//! Keys on curves as bytes, and their proofs of possession.

use core::fmt;
use core::marker::PhantomData;

use theta_groups::{Group, Scalar, Secret};
use theta_sharing::{Encoded, EncodedKey, EncodedShare, ProofOfPossession, ShareIndex};

use super::{CurveScheme, KeyShare, Part, PartsError, PublicKeySet, ShareError};

impl<G: Group> PublicKeySet<G> {
    /// The key as bytes.
    #[must_use]
    pub fn encoded(&self) -> EncodedKey {
        EncodedKey {
            threshold: self.threshold(),
            public_key: self.public_key_bytes().to_vec(),
            verification_keys: self.verification_keys().iter().map(|key| key.bytes().to_vec()).collect(),
            proof_of_possession: self.proof_of_possession().map(<[u8]>::to_vec),
        }
    }

    /// Reads a key, with the checks of [`PublicKeySet::new`].
    ///
    /// # Errors
    /// [`PartsError`]: bytes that are no elements, or parts that do not belong together.
    pub fn from_encoded<S: CurveScheme<KeyGroup = G>>(key: &EncodedKey) -> Result<Self, PartsError> {
        let element = |part, bytes: &[u8]| Encoded::decode(bytes).map_err(|error| PartsError::Encoding { part, error });
        let public_key = element(Part::PublicKey, &key.public_key)?;
        let verification_keys = (1..)
            .zip(&key.verification_keys)
            .map(|(party, bytes)| element(Part::VerificationKey(party), bytes))
            .collect::<Result<_, _>>()?;
        Ok(Self::new::<S>(key.threshold, public_key, verification_keys, key.proof_of_possession.clone())?)
    }
}

impl<G: Group> KeyShare<G> {
    /// The share as bytes.
    #[must_use]
    pub fn encoded(&self) -> EncodedShare {
        let encoding = Secret::new(self.secret().expose().encode());
        EncodedShare { index: self.index(), secret: Secret::new(encoding.expose().as_ref().to_vec()) }
    }

    /// Reads a share and checks it against the key.
    ///
    /// # Errors
    /// [`ShareError`]: bytes that are no scalar, or not the one behind the party's verification key.
    pub fn from_encoded(public: &PublicKeySet<G>, share: &EncodedShare) -> Result<Self, ShareError> {
        Self::from_secret(public, share.index, share.secret.expose())
    }

    pub(crate) fn from_secret(public: &PublicKeySet<G>, index: ShareIndex, secret: &[u8]) -> Result<Self, ShareError> {
        let secret = Secret::new(G::Scalar::decode(secret).map_err(ShareError::Encoding)?);
        let share = Self::new(*public.key_id(), index, secret);
        if public.matches(&share) { Ok(share) } else { Err(ShareError::Mismatch(index)) }
    }
}

/// The proof of possession of a scheme, if it has one.
#[must_use]
pub fn proof_of_possession<S: CurveScheme>() -> Option<&'static dyn ProofOfPossession> {
    S::PROVES_POSSESSION.then_some(&SchemeProofs::<S>(PhantomData) as _)
}

/// A scheme's proofs on bytes.
struct SchemeProofs<S>(PhantomData<S>);

impl<S: CurveScheme> fmt::Debug for SchemeProofs<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProofOfPossession({})", S::SUITE)
    }
}

impl<S: CurveScheme> ProofOfPossession for SchemeProofs<S> {
    fn prove(&self, secret: &Secret<Vec<u8>>, public_key: &[u8]) -> Option<Vec<u8>> {
        let secret = Secret::new(<S::KeyGroup as Group>::Scalar::decode(secret.expose()).ok()?);
        S::prove_possession(&secret, &S::KeyGroup::decode(public_key).ok()?)
    }

    fn vartime_verify_share(&self, public_key: &[u8], verification_key: &[u8], share: &[u8]) -> bool {
        let keys = S::KeyGroup::decode(public_key).and_then(|key| Ok((key, S::KeyGroup::decode(verification_key)?)));
        keys.is_ok_and(|(public_key, key)| S::check_proof_of_possession_share(&public_key, &key, share))
    }

    fn vartime_combine(&self, shares: &[(ShareIndex, Vec<u8>)]) -> Option<Vec<u8>> {
        S::combine_proof_of_possession(shares)
    }

    fn vartime_verify(&self, public_key: &[u8], proof: &[u8]) -> bool {
        S::KeyGroup::decode(public_key).is_ok_and(|key| S::check_proof_of_possession(&key, Some(proof)))
    }
}

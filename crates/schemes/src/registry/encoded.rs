//! Keys of any suite as bytes, those on curves without their suite, and the properties of a suite that ceremonies need.

use theta_sharing::{EncodedKey, EncodedShare, ProofOfPossession};

use super::{AnyKeyShare, AnyPublicKey};
use crate::Suite;
use crate::keys::{KeyKind, PartsError, PublicBytesError, PublicParts, ShareError};

impl AnyPublicKey {
    /// All of the public material in its binary form ([`PublicParts::encode`]): what stores and ledgers have.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.parts().encode(self.suite())
    }

    /// Reads what [`AnyPublicKey::to_bytes`] wrote, fully checked. No key has two binary forms: other bytes are refused.
    ///
    /// # Errors
    /// [`PublicBytesError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PublicBytesError> {
        let (suite, parts) = PublicParts::decode(bytes)?;
        Ok(Self::from_parts(suite, &parts)?)
    }

    /// The key as bytes; `None` for RSA.
    #[must_use]
    pub fn encoded(&self) -> Option<EncodedKey> {
        if let PublicParts::Curve(key) = self.parts() { Some(key) } else { None }
    }

    /// Reads a key of a suite, fully checked.
    ///
    /// # Errors
    /// [`PartsError`], also if the suite is RSA.
    pub fn from_encoded(suite: Suite, key: &EncodedKey) -> Result<Self, PartsError> {
        Self::from_parts(suite, &PublicParts::Curve(key.clone()))
    }
}

impl AnyKeyShare {
    /// The share as bytes; `None` for RSA.
    #[must_use]
    pub fn encoded(&self) -> Option<EncodedShare> {
        (self.suite().key_kind() == KeyKind::Curve)
            .then(|| EncodedShare { index: self.index(), secret: self.secret_bytes() })
    }

    /// Reads a share and checks it against the key.
    ///
    /// # Errors
    /// [`ShareError`].
    pub fn from_encoded(public: &AnyPublicKey, share: &EncodedShare) -> Result<Self, ShareError> {
        Self::from_secret(public, share.index, share.secret.expose())
    }
}

impl Suite {
    /// The name of the group that public keys are elements of; `None` for RSA, whose keys no ceremony makes or renews.
    #[must_use]
    pub fn key_group(self) -> Option<&'static str> {
        self.ops().key_group()
    }

    /// The proof of possession of keys of this suite, if they have one.
    #[must_use]
    pub fn proof_of_possession(self) -> Option<&'static dyn ProofOfPossession> {
        self.ops().proof_of_possession()
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;
    use theta_sharing::Threshold;

    use super::*;
    use crate::keys::{PublicKeyError, deal_any};

    #[test]
    fn keys_of_all_suites_on_curves_are_what_they_were() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for suite in Suite::ALL.into_iter().filter(|suite| suite.key_group().is_some()) {
            let (public, shares) = deal_any(suite, Threshold::new(2, 3).unwrap(), &mut rng);
            let mut key = public.encoded().unwrap();
            assert_eq!(AnyPublicKey::from_encoded(suite, &key), Ok(public.clone()), "{suite}");
            for share in &shares {
                let mut encoded = share.encoded().unwrap();
                let same = AnyKeyShare::from_encoded(&public, &encoded).unwrap();
                assert_eq!((same.index(), same.suite(), same.key_id()), (share.index(), suite, public.key_id()));
                encoded.index = shares[usize::from(encoded.index == shares[0].index())].index();
                assert_eq!(
                    AnyKeyShare::from_encoded(&public, &encoded).map(drop),
                    Err(ShareError::Mismatch(encoded.index))
                );
            }
            // The holders together make the same proof as the dealer.
            match (suite.proof_of_possession(), &key.proof_of_possession) {
                (None, None) => {}
                (Some(scheme), Some(proof)) => {
                    assert!(scheme.vartime_verify(&key.public_key, proof));
                    let parts: Vec<_> = shares[1..]
                        .iter()
                        .map(|share| {
                            let secret = share.encoded().unwrap().secret;
                            let part = scheme.prove(&secret, &key.public_key).unwrap();
                            let own = key.verification_key(share.index()).unwrap();
                            assert!(scheme.vartime_verify_share(&key.public_key, own, &part));
                            assert!(!scheme.vartime_verify_share(&key.public_key, &key.verification_keys[0], &part));
                            (share.index(), part)
                        })
                        .collect();
                    assert_eq!(scheme.vartime_combine(&parts).as_ref(), Some(proof));
                }
                _ => panic!("{suite} has a proof, or has none"),
            }
            key.verification_keys.swap(0, 1);
            let swapped = AnyPublicKey::from_encoded(suite, &key);
            assert_eq!(swapped, Err(PartsError::Parts(PublicKeyError::Inconsistent)), "{suite}");
        }
    }
}

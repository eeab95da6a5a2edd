//! Keys of any suite.

use core::fmt;
use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::modular::SearchProgress;
use theta_groups::{Scalar, Secret};
use theta_sharing::{ShareIndex, Threshold};

use super::dispatch::with_suite;
use super::{DealError, KeyId, KeyScheme, PublicMaterial, SecretMaterial, deal, deal_secret};
use crate::signatures::sh00::{self, ModulusSize, RsaDealError, RsaPrimes};
use crate::{Suite, for_each_suite, with_key};

#[doc(hidden)]
#[macro_export]
macro_rules! define_any_keys {
    ($([$family:ident] $variant:ident = $type:ty, $name:literal, $scheme:literal, $group:literal, $purpose:ident,
        $doc:literal;)*) => {
        /// The public material of a key of any suite; clones share it.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum AnyPublicKey {
            $(#[doc = $doc] $variant(Arc<<$type as KeyScheme>::PublicKey>),)*
        }

        /// One party's secret share of a key of any suite.
        pub enum AnyKeyShare {
            $(#[doc = $doc] $variant(Arc<<$type as KeyScheme>::KeyShare>),)*
        }

        impl AnyKeyShare {
            /// What the key is for.
            #[must_use]
            pub const fn suite(&self) -> Suite {
                match self { $(Self::$variant(_) => Suite::$variant,)* }
            }

            /// The share, whatever it is made of.
            pub(super) fn material(&self) -> &dyn SecretMaterial {
                match self { $(Self::$variant(share) => share.as_ref(),)* }
            }
        }
    };
}

for_each_suite!(define_any_keys! {});

impl AnyPublicKey {
    /// What the key is for.
    #[must_use]
    pub fn suite(&self) -> Suite {
        with_key!(self, |public: S| public.suite())
    }

    /// How many of how many.
    #[must_use]
    pub fn threshold(&self) -> Threshold {
        with_key!(self, |public: S| public.threshold())
    }

    /// The key's id.
    #[must_use]
    pub fn key_id(&self) -> &KeyId {
        with_key!(self, |public: S| public.key_id())
    }

    /// The canonical encoding of the public key, of which the key's id is made.
    #[must_use]
    pub fn public_key_bytes(&self) -> &[u8] {
        with_key!(self, |public: S| public.public_key_bytes())
    }

    /// The public key as standard verifiers take it: for Taproot the 32 bytes of BIP-340, for all others the canonical
    /// encoding.
    #[must_use]
    pub fn verifying_key_bytes(&self) -> &[u8] {
        with_key!(self, |public: S| S::verifying_key_bytes(public))
    }
}

impl AnyKeyShare {
    /// Whose share this is.
    #[must_use]
    pub fn index(&self) -> ShareIndex {
        self.material().index()
    }

    /// The key that this is a share of.
    #[must_use]
    pub fn key_id(&self) -> &KeyId {
        self.material().key_id()
    }
}

impl fmt::Debug for AnyKeyShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyKeyShare({}, party {}, <redacted>)", self.suite(), self.index())
    }
}

/// Deals a key of any suite with a random secret: the public material and the shares of parties 1 to n. RSA keys get 2048
/// bits; that takes seconds, of which [`deal_rsa`] shows the progress.
#[must_use]
pub fn deal_any(suite: Suite, threshold: Threshold, rng: &mut dyn CryptoRng) -> (AnyPublicKey, Vec<AnyKeyShare>) {
    with_suite!(suite, |S, any_public, any_share| if curve {
        let dealt = deal::<S>(threshold, rng);
        (any_public(dealt.public), dealt.shares.into_iter().map(|share| any_share(Arc::new(share))).collect())
    } else {
        let dealt = sh00::deal::<S>(ModulusSize::DEFAULT, threshold, &mut |_| (), rng);
        (any_public(dealt.public), dealt.shares.into_iter().map(|share| any_share(Arc::new(share))).collect())
    })
}

/// Deals a new RSA key of 2048, 3072 or 4096 bits; `progress` is told how far the search for its primes is.
///
/// # Errors
/// [`RsaDealError::Bits`] for another size, [`RsaDealError::Suite`] for a suite of another kind.
pub fn deal_rsa(
    suite: Suite,
    bits: u32,
    threshold: Threshold,
    progress: &mut dyn FnMut(SearchProgress),
    rng: &mut dyn CryptoRng,
) -> Result<(AnyPublicKey, Vec<AnyKeyShare>), RsaDealError> {
    let size = ModulusSize::try_from(bits)?;
    with_suite!(suite, |S, any_public, any_share| if curve {
        Err(RsaDealError::Suite(suite))
    } else {
        let dealt = sh00::deal::<S>(size, threshold, progress, rng);
        Ok((any_public(dealt.public), dealt.shares.into_iter().map(|share| any_share(Arc::new(share))).collect()))
    })
}

/// Deals an RSA key with primes that were found before: for those who deal one key among many groups, such as benchmarks.
///
/// # Errors
/// [`RsaDealError::Suite`] for a suite of another kind.
pub fn deal_rsa_primes(
    suite: Suite,
    primes: &RsaPrimes,
    threshold: Threshold,
    rng: &mut dyn CryptoRng,
) -> Result<(AnyPublicKey, Vec<AnyKeyShare>), RsaDealError> {
    with_suite!(suite, |S, any_public, any_share| if curve {
        Err(RsaDealError::Suite(suite))
    } else {
        let dealt = sh00::deal_primes::<S>(primes, threshold, rng);
        Ok((any_public(dealt.public), dealt.shares.into_iter().map(|share| any_share(Arc::new(share))).collect()))
    })
}

/// Deals an existing secret key, given in its standard encoding (for BLS keys, 32 bytes big-endian).
///
/// # Errors
/// [`DealError`] if the bytes are not a secret key of the suite, or the suite is RSA.
pub fn import_any(
    suite: Suite,
    threshold: Threshold,
    secret: &Secret<Vec<u8>>,
    rng: &mut dyn CryptoRng,
) -> Result<(AnyPublicKey, Vec<AnyKeyShare>), DealError> {
    with_suite!(suite, |S, any_public, any_share| if curve {
        let secret = Secret::new(Scalar::decode(secret.expose()).map_err(DealError::Secret)?);
        let dealt = deal_secret::<S>(threshold, &secret, rng)?;
        Ok((any_public(dealt.public), dealt.shares.into_iter().map(|share| any_share(Arc::new(share))).collect()))
    } else {
        Err(DealError::RsaImport)
    })
}

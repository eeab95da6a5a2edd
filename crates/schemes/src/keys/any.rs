//! Keys of any suite.

use core::fmt;
use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::bls12_381::{G1, G2};
use theta_groups::{Ristretto255, Scalar, Secret};
use theta_sharing::{ShareIndex, Threshold};

use super::dispatch::with_suite;
use super::public_file::{self, PublicKeyFile};
use super::share_file::{self, ShareFile};
use super::{DealError, KeyFileError, KeyId, KeyName, KeyShare, PublicKeySet, deal, deal_secret};
use crate::{Suite, with_key};

/// The public material of a key of any suite; clones share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnyPublicKey {
    /// See [`Suite::Sg02Ristretto255`].
    Sg02Ristretto255(Arc<PublicKeySet<Ristretto255>>),
    /// See [`Suite::Sg02Bls12381`].
    Sg02Bls12381(Arc<PublicKeySet<G1>>),
    /// See [`Suite::Bls04MinPk`].
    Bls04MinPk(Arc<PublicKeySet<G1>>),
    /// See [`Suite::Bls04MinSig`].
    Bls04MinSig(Arc<PublicKeySet<G2>>),
    /// See [`Suite::Cks05Ristretto255`].
    Cks05Ristretto255(Arc<PublicKeySet<Ristretto255>>),
    /// See [`Suite::Cks05Bls12381`].
    Cks05Bls12381(Arc<PublicKeySet<G1>>),
}

/// One party's secret share of a key of any suite.
pub enum AnyKeyShare {
    /// See [`Suite::Sg02Ristretto255`].
    Sg02Ristretto255(Arc<KeyShare<Ristretto255>>),
    /// See [`Suite::Sg02Bls12381`].
    Sg02Bls12381(Arc<KeyShare<G1>>),
    /// See [`Suite::Bls04MinPk`].
    Bls04MinPk(Arc<KeyShare<G1>>),
    /// See [`Suite::Bls04MinSig`].
    Bls04MinSig(Arc<KeyShare<G2>>),
    /// See [`Suite::Cks05Ristretto255`].
    Cks05Ristretto255(Arc<KeyShare<Ristretto255>>),
    /// See [`Suite::Cks05Bls12381`].
    Cks05Bls12381(Arc<KeyShare<G1>>),
}

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

    /// The canonical encoding of the public key, which standard verifiers take.
    #[must_use]
    pub fn public_key_bytes(&self) -> &[u8] {
        with_key!(self, |public: S| public.public_key_bytes())
    }

    /// The text of the `.pub` file.
    #[must_use]
    pub fn to_text(&self, name: &KeyName) -> String {
        with_key!(self, |public: S| public_file::write(name, public))
    }

    /// Reads a `.pub` file and checks everything in it.
    ///
    /// # Errors
    /// The [`KeyFileError`] that names the first mistake.
    pub fn from_text(text: &str) -> Result<(KeyName, Self), KeyFileError> {
        let (file, name, suite) = PublicKeyFile::parse(text)?;
        let key = with_suite!(suite, |S, any_public, _any_share| any_public(file.decode::<S>()?));
        Ok((name, key))
    }
}

impl AnyKeyShare {
    /// What the key is for.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        match self {
            Self::Sg02Ristretto255(_) => Suite::Sg02Ristretto255,
            Self::Sg02Bls12381(_) => Suite::Sg02Bls12381,
            Self::Bls04MinPk(_) => Suite::Bls04MinPk,
            Self::Bls04MinSig(_) => Suite::Bls04MinSig,
            Self::Cks05Ristretto255(_) => Suite::Cks05Ristretto255,
            Self::Cks05Bls12381(_) => Suite::Cks05Bls12381,
        }
    }

    /// Whose share this is.
    #[must_use]
    pub fn index(&self) -> ShareIndex {
        match self {
            Self::Sg02Ristretto255(share) | Self::Cks05Ristretto255(share) => share.index(),
            Self::Sg02Bls12381(share) | Self::Bls04MinPk(share) | Self::Cks05Bls12381(share) => share.index(),
            Self::Bls04MinSig(share) => share.index(),
        }
    }

    /// The key that this is a share of.
    #[must_use]
    pub fn key_id(&self) -> &KeyId {
        match self {
            Self::Sg02Ristretto255(share) | Self::Cks05Ristretto255(share) => share.key_id(),
            Self::Sg02Bls12381(share) | Self::Bls04MinPk(share) | Self::Cks05Bls12381(share) => share.key_id(),
            Self::Bls04MinSig(share) => share.key_id(),
        }
    }

    /// The text of the `.share` file. Write it where its owner alone can read it.
    #[must_use]
    pub fn to_text(&self, name: &KeyName) -> Secret<String> {
        let suite = self.suite();
        match self {
            Self::Sg02Ristretto255(share) | Self::Cks05Ristretto255(share) => share_file::write(name, suite, share),
            Self::Sg02Bls12381(share) | Self::Bls04MinPk(share) | Self::Cks05Bls12381(share) => {
                share_file::write(name, suite, share)
            }
            Self::Bls04MinSig(share) => share_file::write(name, suite, share),
        }
    }

    /// Reads a `.share` file and checks that it belongs to `public`. The text is the caller's, to be wiped by the
    /// caller; no copy of the secret digits is made.
    ///
    /// # Errors
    /// The [`KeyFileError`] that names the first mistake.
    pub fn from_text(text: &str, public: &AnyPublicKey) -> Result<(KeyName, Self), KeyFileError> {
        let (file, name, suite) = ShareFile::parse(text)?;
        if suite != public.suite() {
            return Err(file.other_key(public.key_id(), public.suite()));
        }
        let share = match public {
            AnyPublicKey::Sg02Ristretto255(public) => Self::Sg02Ristretto255(Arc::new(file.decode(public)?)),
            AnyPublicKey::Sg02Bls12381(public) => Self::Sg02Bls12381(Arc::new(file.decode(public)?)),
            AnyPublicKey::Bls04MinPk(public) => Self::Bls04MinPk(Arc::new(file.decode(public)?)),
            AnyPublicKey::Bls04MinSig(public) => Self::Bls04MinSig(Arc::new(file.decode(public)?)),
            AnyPublicKey::Cks05Ristretto255(public) => Self::Cks05Ristretto255(Arc::new(file.decode(public)?)),
            AnyPublicKey::Cks05Bls12381(public) => Self::Cks05Bls12381(Arc::new(file.decode(public)?)),
        };
        Ok((name, share))
    }
}

impl fmt::Debug for AnyKeyShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyKeyShare({}, party {}, <redacted>)", self.suite(), self.index())
    }
}

/// Deals a key of any suite with a random secret: the public material and the shares of parties 1 to n.
#[must_use]
pub fn deal_any(suite: Suite, threshold: Threshold, rng: &mut dyn CryptoRng) -> (AnyPublicKey, Vec<AnyKeyShare>) {
    with_suite!(suite, |S, any_public, any_share| {
        let dealt = deal::<S>(threshold, rng);
        (any_public(dealt.public), dealt.shares.into_iter().map(|share| any_share(Arc::new(share))).collect())
    })
}

/// Deals an existing secret key, given in its standard encoding (for BLS keys, 32 bytes big-endian).
///
/// # Errors
/// [`DealError`] if the bytes are not a secret key of the suite.
pub fn import_any(
    suite: Suite,
    threshold: Threshold,
    secret: &Secret<Vec<u8>>,
    rng: &mut dyn CryptoRng,
) -> Result<(AnyPublicKey, Vec<AnyKeyShare>), DealError> {
    with_suite!(suite, |S, any_public, any_share| {
        let secret = Secret::new(Scalar::decode(secret.expose()).map_err(DealError::Secret)?);
        let dealt = deal_secret::<S>(threshold, &secret, rng)?;
        Ok((any_public(dealt.public), dealt.shares.into_iter().map(|share| any_share(Arc::new(share))).collect()))
    })
}

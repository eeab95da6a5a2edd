//! The kinds of keys: on curves, and RSA.

use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::Secret;
use theta_sharing::{ProofOfPossession, ShareIndex, Threshold};

use super::{AnyKeyShare, AnyPublicKey, DealtKey, KeyScheme, Primes};
use crate::keys::{DealError, KeyKind, PartsError, PublicParts, ShareError};
use crate::signatures::sh00::{self, ModulusSize, RsaDealError, RsaKeyShare, RsaPublicKey, RsaScheme};

/// The making of keys of scheme `S`.
pub trait Kind<S: KeyScheme> {
    /// The kind's name.
    const KIND: KeyKind;
    /// Length in bytes of a secret key in its standard encoding; `None` for RSA.
    fn secret_key_len() -> Option<usize>;
    /// A new key.
    fn deal(threshold: Threshold, rng: &mut dyn CryptoRng) -> DealtKey;
    /// A new RSA key.
    ///
    /// # Errors
    /// [`RsaDealError::Suite`] for keys of another kind.
    fn deal_rsa(primes: Primes<'_>, threshold: Threshold, rng: &mut dyn CryptoRng) -> Result<DealtKey, RsaDealError>;
    /// The shares of an existing secret key.
    ///
    /// # Errors
    /// [`DealError`].
    fn import(secret: &Secret<Vec<u8>>, threshold: Threshold, rng: &mut dyn CryptoRng) -> Result<DealtKey, DealError>;
    /// The key from its parts, fully checked.
    ///
    /// # Errors
    /// [`PartsError`].
    fn key(parts: &PublicParts) -> Result<S::PublicKey, PartsError>;
    /// The name of the group that public keys are elements of; `None` for RSA.
    fn key_group() -> Option<&'static str>;
    /// The proof of possession of the scheme's keys, if they have one.
    fn proof_of_possession() -> Option<&'static dyn ProofOfPossession>;
    /// The share with this secret, checked.
    ///
    /// # Errors
    /// [`ShareError`].
    fn share(public: &S::PublicKey, index: ShareIndex, secret: &[u8]) -> Result<S::KeyShare, ShareError>;
}

/// Keys that are Shamir sharings in the exponent of a prime-order group: those of a [`CurveScheme`](crate::keys::CurveScheme).
#[derive(Clone, Copy, Debug)]
pub struct Curve;

/// Shared RSA keys.
#[derive(Clone, Copy, Debug)]
pub struct Rsa;

/// The key and its shares as those of any suite.
pub(crate) fn erased<S: KeyScheme>(public: Arc<S::PublicKey>, shares: Vec<S::KeyShare>) -> DealtKey {
    let shares = shares.into_iter().map(|share| AnyKeyShare::of::<S>(Arc::new(share))).collect();
    (AnyPublicKey::of::<S>(public), shares)
}

impl<S: RsaScheme> Kind<S> for Rsa {
    const KIND: KeyKind = KeyKind::Rsa;

    fn secret_key_len() -> Option<usize> {
        None
    }

    fn deal(threshold: Threshold, rng: &mut dyn CryptoRng) -> DealtKey {
        let dealt = sh00::deal::<S>(ModulusSize::DEFAULT, threshold, &mut |_| (), rng);
        erased::<S>(dealt.public, dealt.shares)
    }

    fn deal_rsa(primes: Primes<'_>, threshold: Threshold, rng: &mut dyn CryptoRng) -> Result<DealtKey, RsaDealError> {
        let dealt = match primes {
            Primes::New(size, progress) => sh00::deal::<S>(size, threshold, progress, rng),
            Primes::Found(primes) => sh00::deal_primes::<S>(primes, threshold, rng),
        };
        Ok(erased::<S>(dealt.public, dealt.shares))
    }

    fn import(
        _secret: &Secret<Vec<u8>>,
        _threshold: Threshold,
        _rng: &mut dyn CryptoRng,
    ) -> Result<DealtKey, DealError> {
        Err(DealError::RsaImport)
    }

    fn key(parts: &PublicParts) -> Result<RsaPublicKey, PartsError> {
        RsaPublicKey::from_parts::<S>(parts)
    }

    fn key_group() -> Option<&'static str> {
        None
    }

    fn proof_of_possession() -> Option<&'static dyn ProofOfPossession> {
        None
    }

    fn share(public: &RsaPublicKey, index: ShareIndex, secret: &[u8]) -> Result<RsaKeyShare, ShareError> {
        RsaKeyShare::from_secret(public, index, secret)
    }
}

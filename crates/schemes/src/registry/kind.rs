//! The kinds of keys: on curves, and RSA.

use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::{Group, Scalar, Secret};
use theta_sharing::{ProofOfPossession, ShareIndex, Threshold};

use super::Primes;
use crate::keys::scheme::{Curve, KeyScheme, Rsa};
use crate::keys::{
    CurveScheme, DealError, KeyKind, KeyShare, PartsError, PublicKeySet, PublicParts, ShareError, deal, deal_secret,
    proof_of_possession,
};
use crate::signatures::sh00::{self, ModulusSize, RsaDealError, RsaKeyShare, RsaPublicKey, RsaScheme};

/// A key fresh from the dealer, in the types of its scheme: its public material, and the shares of parties 1 to n.
pub(crate) type Dealing<S> = (Arc<<S as KeyScheme>::PublicKey>, Vec<<S as KeyScheme>::KeyShare>);

/// The making of keys of scheme `S`.
pub trait Kind<S: KeyScheme> {
    /// The kind's name.
    const KIND: KeyKind;
    /// Length in bytes of a secret key in its standard encoding; `None` for RSA.
    fn secret_key_len() -> Option<usize>;
    /// A new key.
    fn deal(threshold: Threshold, rng: &mut dyn CryptoRng) -> Dealing<S>;
    /// A new RSA key.
    ///
    /// # Errors
    /// [`RsaDealError::Suite`] for keys of another kind.
    fn deal_rsa(primes: Primes<'_>, threshold: Threshold, rng: &mut dyn CryptoRng) -> Result<Dealing<S>, RsaDealError>;
    /// The shares of an existing secret key.
    ///
    /// # Errors
    /// [`DealError`].
    fn import(secret: &Secret<Vec<u8>>, threshold: Threshold, rng: &mut dyn CryptoRng)
    -> Result<Dealing<S>, DealError>;
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

impl<S: CurveScheme> Kind<S> for Curve {
    const KIND: KeyKind = KeyKind::Curve;

    fn secret_key_len() -> Option<usize> {
        Some(<S::KeyGroup as Group>::Scalar::ENCODED_LEN)
    }

    fn deal(threshold: Threshold, rng: &mut dyn CryptoRng) -> Dealing<S> {
        let dealt = deal::<S>(threshold, rng);
        (dealt.public, dealt.shares)
    }

    fn deal_rsa(
        _primes: Primes<'_>,
        _threshold: Threshold,
        _rng: &mut dyn CryptoRng,
    ) -> Result<Dealing<S>, RsaDealError> {
        Err(RsaDealError::Suite(S::SUITE))
    }

    fn import(
        secret: &Secret<Vec<u8>>,
        threshold: Threshold,
        rng: &mut dyn CryptoRng,
    ) -> Result<Dealing<S>, DealError> {
        let secret = Secret::new(Scalar::decode(secret.expose()).map_err(DealError::Secret)?);
        let dealt = deal_secret::<S>(threshold, &secret, rng)?;
        Ok((dealt.public, dealt.shares))
    }

    fn key(parts: &PublicParts) -> Result<S::PublicKey, PartsError> {
        let PublicParts::Curve(key) = parts else { return Err(PartsError::Kind(S::SUITE)) };
        PublicKeySet::from_encoded::<S>(key)
    }

    fn key_group() -> Option<&'static str> {
        Some(S::KeyGroup::NAME)
    }

    fn proof_of_possession() -> Option<&'static dyn ProofOfPossession> {
        proof_of_possession::<S>()
    }

    fn share(public: &S::PublicKey, index: ShareIndex, secret: &[u8]) -> Result<S::KeyShare, ShareError> {
        KeyShare::from_secret(public, index, secret)
    }
}

impl<S: RsaScheme> Kind<S> for Rsa {
    const KIND: KeyKind = KeyKind::Rsa;

    fn secret_key_len() -> Option<usize> {
        None
    }

    fn deal(threshold: Threshold, rng: &mut dyn CryptoRng) -> Dealing<S> {
        let dealt = sh00::deal::<S>(ModulusSize::DEFAULT, threshold, &mut |_| (), rng);
        (dealt.public, dealt.shares)
    }

    fn deal_rsa(primes: Primes<'_>, threshold: Threshold, rng: &mut dyn CryptoRng) -> Result<Dealing<S>, RsaDealError> {
        let dealt = match primes {
            Primes::New(size, progress) => sh00::deal::<S>(size, threshold, progress, rng),
            Primes::Found(primes) => sh00::deal_primes::<S>(primes, threshold, rng),
        };
        Ok((dealt.public, dealt.shares))
    }

    fn import(
        _secret: &Secret<Vec<u8>>,
        _threshold: Threshold,
        _rng: &mut dyn CryptoRng,
    ) -> Result<Dealing<S>, DealError> {
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

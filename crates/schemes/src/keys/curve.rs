//! Keys on curves: what their schemes add to those of all keys, and how they are made.

use rand_core::CryptoRng;
use theta_groups::{Group, Scalar, Secret};
use theta_sharing::{ProofOfPossession, ShareIndex, Threshold};

use super::{
    DealError, KeyGroup, KeyKind, KeyShare, PartsError, PublicKeySet, PublicParts, ShareError, deal, deal_secret,
    proof_of_possession,
};
use crate::registry::{Curve, DealtKey, KeyScheme, Kind, Primes, erased};
use crate::signatures::sh00::RsaDealError;

/// Keys that are Shamir sharings in the exponent of a prime-order group: all but RSA.
pub trait CurveScheme:
    KeyScheme<PublicKey = PublicKeySet<Self::KeyGroup>, KeyShare = KeyShare<Self::KeyGroup>, Kind = Curve>
{
    /// The group of the public key.
    type KeyGroup: KeyGroup;
    /// Whether keys have a proof of possession of their secret.
    const PROVES_POSSESSION: bool = false;

    /// The proof of possession of a secret key, for schemes that have one.
    fn prove_possession(
        _secret: &Secret<<Self::KeyGroup as Group>::Scalar>,
        _public_key: &<Self::KeyGroup as Group>::Element,
    ) -> Option<Vec<u8>> {
        None
    }

    /// Whether the proof is valid, or absent in schemes that have none.
    fn check_proof_of_possession(_public_key: &<Self::KeyGroup as Group>::Element, proof: Option<&[u8]>) -> bool {
        proof.is_none()
    }

    /// Whether `share` is what [`prove_possession`](Self::prove_possession) gives for the group's public key and the key
    /// share of `verification_key`: one party's share of the proof for a key that nobody knows.
    fn check_proof_of_possession_share(
        _public_key: &<Self::KeyGroup as Group>::Element,
        _verification_key: &<Self::KeyGroup as Group>::Element,
        _share: &[u8],
    ) -> bool {
        false
    }

    /// The proof of possession from k parties' shares of it, which are not verified here. `None` if the scheme has no proofs, or
    /// for shares that are no group elements.
    fn combine_proof_of_possession(_shares: &[(ShareIndex, Vec<u8>)]) -> Option<Vec<u8>> {
        None
    }
}

impl<S: CurveScheme> Kind<S> for Curve {
    const KIND: KeyKind = KeyKind::Curve;

    fn secret_key_len() -> Option<usize> {
        Some(<S::KeyGroup as Group>::Scalar::ENCODED_LEN)
    }

    fn deal(threshold: Threshold, rng: &mut dyn CryptoRng) -> DealtKey {
        let dealt = deal::<S>(threshold, rng);
        erased::<S>(dealt.public, dealt.shares)
    }

    fn deal_rsa(
        _primes: Primes<'_>,
        _threshold: Threshold,
        _rng: &mut dyn CryptoRng,
    ) -> Result<DealtKey, RsaDealError> {
        Err(RsaDealError::Suite(S::SUITE))
    }

    fn import(secret: &Secret<Vec<u8>>, threshold: Threshold, rng: &mut dyn CryptoRng) -> Result<DealtKey, DealError> {
        let secret = Secret::new(Scalar::decode(secret.expose()).map_err(DealError::Secret)?);
        let dealt = deal_secret::<S>(threshold, &secret, rng)?;
        Ok(erased::<S>(dealt.public, dealt.shares))
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

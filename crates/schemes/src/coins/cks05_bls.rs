//! The coin of Cachin, Kursawe and Shoup from a unique threshold signature ("Random oracles in Constantinople", J.
//! Cryptology 2005, section 4.3), here BLS: the coin of a name is the SHA-256 of the signature on that name.
//!
//! The signature is the proof, which anyone verifies with the public key alone. It is made with the draft's basic scheme
//! (`NUL`), as drand's beacons are: if the coin's name is a round's digest ([`drand_round`]), the coin and its proof are that
//! round's `randomness` and `signature`. See `spec/cks05.md`.

use core::marker::PhantomData;

use rand_core::CryptoRng;
use sha2::{Digest, Sha256};
use theta_groups::bls12_381::{Bls12_381, G1, G2};
use theta_groups::{DecodeError, Group, Secret};
use theta_sharing::ShareIndex;

use super::from_signature;
use crate::keys::scheme::{Coins, Curve};
use crate::keys::{CurveScheme, KeyScheme, KeyShare, PublicKeySet};
use crate::limits::MAX_COIN_NAME_LEN;
use crate::point_share::PointShare;
use crate::signatures::bls04::{self, Bls04, Form, SignRequest, Signature, forms};
use crate::{CombineError, Purpose, RequestError, Statement, Suite, ThresholdCoin, ThresholdScheme, VerifyError};

forms! {
    /// Keys in G1, signatures in G2: the first drand network (`pedersen-bls-chained`).
    BeaconMinPk = Cks05Bls04MinPk on Bls12_381: keys in G1, signatures in G2, |key, signature| (key, signature),
        b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_NUL_", b"BLS_POP_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

    /// Keys in G2, signatures in G1: drand's quicknet (`bls-unchained-g1-rfc9380`).
    BeaconMinSig = Cks05Bls04MinSig on Bls12_381: keys in G2, signatures in G1, |key, signature| (signature, key),
        b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_", b"BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
}

/// The coin from BLS signatures of one form.
#[derive(Clone, Copy, Debug)]
pub struct Cks05Bls<F>(PhantomData<F>);

/// The message that drand signs in a round: the SHA-256 of the previous round's signature, if the rounds are chained, and of the
/// round's number in eight bytes, big-endian. The coin of this name is that round's randomness.
#[must_use]
pub fn drand_round(round: u64, previous_signature: Option<&[u8]>) -> [u8; 32] {
    Sha256::new()
        .chain_update(previous_signature.unwrap_or_default())
        .chain_update(round.to_be_bytes())
        .finalize()
        .into()
}

/// The public key of a beacon such as drand's, for verification alone.
///
/// Beacons publish the group's key alone: no verification keys of parties, and no proof of possession, without which a
/// [`PublicKeySet`] is refused. Verification needs neither. Proofs of possession prevent rogue keys, which are made of others'
/// keys to cancel these in an *aggregate*; a single key that is trusted by its source cancels nothing. Hence this type verifies
/// one signature at a time, and can neither be added to another key nor make or check shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeaconKey<F: Form>(<F::Keys as Group>::Element);

impl<F: Form> BeaconKey<F> {
    /// Reads a compressed key.
    ///
    /// # Errors
    /// Any [`DecodeError`]: not canonical, outside the prime-order group, or the identity.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        F::Keys::decode(bytes).map(Self)
    }

    /// Checks that `coin` is the coin of `name`, as [`ThresholdCoin::verify`] does: for drand, that `randomness` and
    /// `signature` are those of the round whose name [`drand_round`] gives.
    ///
    /// # Errors
    /// [`VerifyError`] with the reason.
    pub fn verify(&self, name: &[u8], coin: &[u8], proof: &[u8]) -> Result<(), VerifyError> {
        from_signature::check(name, coin, proof)?;
        bls04::verify::<F>(&self.0, name, proof)
    }
}

/// A beacon's public key in either form.
#[derive(Clone, Copy, Debug)]
pub enum AnyBeaconKey {
    /// In G1, with signatures in G2.
    MinPk(BeaconKey<BeaconMinPk>),
    /// In G2, with signatures in G1.
    MinSig(BeaconKey<BeaconMinSig>),
}

impl AnyBeaconKey {
    /// Reads a compressed key, whose length, 48 bytes or 96, tells its form.
    ///
    /// # Errors
    /// As [`BeaconKey::decode`]; [`DecodeError::Length`] for bytes of any other length.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() == <G2 as Group>::ENCODED_LEN {
            return BeaconKey::decode(bytes).map(Self::MinSig);
        }
        BeaconKey::decode(bytes).map(Self::MinPk)
    }

    /// As [`BeaconKey::verify`].
    ///
    /// # Errors
    /// [`VerifyError`] with the reason.
    pub fn verify(&self, name: &[u8], coin: &[u8], proof: &[u8]) -> Result<(), VerifyError> {
        match self {
            Self::MinPk(key) => key.verify(name, coin, proof),
            Self::MinSig(key) => key.verify(name, coin, proof),
        }
    }
}

impl<F: Form> KeyScheme for Cks05Bls<F> {
    type PublicKey = PublicKeySet<F::Keys>;
    type KeyShare = KeyShare<F::Keys>;
    type Kind = Curve;
    type Family = Coins;
    const SUITE: Suite = F::SUITE;
}

impl<F: Form> CurveScheme for Cks05Bls<F> {
    type KeyGroup = F::Keys;
    const PROVES_POSSESSION: bool = true;

    fn prove_possession(
        secret: &Secret<<F::Keys as Group>::Scalar>,
        public_key: &<F::Keys as Group>::Element,
    ) -> Option<Vec<u8>> {
        Bls04::<F>::prove_possession(secret, public_key)
    }

    fn check_proof_of_possession(public_key: &<F::Keys as Group>::Element, proof: Option<&[u8]>) -> bool {
        Bls04::<F>::check_proof_of_possession(public_key, proof)
    }

    fn check_proof_of_possession_share(
        public_key: &<F::Keys as Group>::Element,
        verification_key: &<F::Keys as Group>::Element,
        share: &[u8],
    ) -> bool {
        Bls04::<F>::check_proof_of_possession_share(public_key, verification_key, share)
    }

    fn combine_proof_of_possession(shares: &[(ShareIndex, Vec<u8>)]) -> Option<Vec<u8>> {
        Bls04::<F>::combine_proof_of_possession(shares)
    }
}

impl<F: Form> ThresholdScheme for Cks05Bls<F> {
    type Request = SignRequest<F>;
    type Share = PointShare<F::Signatures>;
    type Output = Signature<F>;

    const CHECKABLE: bool = true;

    fn parse_request(_public: &Self::PublicKey, statement: &Statement<'_>) -> Result<Self::Request, RequestError> {
        Ok(SignRequest::new(statement.for_purpose(Purpose::Coin, "coin name", MAX_COIN_NAME_LEN)?))
    }

    fn create_share(
        public: &Self::PublicKey,
        key: &Self::KeyShare,
        request: &Self::Request,
        rng: &mut dyn CryptoRng,
    ) -> Self::Share {
        Bls04::<F>::create_share(public, key, request, rng)
    }

    fn share_index(share: &Self::Share) -> ShareIndex {
        Bls04::<F>::share_index(share)
    }

    fn encode_share(share: &Self::Share) -> Vec<u8> {
        Bls04::<F>::encode_share(share)
    }

    fn decode_share(index: ShareIndex, bytes: &[u8]) -> Result<Self::Share, DecodeError> {
        Bls04::<F>::decode_share(index, bytes)
    }

    fn verify_shares(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        Bls04::<F>::verify_shares(public, request, shares, rng)
    }

    fn combine(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
    ) -> Result<Self::Output, CombineError> {
        Bls04::<F>::combine(public, request, shares)
    }

    /// The signature, which is the coin's proof.
    fn combined_value(
        _public: &Self::PublicKey,
        _request: &Self::Request,
        _result: &[u8],
        proof: &[u8],
    ) -> Option<Secret<Vec<u8>>> {
        Some(Secret::new(proof.to_vec()))
    }

    fn accept_combined(
        public: &Self::PublicKey,
        request: &Self::Request,
        combined: &[u8],
    ) -> Result<Self::Output, CombineError> {
        Bls04::<F>::accept_combined(public, request, combined)
    }

    const CHECKS_TOGETHER: bool = true;

    fn combine_unchecked(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
        own: ShareIndex,
    ) -> Result<Self::Output, CombineError> {
        Bls04::<F>::combine_unchecked(public, request, shares, own)
    }

    fn accept_unchecked(
        public: &Self::PublicKey,
        request: &Self::Request,
        combined: &[u8],
    ) -> Result<Self::Output, CombineError> {
        Bls04::<F>::accept_unchecked(public, request, combined)
    }

    fn vartime_false_among(
        public: &Self::PublicKey,
        results: &[(&Self::Request, &Self::Output)],
        rng: &mut dyn CryptoRng,
    ) -> Vec<usize> {
        Bls04::<F>::vartime_false_among(public, results, rng)
    }

    fn encode_output(output: &Self::Output) -> (Secret<Vec<u8>>, Vec<u8>) {
        let signature = output.encode();
        (Secret::new(from_signature::value(&signature).to_vec()), signature)
    }
}

impl<F: Form> ThresholdCoin for Cks05Bls<F> {
    fn verify(public: &Self::PublicKey, name: &[u8], coin: &[u8], proof: &[u8]) -> Result<(), VerifyError> {
        BeaconKey::<F>(*public.public_key()).verify(name, coin, proof)
    }
}

//! The coin of Cachin, Kursawe and Shoup from a unique threshold signature ("Random oracles in Constantinople", J.
//! Cryptology 2005, section 4.3), here RSA: the coin of a name is the SHA-256 of the signature on that name.
//!
//! The signature is the proof, which anyone verifies with the public key alone. See `spec/sh00.md`.

use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Secret};
use theta_sharing::ShareIndex;

use super::from_signature;
use crate::keys::KeyScheme;
use crate::keys::scheme::{Coins, Rsa};
use crate::limits::MAX_COIN_NAME_LEN;
use crate::signatures::sh00::{self, Pkcs1Sha256, RsaKeyShare, RsaPublicKey, RsaRequest, RsaShare, RsaSignature};
use crate::{
    CombineError, PendingShare, Purpose, RequestError, Statement, Suite, ThresholdCoin, ThresholdScheme, VerifyError,
};

/// The beginning of the signed message, before the coin's name.
const NAME_TAG: &[u8] = b"theta/cks05-sh00/name/v1/";

/// The coin from threshold RSA signatures of PKCS#1 v1.5 with SHA-256. PSS cannot serve, because a message must have only one
/// valid signature.
#[derive(Clone, Copy, Debug)]
pub struct Cks05Sh00;

/// The message whose signature makes the coin.
fn signed_message(name: &[u8]) -> Vec<u8> {
    [NAME_TAG, name].concat()
}

impl KeyScheme for Cks05Sh00 {
    type PublicKey = RsaPublicKey;
    type KeyShare = RsaKeyShare;
    type Kind = Rsa;
    type Family = Coins;
    const SUITE: Suite = Suite::Cks05Sh00;
}

impl ThresholdScheme for Cks05Sh00 {
    type Request = RsaRequest;
    type Share = RsaShare;
    type Output = RsaSignature;

    const CHECKABLE: bool = true;
    const HAS_BARE_SHARES: bool = true;

    fn parse_request(public: &RsaPublicKey, statement: &Statement<'_>) -> Result<RsaRequest, RequestError> {
        let name = statement.for_purpose(Purpose::Coin, "coin name", MAX_COIN_NAME_LEN)?;
        RsaRequest::new::<Pkcs1Sha256>(public, &signed_message(name))
    }

    fn pending_share(
        public: &Arc<RsaPublicKey>,
        key: &Arc<RsaKeyShare>,
        request: &RsaRequest,
    ) -> Option<Box<dyn PendingShare>> {
        sh00::pending(public, key, request)
    }

    fn create_share(
        public: &RsaPublicKey,
        key: &RsaKeyShare,
        request: &RsaRequest,
        rng: &mut dyn CryptoRng,
    ) -> RsaShare {
        sh00::create_proven(public, key, request, rng)
    }

    fn create_bare_share(
        public: &RsaPublicKey,
        key: &RsaKeyShare,
        request: &RsaRequest,
        _rng: &mut dyn CryptoRng,
    ) -> RsaShare {
        sh00::create_bare(public, key, request)
    }

    fn is_proven(share: &RsaShare) -> bool {
        share.is_proven()
    }

    fn share_index(share: &RsaShare) -> ShareIndex {
        share.index()
    }

    fn encode_share(share: &RsaShare) -> Vec<u8> {
        share.encode()
    }

    fn decode_share(index: ShareIndex, bytes: &[u8]) -> Result<RsaShare, DecodeError> {
        sh00::decode(index, bytes)
    }

    fn check_share(public: &RsaPublicKey, share: &RsaShare) -> Result<(), DecodeError> {
        sh00::check(public, share)
    }

    fn verify_shares(
        public: &RsaPublicKey,
        request: &RsaRequest,
        shares: &[RsaShare],
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        sh00::false_among(public, request, shares, rng)
    }

    fn vartime_off_polynomial(
        public: &RsaPublicKey,
        verified: &[RsaShare],
        others: &[RsaShare],
        _rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        sh00::vartime_off_polynomial(public, verified, others)
    }

    fn combine(public: &RsaPublicKey, request: &RsaRequest, shares: &[RsaShare]) -> Result<RsaSignature, CombineError> {
        sh00::combine(public, request, shares)
    }

    fn combined_value(
        _public: &RsaPublicKey,
        _request: &RsaRequest,
        _result: &[u8],
        proof: &[u8],
    ) -> Option<Secret<Vec<u8>>> {
        Some(Secret::new(proof.to_vec()))
    }

    fn accept_combined(
        public: &RsaPublicKey,
        request: &RsaRequest,
        combined: &[u8],
    ) -> Result<RsaSignature, CombineError> {
        sh00::accept(public, request, combined)
    }

    fn encode_output(output: &RsaSignature) -> (Secret<Vec<u8>>, Vec<u8>) {
        (Secret::new(from_signature::value(output.bytes()).to_vec()), output.bytes().to_vec())
    }
}

impl ThresholdCoin for Cks05Sh00 {
    fn verify(public: &RsaPublicKey, name: &[u8], coin: &[u8], proof: &[u8]) -> Result<(), VerifyError> {
        from_signature::check(name, coin, proof)?;
        sh00::verify::<Pkcs1Sha256>(public, &signed_message(name), proof)
    }
}

//! SH00 as a one-round scheme.

use core::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use rand_core::CryptoRng;
use theta_groups::modular::Residue;
use theta_groups::{DecodeError, Secret};
use theta_sharing::ShareIndex;

use super::{Encoding, RsaKeyShare, RsaPublicKey, RsaShare, combine, share};
use crate::keys::KeyScheme;
use crate::keys::scheme::{Rsa, Signatures};
use crate::limits::MAX_MESSAGE_LEN;
use crate::{
    CombineError, MessageDigest, PendingShare, Purpose, RequestError, SignatureScheme, Statement, Suite,
    ThresholdScheme, VerifyError,
};

/// Schemes whose keys are shared RSA keys.
pub trait RsaScheme: KeyScheme<PublicKey = RsaPublicKey, KeyShare = RsaKeyShare> {}

impl<S: KeyScheme<PublicKey = RsaPublicKey, KeyShare = RsaKeyShare>> RsaScheme for S {}

/// The scheme with one encoding of messages.
#[derive(Clone, Copy, Debug)]
pub struct Sh00<E>(PhantomData<E>);

/// A message to sign: its encoding x, modulo N, and the powers of x that shares and proofs are made of.
///
/// Encodings are below N. An encoding with a factor in common with N would factor N, so nobody can find such a message.
#[derive(Clone, Debug)]
pub struct RsaRequest {
    message: Residue,
    square: Residue,
    fourth_power: Residue,
    /// x_i of party i, which answers, once it has been made together with another.
    made: Arc<OnceLock<(ShareIndex, Residue)>>,
}

impl RsaRequest {
    /// Encodes a message for a key.
    pub(crate) fn new<E: Encoding>(public: &RsaPublicKey, message: &[u8]) -> Result<Self, RequestError> {
        Self::of_digest::<E>(public, &E::digest(message))
    }

    /// The same for the message with this digest.
    pub(crate) fn of_digest<E: Encoding>(public: &RsaPublicKey, digest: &[u8]) -> Result<Self, RequestError> {
        E::DIGEST.check_len(digest)?;
        let got = digest.len();
        let modulus = public.modulus();
        // The shortest modulus has room for the longest encoding.
        let encoded = E::encode_digest(public.key_id(), digest, modulus.encoded_len())
            .and_then(|encoded| modulus.decode(&encoded).ok())
            .ok_or(RequestError::TooLarge { what: "encoded digest", limit: modulus.encoded_len(), got })?;
        let square = modulus.square(&encoded);
        Ok(Self { fourth_power: modulus.square(&square), square, message: encoded, made: Arc::default() })
    }

    /// x.
    pub(super) const fn message(&self) -> &Residue {
        &self.message
    }

    /// x^2.
    pub(super) const fn square(&self) -> &Residue {
        &self.square
    }

    /// Where x_i of party i, which answers, is put when it is made together with another.
    pub(super) fn made(&self) -> &OnceLock<(ShareIndex, Residue)> {
        &self.made
    }

    /// x^4, the paper's x~ without its Delta, which is in the key shares here.
    pub(super) const fn fourth_power(&self) -> &Residue {
        &self.fourth_power
    }
}

/// A signature as RFC 8017 encodes it: as long as N.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RsaSignature(Vec<u8>);

impl RsaSignature {
    pub(super) const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Verifies a signature as any RSA verifier does (RFC 8017, sections 8.1.2 and 8.2.2).
pub(crate) fn verify<E: Encoding>(public: &RsaPublicKey, message: &[u8], signature: &[u8]) -> Result<(), VerifyError> {
    verify_digest::<E>(public, &E::digest(message), signature)
}

/// The same of the message with this digest.
fn verify_digest<E: Encoding>(public: &RsaPublicKey, digest: &[u8], signature: &[u8]) -> Result<(), VerifyError> {
    let modulus = public.modulus();
    let encoded = modulus.encode(&combine::opens_to(public, &modulus.decode(signature)?));
    if digest.len() == E::DIGEST.output_len() && E::accepts_digest(public.key_id(), digest, &encoded) {
        Ok(())
    } else {
        Err(VerifyError::Invalid)
    }
}

impl<E: Encoding> KeyScheme for Sh00<E> {
    type PublicKey = RsaPublicKey;
    type KeyShare = RsaKeyShare;
    type Kind = Rsa;
    type Family = Signatures;
    const SUITE: Suite = E::SUITE;
}

impl<E: Encoding> ThresholdScheme for Sh00<E> {
    type Request = RsaRequest;
    type Share = RsaShare;
    type Output = RsaSignature;

    const CHECKABLE: bool = true;
    const HAS_BARE_SHARES: bool = true;

    fn parse_request(public: &RsaPublicKey, statement: &Statement<'_>) -> Result<RsaRequest, RequestError> {
        match statement {
            Statement::SignDigest(digest) => RsaRequest::of_digest::<E>(public, digest),
            _ => RsaRequest::new::<E>(public, statement.for_purpose(Purpose::Sign, "message", MAX_MESSAGE_LEN)?),
        }
    }

    fn pending_share(
        public: &Arc<RsaPublicKey>,
        key: &Arc<RsaKeyShare>,
        request: &RsaRequest,
    ) -> Option<Box<dyn PendingShare>> {
        share::pending(public, key, request)
    }

    fn create_share(
        public: &RsaPublicKey,
        key: &RsaKeyShare,
        request: &RsaRequest,
        rng: &mut dyn CryptoRng,
    ) -> RsaShare {
        share::create_proven(public, key, request, rng)
    }

    fn create_bare_share(
        public: &RsaPublicKey,
        key: &RsaKeyShare,
        request: &RsaRequest,
        _rng: &mut dyn CryptoRng,
    ) -> RsaShare {
        share::create_bare(public, key, request)
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
        share::decode(index, bytes)
    }

    fn check_share(public: &RsaPublicKey, share: &RsaShare) -> Result<(), DecodeError> {
        share::check(public, share)
    }

    fn verify_shares(
        public: &RsaPublicKey,
        request: &RsaRequest,
        shares: &[RsaShare],
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        share::false_among(public, request, shares, rng)
    }

    fn vartime_off_polynomial(
        public: &RsaPublicKey,
        verified: &[RsaShare],
        others: &[RsaShare],
        _rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        share::vartime_off_polynomial(public, verified, others)
    }

    fn combine(public: &RsaPublicKey, request: &RsaRequest, shares: &[RsaShare]) -> Result<RsaSignature, CombineError> {
        combine::combine(public, request, shares)
    }

    fn combined_value(
        _public: &RsaPublicKey,
        _request: &RsaRequest,
        result: &[u8],
        _proof: &[u8],
    ) -> Option<Secret<Vec<u8>>> {
        Some(Secret::new(result.to_vec()))
    }

    fn accept_combined(
        public: &RsaPublicKey,
        request: &RsaRequest,
        combined: &[u8],
    ) -> Result<RsaSignature, CombineError> {
        combine::accept(public, request, combined)
    }

    fn encode_output(output: &RsaSignature) -> (Secret<Vec<u8>>, Vec<u8>) {
        (Secret::new(output.0.clone()), Vec::new())
    }
}

impl<E: Encoding> SignatureScheme for Sh00<E> {
    fn verify(public: &RsaPublicKey, message: &[u8], signature: &[u8]) -> Result<(), VerifyError> {
        verify::<E>(public, message, signature)
    }

    const DIGEST: Option<MessageDigest> = Some(E::DIGEST);

    fn verify_digest(public: &RsaPublicKey, digest: &[u8], signature: &[u8]) -> Result<(), VerifyError> {
        verify_digest::<E>(public, digest, signature)
    }
}

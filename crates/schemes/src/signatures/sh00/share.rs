//! Shares of RSA signatures.

use rand_core::CryptoRng;
use theta_groups::DecodeError;
use theta_sharing::ShareIndex;

use super::proof::{Claim, Proof, RESPONSE_EXCESS, find_false};
use super::{MODULUS_BITS, RsaKeyShare, RsaPublicKey, RsaRequest, TEST_MODULUS_BITS};
use crate::keys::SecretMaterial as _;

/// One party's x_i = x^(2 s_i), bare or with a proof. Whether its numbers are below N is checked when the share is used.
#[derive(Clone, Debug)]
pub struct RsaShare {
    index: ShareIndex,
    value: Vec<u8>,
    proof: Option<Proof>,
}

impl RsaShare {
    /// Whose share this is.
    #[must_use]
    pub const fn index(&self) -> ShareIndex {
        self.index
    }

    /// Whether it carries a proof.
    #[must_use]
    pub const fn is_proven(&self) -> bool {
        self.proof.is_some()
    }

    /// x_i, big-endian.
    pub(super) fn value(&self) -> &[u8] {
        &self.value
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.value.clone();
        if let Some(proof) = &self.proof {
            out.extend_from_slice(&proof.commitment_base);
            out.extend_from_slice(&proof.commitment_message);
            out.extend_from_slice(&proof.response);
        }
        out
    }
}

/// Makes a bare share by one exponentiation with an exponent of N's size.
pub(crate) fn create_bare(public: &RsaPublicKey, key: &RsaKeyShare, request: &RsaRequest) -> RsaShare {
    let modulus = public.modulus();
    let value = modulus.encode(&modulus.pow(request.square(), key.secret().expose()));
    RsaShare { index: key.index(), value, proof: None }
}

/// A share that [`false_among`] can check.
pub(crate) fn create_proven(
    public: &RsaPublicKey,
    key: &RsaKeyShare,
    request: &RsaRequest,
    rng: &mut dyn CryptoRng,
) -> RsaShare {
    let bare = create_bare(public, key, request);
    let proof = Proof::create(public, key, request, bare.index, &bare.value, rng);
    RsaShare { proof: Some(proof), ..bare }
}

/// Reads a share. Its length tells whether there is a proof: no bare share is as long as a proven one of another size of modulus.
/// Refuses values that are invalid for every modulus: x_i or a commitment that is zero or has all bits set.
pub(crate) fn decode(index: ShareIndex, bytes: &[u8]) -> Result<RsaShare, DecodeError> {
    let mut sizes = MODULUS_BITS.iter().chain([&TEST_MODULUS_BITS]).filter_map(|bits| usize::try_from(bits / 8).ok());
    let len = sizes
        .find(|len| bytes.len() == *len || bytes.len() == 4 * len + RESPONSE_EXCESS)
        .ok_or(DecodeError::Length { expected: 256, got: bytes.len() })?;
    let number = |part: &[u8]| {
        let possible = part.iter().any(|byte| *byte != 0) && part.iter().any(|byte| *byte != 0xff);
        if possible { Ok(part.to_vec()) } else { Err(DecodeError::NotCanonical) }
    };
    let (value, rest) = bytes.split_at_checked(len).ok_or(DecodeError::NotCanonical)?;
    let value = number(value)?;
    if rest.is_empty() {
        return Ok(RsaShare { index, value, proof: None });
    }
    let (base, rest) = rest.split_at_checked(len).ok_or(DecodeError::NotCanonical)?;
    let (message, response) = rest.split_at_checked(len).ok_or(DecodeError::NotCanonical)?;
    let proof =
        Proof { commitment_base: number(base)?, commitment_message: number(message)?, response: response.to_vec() };
    Ok(RsaShare { index, value, proof: Some(proof) })
}

/// The parties whose shares are false or bare.
pub(crate) fn false_among(
    public: &RsaPublicKey,
    request: &RsaRequest,
    shares: &[RsaShare],
    rng: &mut dyn CryptoRng,
) -> Vec<ShareIndex> {
    let mut culprits = Vec::new();
    let mut claims = Vec::with_capacity(shares.len());
    for share in shares {
        let claim =
            share.proof.as_ref().and_then(|proof| Claim::new(public, request, share.index, &share.value, proof));
        match claim {
            Some(claim) => claims.push(claim),
            None => culprits.push(share.index),
        }
    }
    find_false(public, request, &claims, rng, &mut culprits);
    culprits
}

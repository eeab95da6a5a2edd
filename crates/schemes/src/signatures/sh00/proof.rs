//! Proofs that a share is right: equality of discrete logarithms modulo N (section 2.2 of the paper).

use rand_core::CryptoRng;
use theta_groups::modular::{Integer, Residue};
use theta_groups::{Secret, Transcript};
use theta_sharing::ShareIndex;

use super::{RsaKeyShare, RsaPublicKey, RsaRequest};

/// Bytes of a challenge, the paper's L_1 = 128 bits.
const CHALLENGE_LEN: usize = 16;
/// By how many bytes a response is longer than N: 16 for the challenge, and 16 to hide the secret.
pub(super) const RESPONSE_EXCESS: usize = 2 * CHALLENGE_LEN;

/// A proof that log_v v_i = log_(x^4) x_i^2. Unlike in the paper, it has the commitments v' = v^r and x' = x^(4 r) instead of the
/// challenge, so that many proofs can be verified at once.
#[derive(Clone, Debug)]
pub(super) struct Proof {
    pub(super) commitment_base: Vec<u8>,
    pub(super) commitment_message: Vec<u8>,
    /// r + s_i c, in [`RESPONSE_EXCESS`] bytes more than N.
    pub(super) response: Vec<u8>,
}

/// The first 128 bits of a hash over everything that the proof is about.
fn challenge(
    public: &RsaPublicKey,
    request: &RsaRequest,
    index: ShareIndex,
    value: &[u8],
    proof: [&[u8]; 2],
) -> Integer {
    let modulus = public.modulus();
    let own_key = public.verification_key(index).map(|key| modulus.encode(key)).unwrap_or_default();
    let [commitment_base, commitment_message] = proof;
    let hash = Transcript::new("theta/sh00/proof/v1")
        .with("key id", public.key_id().as_bytes())
        .with("index", &index.get().to_le_bytes())
        .with("verification base", &modulus.encode(public.verification_base()))
        .with("verification key", &own_key)
        .with("message", &modulus.encode(request.message()))
        .with("share", value)
        .with("commitment to the base", commitment_base)
        .with("commitment to the message", commitment_message)
        .finish();
    Integer::from_be_bytes(hash.split_at(CHALLENGE_LEN).0)
}

impl Proof {
    /// Proves that `value` is x_i. Constant-time in the secret and the nonce.
    pub(super) fn create(
        public: &RsaPublicKey,
        key: &RsaKeyShare,
        request: &RsaRequest,
        index: ShareIndex,
        value: &[u8],
        rng: &mut dyn CryptoRng,
    ) -> Self {
        let modulus = public.modulus();
        let len = modulus.encoded_len() + RESPONSE_EXCESS;
        let secret = Secret::new(Integer::from_be_bytes(key.secret().expose()));
        loop {
            let mut nonce = Secret::new(vec![0; len]);
            rng.fill_bytes(nonce.expose_mut());
            let commitment_base = modulus.encode(&modulus.pow(public.verification_base(), nonce.expose()));
            let commitment_message = modulus.encode(&modulus.pow(request.fourth_power(), nonce.expose()));
            let challenge = challenge(public, request, index, value, [&commitment_base, &commitment_message]);
            let masked = Secret::new(secret.expose().mul(&challenge));
            let nonce = Secret::new(Integer::from_be_bytes(nonce.expose()));
            // The response does not fit with probability 2^-130; then another nonce is drawn.
            if let Some(response) = nonce.expose().add(masked.expose()).to_be_bytes(len) {
                return Self { commitment_base, commitment_message, response };
            }
        }
    }
}

/// A share with all values of its equations, which are in range.
pub(super) struct Claim<'a> {
    pub(super) index: ShareIndex,
    key: &'a Residue,
    value: Residue,
    commitment_base: Residue,
    commitment_message: Residue,
    response: Integer,
    challenge: Integer,
}

impl<'a> Claim<'a> {
    /// `None` if the party does not exist or a number is out of range: the share is false.
    pub(super) fn new(
        public: &'a RsaPublicKey,
        request: &RsaRequest,
        index: ShareIndex,
        value: &[u8],
        proof: &Proof,
    ) -> Option<Self> {
        let modulus = public.modulus();
        if proof.response.len() != modulus.encoded_len() + RESPONSE_EXCESS {
            return None;
        }
        Some(Self {
            index,
            key: public.verification_key(index)?,
            value: modulus.decode(value).ok()?,
            commitment_base: modulus.decode(&proof.commitment_base).ok()?,
            commitment_message: modulus.decode(&proof.commitment_message).ok()?,
            response: Integer::from_be_bytes(&proof.response),
            challenge: challenge(public, request, index, value, [&proof.commitment_base, &proof.commitment_message]),
        })
    }
}

/// Checks claims together and, where that fails, in halves, down to the false ones.
pub(super) fn find_false(
    public: &RsaPublicKey,
    request: &RsaRequest,
    claims: &[Claim<'_>],
    rng: &mut dyn CryptoRng,
    culprits: &mut Vec<ShareIndex>,
) {
    if claims.is_empty() || vartime_all_hold(public, request, claims, rng) {
        return;
    }
    if let [claim] = claims {
        culprits.push(claim.index);
        return;
    }
    let (left, right) = claims.split_at(claims.len() / 2);
    find_false(public, request, left, rng, culprits);
    find_false(public, request, right, rng, culprits);
}

/// Whether, for all claims, v^z = v' v_i^c and x^(4 z) = x' x_i^(2 c) up to signs: one product for all, each equation with
/// a random weight of 128 bits, both sides squared.
///
/// The squares are a cyclic group of order p' q', so errors cancel with probability 2^-128 only. Squaring both sides loses nothing,
/// because v_i and x_i^2 are squares and squaring is one-to-one on squares. The left side is coprime to N, so all factors on the
/// right are, too, unless a weight or a challenge is zero.
fn vartime_all_hold(
    public: &RsaPublicKey,
    request: &RsaRequest,
    claims: &[Claim<'_>],
    rng: &mut dyn CryptoRng,
) -> bool {
    let mut weight = || {
        let mut bytes = [0; 16];
        rng.fill_bytes(&mut bytes);
        Integer::from_be_bytes(&bytes)
    };
    let (mut sum_base, mut sum_message) = (Integer::from_u64(0), Integer::from_u64(0));
    let mut exponents = Vec::with_capacity(claims.len());
    for claim in claims {
        let (base, message) = (weight(), weight());
        sum_base.add_assign(&base.mul(&claim.response));
        sum_message.add_assign(&message.mul(&claim.response));
        let on_key = base.mul(&claim.challenge);
        let mut on_value = message.mul(&claim.challenge);
        on_value.mul_u64(2);
        exponents.push([base, on_key, message, on_value]);
    }
    let right: Vec<_> = claims
        .iter()
        .zip(&exponents)
        .flat_map(|(claim, [base, on_key, message, on_value])| {
            [
                (&claim.commitment_base, base),
                (claim.key, on_key),
                (&claim.commitment_message, message),
                (&claim.value, on_value),
            ]
        })
        .collect();
    let modulus = public.modulus();
    let left = [(public.verification_base(), &sum_base), (request.fourth_power(), &sum_message)];
    let square = |factors: &[(&Residue, &Integer)]| modulus.square(&modulus.vartime_product(factors));
    square(&left) == square(&right)
}

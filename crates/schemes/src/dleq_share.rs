//! The share of every Diffie-Hellman scheme: a power of a public base, with the proof that it is the right power.

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Group, Transcript};
use theta_sharing::dleq::{self, Bases, DleqClaim, DleqProof};
use theta_sharing::{Encoded, ShareIndex, vartime_interpolate_at_zero};

use crate::keys::{KeyShare, PublicKeySet};
use crate::{CombineError, selection};

/// One party's `base * x_i` with a Chaum-Pedersen proof that it has the exponent of the verification key h_i.
///
/// The encoding is the point, then the proof. The point's subgroup membership is checked when the share is verified:
/// see [`Group::decode_unchecked_subgroup`].
#[derive(Clone, Debug)]
pub struct DleqShare<G: Group> {
    index: ShareIndex,
    image: Encoded<G>,
    proof: DleqProof<G>,
}

impl<G: Group> DleqShare<G> {
    /// Length of the encoding in bytes.
    pub const ENCODED_LEN: usize = G::ENCODED_LEN + DleqProof::<G>::encoded_len();

    /// Whose share this is.
    #[must_use]
    pub const fn index(&self) -> ShareIndex {
        self.index
    }

    pub(crate) fn create(
        public: &PublicKeySet<G>,
        key: &KeyShare<G>,
        bases: &Bases<G>,
        context: &Transcript,
        rng: &mut dyn CryptoRng,
    ) -> Self {
        let image = Encoded::new(*bases.base().element() * *key.secret().expose());
        let own_key = match public.verification_key(key.index()) {
            Some(verification_key) => *verification_key,
            // A share of a foreign key: the proof will fail at the others, which is what it should do.
            None => Encoded::new(G::mul_base(key.secret().expose())),
        };
        let proof = dleq::prove(context, key.secret(), bases, &own_key, &image, rng);
        Self { index: key.index(), image, proof }
    }

    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.image.bytes());
        self.proof.encode_into(out);
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::ENCODED_LEN);
        self.encode_into(&mut out);
        out
    }

    pub(crate) fn decode(index: ShareIndex, bytes: &[u8]) -> Result<Self, DecodeError> {
        let (image, proof) = bytes
            .split_at_checked(G::ENCODED_LEN)
            .filter(|_| bytes.len() == Self::ENCODED_LEN)
            .ok_or(DecodeError::Length { expected: Self::ENCODED_LEN, got: bytes.len() })?;
        Ok(Self { index, image: Encoded::decode_unchecked_subgroup(image)?, proof: DleqProof::decode(proof)? })
    }

    /// The parties whose shares are false.
    pub(crate) fn false_among(
        public: &PublicKeySet<G>,
        bases: &Bases<G>,
        context: &Transcript,
        shares: &[Self],
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        let mut culprits = Vec::new();
        let mut claims = Vec::with_capacity(shares.len());
        let mut claimants = Vec::with_capacity(shares.len());
        for share in shares {
            match public.verification_key(share.index) {
                Some(key) if G::is_in_subgroup(share.image.element()) => {
                    claims.push(DleqClaim { image_g: *key, image: share.image, proof: &share.proof, context });
                    claimants.push(share.index);
                }
                _ => culprits.push(share.index),
            }
        }
        let false_claims = match claims.as_slice() {
            // Alone, a claim is cheaper to check without decoding its commitments.
            [claim] if dleq::vartime_verify(bases, claim) => Vec::new(),
            [_] => vec![0],
            _ => dleq::vartime_verify_batch(bases, &claims, rng),
        };
        culprits.extend(false_claims.into_iter().filter_map(|position| claimants.get(position)));
        culprits
    }

    /// `base * x` from the first k shares, whose truth is not checked here.
    pub(crate) fn interpolate(public: &PublicKeySet<G>, shares: &[Self]) -> Result<G::Element, CombineError> {
        let chosen = selection::first_k(public.threshold(), shares, Self::index)?;
        let points: Vec<_> = chosen.iter().map(|share| (share.index, *share.image.element())).collect();
        vartime_interpolate_at_zero::<G>(&points).map_err(|error| selection::interpolation_error(&error))
    }
}

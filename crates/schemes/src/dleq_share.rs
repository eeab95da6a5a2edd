//! The share of Diffie-Hellman schemes: a multiple of a public base, with the proof that it is the right one.

use std::collections::BTreeSet;

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Group, Scalar, Transcript};
use theta_sharing::dleq::{self, Bases, ClaimSet, DleqClaim, DleqProof};
use theta_sharing::{Encoded, InterpolationSet, ShareIndex, Threshold};

use crate::bisection::{find_false, random_weight};
use crate::keys::{KeyShare, PublicKeySet};
use crate::{CombineError, selection};

/// One party's `base * x_i`, bare or with a Chaum-Pedersen proof that x_i is the logarithm of the verification key h_i.
///
/// The encoding is the point, then the proof if there is one. The point's subgroup membership is checked when the share
/// is verified: see [`Group::decode_unchecked_subgroup`].
#[derive(Clone, Debug)]
pub struct DleqShare<G: Group> {
    index: ShareIndex,
    image: Encoded<G>,
    proof: Option<DleqProof<G>>,
}

impl<G: Group> DleqShare<G> {
    /// Length of the encoding of a proven share in bytes.
    pub const ENCODED_LEN: usize = G::ENCODED_LEN + DleqProof::<G>::encoded_len();

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

    /// A bare share; costs one multiplication.
    pub(crate) fn create_bare(key: &KeyShare<G>, bases: &Bases<G>) -> Self {
        let image = Encoded::new(*bases.base().element() * *key.secret().expose());
        Self { index: key.index(), image, proof: None }
    }

    /// A share that [`DleqShare::false_among`] can check.
    pub(crate) fn create_proven(
        public: &PublicKeySet<G>,
        key: &KeyShare<G>,
        bases: &Bases<G>,
        context: &Transcript,
        rng: &mut dyn CryptoRng,
    ) -> Self {
        let bare = Self::create_bare(key, bases);
        let own_key = match public.verification_key(key.index()) {
            Some(verification_key) => *verification_key,
            // The key share is of another key: the proof will fail at the other parties, as it should.
            None => Encoded::new(G::mul_base(key.secret().expose())),
        };
        let proof = dleq::prove(context, key.secret(), bases, &own_key, &bare.image, rng);
        Self { proof: Some(proof), ..bare }
    }

    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.image.bytes());
        if let Some(proof) = &self.proof {
            proof.encode_into(out);
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::ENCODED_LEN);
        self.encode_into(&mut out);
        out
    }

    /// Reads a share; its length tells whether there is a proof.
    pub(crate) fn decode(index: ShareIndex, bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() == G::ENCODED_LEN {
            return Ok(Self { index, image: Encoded::decode_unchecked_subgroup(bytes)?, proof: None });
        }
        Self::decode_proven(index, bytes)
    }

    /// Reads a proven share, for schemes that have no bare ones.
    pub(crate) fn decode_proven(index: ShareIndex, bytes: &[u8]) -> Result<Self, DecodeError> {
        let (image, proof) = bytes
            .split_at_checked(G::ENCODED_LEN)
            .filter(|_| bytes.len() == Self::ENCODED_LEN)
            .ok_or(DecodeError::Length { expected: Self::ENCODED_LEN, got: bytes.len() })?;
        Ok(Self { index, image: Encoded::decode_unchecked_subgroup(image)?, proof: Some(DleqProof::decode(proof)?) })
    }

    /// What the share claims and is to be verified; `None` if it is false or bare.
    fn claim<'a>(&'a self, public: &PublicKeySet<G>, context: &'a Transcript) -> Option<DleqClaim<'a, G>> {
        let (key, proof) = (public.verification_key(self.index)?, self.proof.as_ref()?);
        let in_subgroup = G::is_in_subgroup(self.image.element());
        in_subgroup.then_some(DleqClaim { image_g: *key, image: self.image, proof, context })
    }

    /// The parties whose shares are false or bare.
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
            match share.claim(public, context) {
                Some(claim) => {
                    claims.push(claim);
                    claimants.push(share.index);
                }
                None => culprits.push(share.index),
            }
        }
        let false_claims = match claims.as_slice() {
            // A single claim is cheaper to check without decoding its commitments.
            [claim] if dleq::vartime_verify(bases, claim) => Vec::new(),
            [_] => vec![0],
            _ => dleq::vartime_verify_batch(bases, &claims, rng),
        };
        culprits.extend(false_claims.into_iter().filter_map(|position| claimants.get(position)));
        culprits
    }

    /// The parties of `others` whose images are not what the first k of `verified` determine. An honest one's is: all key shares are values of one
    /// polynomial of degree k - 1, and a group element has one encoding.
    ///
    /// The differences of order k of such a polynomial are zero: with w_i = 1 / prod over m != i of (x_i - x_m), the sum of all w_i v_i over k verified
    /// images and one other is the identity. All these sums are added with random 128-bit weights and halved where that is not the identity. Even
    /// weights would hide components of order two, so that membership in the subgroup is checked before.
    pub(crate) fn vartime_off_polynomial(
        threshold: Threshold,
        verified: &[Self],
        others: &[Self],
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        let Some(known) = verified.get(..usize::from(threshold.k())) else { return Vec::new() };
        let mut culprits = Vec::new();
        let mut batch = Vec::with_capacity(others.len());
        for other in others {
            let indices: Vec<ShareIndex> = known.iter().chain([other]).map(Self::index).collect();
            // One party's second share would say nothing about the polynomial.
            let Ok(set) = InterpolationSet::new(indices.clone()) else { continue };
            if !G::is_in_subgroup(other.image.element()) {
                culprits.push(other.index);
                continue;
            }
            // The coefficients at zero are prod over m of x_m, times w_i / x_i.
            let weight = G::Scalar::from_u128(random_weight(rng));
            let scaled = |(coefficient, index): (G::Scalar, ShareIndex)| {
                weight * coefficient * G::Scalar::from_u64(u64::from(index.get()))
            };
            let coefficients = set.coefficients_at_zero::<G::Scalar>().into_iter().zip(indices).map(scaled);
            batch.push((other, coefficients.collect::<Vec<_>>()));
        }
        let holds = |batch: &[(&Self, Vec<G::Scalar>)]| {
            let mut scalars = vec![G::Scalar::ZERO; known.len()];
            for (_, coefficients) in batch {
                scalars.iter_mut().zip(coefficients).for_each(|(sum, coefficient)| *sum += *coefficient);
            }
            scalars.extend(batch.iter().filter_map(|(_, coefficients)| coefficients.last()));
            let shares = known.iter().chain(batch.iter().map(|(other, _)| *other));
            let images: Vec<_> = shares.map(|share| *share.image.element()).collect();
            G::is_identity(&G::vartime_msm(&scalars, &images))
        };
        find_false(&batch, &holds, &mut |(other, _)| culprits.push(other.index));
        culprits
    }

    /// `base * x` from the first k shares, which are not verified here.
    pub(crate) fn interpolate(public: &PublicKeySet<G>, shares: &[Self]) -> Result<G::Element, CombineError> {
        selection::vartime_interpolate::<G, _>(public.threshold(), shares, Self::index, |share| *share.image.element())
    }
}

/// Shares in the answer to one request.
pub(crate) struct ProvenShares<'a, G: Group> {
    pub(crate) bases: &'a Bases<G>,
    pub(crate) context: &'a Transcript,
    pub(crate) shares: Vec<&'a DleqShare<G>>,
}

/// The places of the sets of which a share is false or bare, each set in the answer to another request, in order. All are verified in
/// one sum, which takes less than each set in its own ([`dleq::vartime_false_among`]); a single proof is verified in less alone.
pub(crate) fn false_sets<G: Group>(
    public: &PublicKeySet<G>,
    sets: &[ProvenShares<'_, G>],
    rng: &mut dyn CryptoRng,
) -> Vec<usize> {
    let claims: Vec<Option<Vec<DleqClaim<'_, G>>>> = sets
        .iter()
        .map(|ProvenShares { context, shares, .. }| shares.iter().map(|share| share.claim(public, context)).collect())
        .collect();
    let mut culprits: BTreeSet<usize> =
        claims.iter().enumerate().filter(|(_, claims)| claims.is_none()).map(|(place, _)| place).collect();
    let (places, batch): (Vec<usize>, Vec<ClaimSet<'_, G>>) = sets
        .iter()
        .zip(&claims)
        .enumerate()
        .filter_map(|(place, (set, claims))| Some((place, (set.bases, claims.as_deref()?))))
        .unzip();
    match batch.as_slice() {
        [(bases, [claim])] if dleq::vartime_verify(bases, claim) => {}
        [(_, [_])] => culprits.extend(&places),
        batch => {
            let found = dleq::vartime_false_sets(batch, rng);
            culprits.extend(found.into_iter().filter_map(|set| places.get(set)));
        }
    }
    culprits.into_iter().collect()
}

//! The share of schemes on pairings: a multiple of a public point, which a pairing verifies without a proof.

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Group};
use theta_sharing::ShareIndex;

use crate::bisection::{find_false, random_weight};
use crate::keys::{KeyShare, PublicKeySet};
use crate::{CombineError, selection};

/// One party's `base * x_i`. It is on the curve; membership in the prime-order subgroup is checked when the share is verified,
/// or with the combined result: see [`Group::decode_unchecked_subgroup`].
#[derive(Clone, Copy, Debug)]
pub struct PointShare<G: Group> {
    index: ShareIndex,
    point: G::Element,
}

impl<G: Group> PointShare<G> {
    /// The share of party `index`, unchecked.
    pub(crate) const fn new(index: ShareIndex, point: G::Element) -> Self {
        Self { index, point }
    }

    /// Makes a share by one multiplication. Keys may be in another group of the same order.
    pub(crate) fn create<K: Group<Scalar = G::Scalar>>(key: &KeyShare<K>, base: &G::Element) -> Self {
        Self::new(key.index(), *base * *key.secret().expose())
    }

    /// Whose share this is.
    #[must_use]
    pub const fn index(&self) -> ShareIndex {
        self.index
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        G::encode(&self.point).as_ref().to_vec()
    }

    pub(crate) fn decode(index: ShareIndex, bytes: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self::new(index, G::decode_unchecked_subgroup(bytes)?))
    }

    /// The parties whose shares are false. `holds` tells by pairings whether a point is the same multiple of the base that a key
    /// is of the generator; many shares are checked as one, with random 128-bit weights.
    pub(crate) fn false_among<K: Group>(
        public: &PublicKeySet<K>,
        shares: &[Self],
        holds: impl Fn(&K::Element, &G::Element) -> bool,
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        let mut culprits = Vec::new();
        let mut batch = Vec::with_capacity(shares.len());
        for share in shares {
            match public.verification_key(share.index) {
                Some(key) if G::is_in_subgroup(&share.point) => {
                    batch.push((*share, *key.element(), random_weight(rng)));
                }
                _ => culprits.push(share.index),
            }
        }
        let batch_holds = |batch: &[(Self, K::Element, u128)]| {
            if let [(share, key, _)] = batch {
                return holds(key, &share.point);
            }
            let weights: Vec<_> = batch.iter().map(|(_, _, weight)| *weight).collect();
            let keys: Vec<_> = batch.iter().map(|(_, key, _)| *key).collect();
            let points: Vec<_> = batch.iter().map(|(share, _, _)| share.point).collect();
            holds(&K::vartime_msm_short(&weights, &keys), &G::vartime_msm_short(&weights, &points))
        };
        find_false(&batch, &batch_holds, &mut |(share, _, _)| culprits.push(share.index));
        culprits
    }

    /// `base * x` from the first k shares, which are not verified here.
    pub(crate) fn interpolate<K: Group>(public: &PublicKeySet<K>, shares: &[Self]) -> Result<G::Element, CombineError> {
        selection::vartime_interpolate::<G, _>(public.threshold(), shares, Self::index, |share| share.point)
    }
}

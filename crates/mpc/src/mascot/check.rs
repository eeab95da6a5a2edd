//! Openings, and the check of their MACs (MASCOT, figure 7, MACCheck; in the group Dalskov et al., section 3.3), in four rounds:
//!
//! 1. shares of the values, and commitments to coins;
//! 2. the coins, which give weights of 128 bits;
//! 3. commitments to sigma_i, the weighted sum of MAC summands minus the MAC key's summand times the weighted sum of what was opened;
//! 4. sigma_i; their sum must be zero.
//!
//! For elements a share is a_i G, and sigma_i is the same number times G: gamma(a) G - delta_i A. So one multiplication by the secret
//! key is all that it costs.

use theta_groups::{Group, Scalar as _, Secret};

use super::{Check, MascotOf};
use crate::{
    Element, Scalar, Shared, Stop,
    blackbox::encode,
    pairs::{Elements, Scalars, encode_elements},
};

const FALSE: Stop = Stop::Cheated("the MACs of what was opened fail their check");

impl<G: Group, C: Check> MascotOf<G, C> {
    /// Opens values. They are right.
    pub(super) async fn open_scalars(&self, values: &Shared<Self>) -> Result<Vec<Scalar<Self>>, Stop> {
        if values.is_empty() {
            return Ok(Vec::new());
        }
        let shares = encode(values.cells().iter().map(|[share, _]| share));
        let (shown, weights) = self.show_and_toss(shares, values.len()).await?;
        let opened = Scalars::<G::Scalar>::sum(&self.party, values.len(), shown.iter().map(Vec::as_slice))?.0;
        let weights: Vec<G::Scalar> = weights.into_iter().map(G::Scalar::from_u128).collect();
        let value = opened.iter().zip(&weights).map(|(value, weight)| *value * *weight).sum::<G::Scalar>();
        let mac = Secret::new(
            values.cells().iter().zip(&weights).map(|([_, mac], weight)| *mac * *weight).sum::<G::Scalar>(),
        );
        let sigma = Secret::new(*mac.expose() - value * *self.key()?.expose());
        let secrets = self.reveal_sigma(encode([sigma.expose()])).await?;
        match Scalars::<G::Scalar>::sum(&self.party, 1, secrets.iter().map(Vec::as_slice))?.0[..] {
            [sum] if sum == G::Scalar::ZERO => Ok(opened),
            _ => Err(FALSE),
        }
    }

    /// Opens elements. They are right.
    pub(super) async fn open_elements(&self, logarithms: &Shared<Self>) -> Result<Vec<Element<Self>>, Stop> {
        if logarithms.is_empty() {
            return Ok(Vec::new());
        }
        let cells = logarithms.cells();
        let shares = Secret::new(cells.iter().map(|[share, _]| *share).collect::<Vec<_>>());
        let own = G::mul_base_batch(shares.expose());
        let (shown, weights) = self.show_and_toss(encode_elements::<G>(&own), cells.len()).await?;
        let opened = Elements::<G>::sum(&self.party, own, shown.iter().map(Vec::as_slice))?.0;
        let value = G::vartime_msm_short(&weights, &opened);
        let mac = cells.iter().zip(&weights).map(|([_, mac], weight)| *mac * G::Scalar::from_u128(*weight));
        let mac = Secret::new(mac.sum::<G::Scalar>());
        let sigma = G::mul_base(mac.expose()) - value * *self.key()?.expose();
        self.reveal_identity(sigma).await.map(|()| opened)
    }

    /// Commits to a sigma of elements and shows it. The sum of all must be the identity.
    pub(super) async fn reveal_identity(&self, sigma: G::Element) -> Result<(), Stop> {
        let secrets = self.reveal_sigma(encode_elements::<G>(&[sigma])).await?;
        let sum = Elements::<G>::sum(&self.party, vec![sigma], secrets.iter().map(Vec::as_slice))?.0;
        match sum[..] {
            [sum] if G::is_identity(&sum) => Ok(()),
            _ => Err(FALSE),
        }
    }

    /// Commits to sigma and shows it; returns what all showed.
    async fn reveal_sigma(&self, sigma: Vec<u8>) -> Result<Vec<Vec<u8>>, Stop> {
        let len = sigma.len();
        let mut secret = Secret::new(sigma);
        let blinding = self.random_bytes();
        secret.expose_mut().extend_from_slice(blinding.expose());
        let (_, mut secrets) = self.reveal("sigma", Vec::new(), &secret).await?;
        secrets.iter_mut().for_each(|secret| secret.truncate(len));
        Ok(secrets)
    }
}

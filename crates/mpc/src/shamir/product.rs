//! Products (Damgard and Nielsen, CRYPTO 2007, section 4.2): the local products are a sharing of degree 2t; it is masked by a random
//! double sharing, opened, and the mask is taken away with degree t.
//!
//! Products that are shown and nothing else are masked by sharings of zero of degree 2t, and never have degree t.
//!
//! A party that lies here adds a number that it knows to a product, whatever it tells to whom: any t + 1 = n - t honest shares
//! are a sharing of degree t. That is why active security needs n = 2t + 1; with more parties honest shares could
//! contradict each other, and later products would show how.

use theta_groups::{Group, Scalar as _, Secret};

use super::Shamir;
use crate::{Security, Shared, Stop, blackbox::open_sums};

impl<G: Group, M: Security> Shamir<G, M> {
    /// Shares of degree t of values of which this party has shares of degree 2t.
    pub(super) async fn reduce_degree(&self, parts: &Secret<Vec<G::Scalar>>) -> Result<Shared<Self>, Stop> {
        let count = parts.expose().len();
        let (singles, doubles) = self.deal_doubles(count).await?;
        let opened = self.open_masked(parts, &doubles).await?;
        Ok(Shared::from_cells(opened.iter().zip(singles.cells()).map(|(value, [mask])| [*value - *mask])))
    }

    /// Shows values of which this party has shares of degree 2t, masked by sharings of zero of that degree.
    pub(super) async fn open_degree(&self, parts: &Secret<Vec<G::Scalar>>) -> Result<Vec<G::Scalar>, Stop> {
        let masks = self.deal_zeros(parts.expose().len()).await?;
        self.open_masked(parts, &masks).await
    }

    /// Shows sums of shares of degree 2t and of masks of that degree.
    async fn open_masked(&self, parts: &Secret<Vec<G::Scalar>>, masks: &Shared<Self>) -> Result<Vec<G::Scalar>, Stop> {
        // Positions from 2t + 1 on have no coefficient: they need not send.
        let coefficient = self.coefficients.products.get(self.party.position()).copied().unwrap_or(G::Scalar::ZERO);
        let mut masked = Secret::new(Vec::with_capacity(parts.expose().len()));
        masked
            .expose_mut()
            .extend(parts.expose().iter().zip(masks.cells()).map(|(part, [mask])| (*part + *mask) * coefficient));
        open_sums(&self.party, self.coefficients.products.len(), &masked).await
    }
}

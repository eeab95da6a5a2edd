//! Products (Damgard and Nielsen, CRYPTO 2007, section 4.2): the local products are a sharing of degree 2t; it is masked by a random
//! double sharing, opened, and the mask is taken away with degree t.
//!
//! Few products are opened by all to all, in one round. Many are opened by all to one and by that one to all, the parties
//! taking turns from product to product, which takes two rounds and fewer bytes.
//!
//! A party that lies here adds a number that it knows to a product, whatever it tells to whom: any t + 1 = n - t honest shares
//! are a sharing of degree t. That is why active security needs n = 2t + 1; with more parties honest shares could
//! contradict each other, and later products would show how.

use theta_groups::{Group, Scalar as _, Secret};

use super::Shamir;
use crate::{Security, Shared, Stop, blackbox::zeros};

/// From so many products on, they go through one party each.
const MANY: usize = 64;

impl<G: Group, M: Security> Shamir<G, M> {
    /// Shares of degree t of values of which this party has shares of degree 2t.
    pub(super) async fn reduce_degree(&self, parts: &Secret<Vec<G::Scalar>>) -> Result<Shared<Self>, Stop> {
        let count = parts.expose().len();
        let (singles, doubles) = self.deal_doubles(count).await?;
        // Positions from 2t + 1 on have no coefficient: they need not send.
        let coefficient = self.coefficients.products.get(self.party.position()).copied();
        let mut masked = Secret::new(Vec::with_capacity(count));
        let coefficient_or_none = coefficient.unwrap_or(G::Scalar::ZERO);
        masked.expose_mut().extend(
            parts.expose().iter().zip(doubles.cells()).map(|(part, [mask])| (*part + *mask) * coefficient_or_none),
        );
        let opened = if count < MANY {
            self.sum_at_all(coefficient.is_some(), &masked).await?
        } else {
            self.sum_by_turns(coefficient.is_some(), &masked).await?
        };
        Ok(Shared::from_cells(opened.iter().zip(singles.cells()).map(|(value, [mask])| [*value - *mask])))
    }

    /// Those who send parts.
    fn sends(&self, position: usize) -> bool {
        position < self.coefficients.products.len()
    }

    async fn sum_at_all(&self, sends: bool, parts: &Secret<Vec<G::Scalar>>) -> Result<Vec<G::Scalar>, Stop> {
        let n = self.party.n();
        let bytes = if sends { Self::write(parts.expose()) } else { Vec::new() };
        let len = parts.expose().len() * G::Scalar::ENCODED_LEN;
        let expected: Vec<usize> = (0..n).map(|position| if self.sends(position) { len } else { 0 }).collect();
        let got = self.party.exchange(&vec![bytes; n], &expected)?.await?;
        let mut sums = parts.expose().clone();
        for (position, bytes) in got.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty()) {
            for (sum, part) in sums.iter_mut().zip(self.read(position, bytes)?.expose()) {
                *sum += *part;
            }
        }
        Ok(sums)
    }

    async fn sum_by_turns(&self, sends: bool, parts: &Secret<Vec<G::Scalar>>) -> Result<Vec<G::Scalar>, Stop> {
        let (n, count) = (self.party.n(), parts.expose().len());
        let turn = |position: usize| (position..count).step_by(n);
        let bytes_of = |position: usize| turn(position).len() * G::Scalar::ENCODED_LEN;
        let own = |position: usize| turn(position).filter_map(|i| parts.expose().get(i));
        let out: Vec<Vec<u8>> = (0..n).map(|to| if sends { Self::write(own(to)) } else { Vec::new() }).collect();
        let local = self.party.position();
        let expected: Vec<usize> = (0..n).map(|from| if self.sends(from) { bytes_of(local) } else { 0 }).collect();
        let got = self.party.exchange(&out, &expected)?.await?;
        let mut mine: Vec<G::Scalar> = own(local).copied().collect();
        for (position, bytes) in got.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty()) {
            for (sum, part) in mine.iter_mut().zip(self.read(position, bytes)?.expose()) {
                *sum += *part;
            }
        }
        let told =
            self.party.exchange(&vec![Self::write(&mine); n], &(0..n).map(bytes_of).collect::<Vec<_>>())?.await?;
        let mut sums = core::mem::take(zeros(count).expose_mut());
        for (position, bytes) in told.iter().enumerate() {
            let theirs = if position == local { Secret::new(mine.clone()) } else { self.read(position, bytes)? };
            for (i, value) in turn(position).zip(theirs.expose()) {
                if let Some(sum) = sums.get_mut(i) {
                    *sum = *value;
                }
            }
        }
        Ok(sums)
    }
}

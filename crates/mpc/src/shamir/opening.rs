//! Openings.
//!
//! With passive security t + 1 parties send, another t + 1 for each value in turn, with their Lagrange coefficients multiplied
//! in, so that receivers only add; in the group, each product has the fixed base then.
//!
//! With active security all send, and all n shares must lie on one polynomial of degree t. The t + 1 shares of honest
//! parties determine it, so whoever accepts a value accepts the right one. Which share is false cannot be told where n = 2t + 1,
//! as any t + 1 shares are on some polynomial. Elements are opened as with passive security, and checked together
//! (`blackbox/openings.rs`).

use theta_groups::{Group, Scalar as _, Secret};
use theta_names::ShareIndex;
use theta_sharing::coefficients_at_zero;

use super::{
    Shamir,
    interpolation::{combine, lagrange},
};
use crate::{Element, Misbehaviour, Scalar, Security, Shared, Stop};

/// Of an opened value, some shares are not on the polynomial of the others.
pub(super) const CONTRADICTION: Stop = Stop::Cheated("the shares of an opened value contradict each other");

impl<G: Group, M: Security> Shamir<G, M> {
    /// Whether the party at `position` sends value number `i`, and its coefficient.
    fn turn(&self, position: usize, i: usize) -> Option<&G::Scalar> {
        let n = self.party.n();
        let start = i.checked_rem(n)?;
        self.coefficients.from.get(start)?.get((position + n - start).checked_rem(n)?)
    }

    /// Bytes that the party at `position` sends of `count` values of `len` bytes each.
    fn turns(&self, position: usize, count: usize, len: usize) -> usize {
        (0..count).filter(|i| self.turn(position, *i).is_some()).count() * len
    }

    pub(super) async fn open_passively(&self, values: &Shared<Self>) -> Result<Vec<Scalar<Self>>, Stop> {
        let (n, local) = (self.party.n(), self.party.position());
        let weighted = |i: usize, share: &G::Scalar| self.turn(local, i).map(|coefficient| *coefficient * *share);
        let own: Vec<Option<G::Scalar>> = values.cells().iter().enumerate().map(|(i, [x])| weighted(i, x)).collect();
        let bytes = Self::write(own.iter().flatten());
        let len = G::Scalar::ENCODED_LEN;
        let expected: Vec<usize> = (0..n).map(|from| self.turns(from, values.len(), len)).collect();
        self.party.keep_together(values.len() * len).await?;
        let got = self.party.exchange(&vec![bytes; n], &expected)?.await?;
        let mut sums: Vec<G::Scalar> = own.into_iter().map(|own| own.unwrap_or(G::Scalar::ZERO)).collect();
        for (from, bytes) in got.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty()) {
            let parts = self.read(from, bytes)?;
            let sums = sums.iter_mut().enumerate().filter(|(i, _)| self.turn(from, *i).is_some());
            for ((_, sum), part) in sums.zip(parts.expose()) {
                *sum += *part;
            }
        }
        Ok(sums)
    }

    pub(super) async fn open_actively(&self, values: &Shared<Self>) -> Result<Vec<Scalar<Self>>, Stop> {
        let shares = self.show_all(values).await?;
        self.opened(&shares, values.len()).collect::<Option<_>>().ok_or(CONTRADICTION)
    }

    /// All show their shares to all. Returns them by party: they are public then.
    pub(super) async fn show_all(&self, values: &Shared<Self>) -> Result<Vec<Vec<G::Scalar>>, Stop> {
        let n = self.party.n();
        let bytes = Self::write(values.cells().iter().map(|[share]| share));
        let got = self.party.exchange(&vec![bytes.clone(); n], &vec![bytes.len(); n])?.await?;
        let mut shares = Vec::with_capacity(n);
        for (from, theirs) in got.iter().enumerate() {
            let theirs = if from == self.party.position() { &bytes[..] } else { theirs };
            shares.push(self.read(from, theirs)?.expose().clone());
        }
        Ok(shares)
    }

    /// So many values, from all parties' shares; `None` for one whose shares contradict each other.
    pub(super) fn opened<'a>(
        &'a self,
        shares: &'a [Vec<G::Scalar>],
        count: usize,
    ) -> impl Iterator<Item = Option<G::Scalar>> + 'a {
        let column = |i: usize| shares.iter().filter_map(|shares| shares.get(i).copied()).collect::<Vec<_>>();
        (0..count).map(move |i| self.coefficients.open(&column(i)))
    }

    /// Opens elements, believing what is sent.
    pub(super) async fn open_elements(&self, logarithms: &Shared<Self>) -> Result<Vec<Element<Self>>, Stop> {
        let (n, local) = (self.party.n(), self.party.position());
        let weighted = |i: usize, share: &G::Scalar| self.turn(local, i).map(|coefficient| *coefficient * *share);
        let cells = logarithms.cells().iter().enumerate();
        let mut own = Secret::new(Vec::with_capacity(logarithms.len()));
        own.expose_mut().extend(cells.filter_map(|(i, [share])| weighted(i, share)));
        let products = G::mul_base_batch(own.expose());
        let bytes: Vec<u8> = G::encode_batch(&products).iter().flat_map(|code| code.as_ref().to_vec()).collect();
        let expected: Vec<usize> = (0..n).map(|from| self.turns(from, logarithms.len(), G::ENCODED_LEN)).collect();
        self.party.keep_together(logarithms.len() * G::ENCODED_LEN).await?;
        let got = self.party.exchange(&vec![bytes; n], &expected)?.await?;
        let mut sums = vec![G::identity(); logarithms.len()];
        for (from, bytes) in got.iter().enumerate() {
            let elements = if from == local { products.clone() } else { self.read_elements(from, bytes)? };
            let sums = sums.iter_mut().enumerate().filter(|(i, _)| self.turn(from, *i).is_some());
            for ((_, sum), element) in sums.zip(elements) {
                *sum = *sum + element;
            }
        }
        Ok(sums)
    }

    fn read_elements(&self, from: usize, bytes: &[u8]) -> Result<Vec<G::Element>, Stop> {
        bytes
            .chunks(G::ENCODED_LEN)
            .map(|code| G::decode_allowing_identity(code).ok())
            .collect::<Option<_>>()
            .ok_or_else(|| {
                self.party.blame(from, Misbehaviour::NotAnElement);
                Stop::Lost
            })
    }

    /// Opens one value that is recognised as right, from the first t + 1 shares that give it. The own share is one of them: it is
    /// right, as nothing false was made without being noticed.
    pub(super) async fn open_known(
        &self,
        value: &Shared<Self>,
        recognise: impl Fn(&G::Scalar) -> bool + Send + Sync,
    ) -> Result<G::Scalar, Stop> {
        let [[own]] = value.cells()[..] else { return Err(Stop::Input("one value is recognised at a time")) };
        let n = self.party.n();
        let bytes = Self::write([&own]);
        let mut gather = self.party.gather(&vec![bytes.clone(); n], &vec![bytes.len(); n])?;
        let mut shares = vec![(self.party.position(), own)];
        loop {
            let (from, bytes) = gather.next().await?;
            let share = self.read(from, &bytes);
            let Some(share) = share.ok().and_then(|share| share.expose().first().copied()) else { continue };
            // Only sets with the new share have not been tried; the own one is the first of all.
            let others = shares.len().saturating_sub(1);
            let tried = Subsets::new(others, self.party.t().saturating_sub(1)).find_map(|subset| {
                let mut chosen = vec![(self.party.position(), own), (from, share)];
                chosen.extend(subset.iter().filter_map(|i| shares.get(i + 1).copied()));
                let value = self.interpolate(&chosen, 0)?;
                recognise(&value).then_some((value, chosen))
            });
            shares.push((from, share));
            if let Some((value, chosen)) = tried {
                self.name_liars(&chosen, &shares);
                return Ok(value);
            }
        }
    }

    /// Blames those whose shares are not on the polynomial that gave the right value, if it is the right polynomial.
    ///
    /// Another one with the same value at 0 has t - 1 honest shares at most, or it would be the same, and t false ones; so one that
    /// has 2t shares is right. With fewer, t liars could make honest shares look false: then nobody is named.
    fn name_liars(&self, chosen: &[(usize, G::Scalar)], shares: &[(usize, G::Scalar)]) {
        if shares.len() == chosen.len() {
            return;
        }
        let fits =
            |(position, share): &(usize, G::Scalar)| self.interpolate(chosen, self.point(*position)) == Some(*share);
        let false_shares: Vec<usize> =
            shares.iter().filter(|share| !fits(share)).map(|(position, _)| *position).collect();
        if shares.len() - false_shares.len() >= 2 * self.party.t() {
            let others = false_shares.into_iter().filter(|position| *position != self.party.position());
            others.for_each(|position| self.party.blame(position, Misbehaviour::FalseShare));
        }
    }

    /// The value at a point, of the polynomial through some parties' shares.
    fn interpolate(&self, shares: &[(usize, G::Scalar)], at: u64) -> Option<G::Scalar> {
        if at == 0 {
            let indices: Vec<ShareIndex> = shares.iter().filter_map(|(i, _)| self.points.get(*i).copied()).collect();
            let coefficients = coefficients_at_zero::<G::Scalar>(&indices).ok()?;
            return Some(combine(&coefficients, shares.iter().map(|(_, share)| *share)));
        }
        let points: Vec<u64> = shares.iter().map(|(position, _)| self.point(*position)).collect();
        Some(combine(&lagrange(&points, at), shares.iter().map(|(_, share)| *share)))
    }
}

/// All sets of `size` of the numbers below `count`, in lexicographic order.
pub(crate) struct Subsets {
    next: Option<Vec<usize>>,
    count: usize,
}

impl Subsets {
    pub(crate) fn new(count: usize, size: usize) -> Self {
        Self { next: (size <= count).then(|| (0..size).collect()), count }
    }
}

impl Iterator for Subsets {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let current = self.next.take()?;
        let size = current.len();
        let mut following = current.clone();
        // The last number that can grow does, and those after it follow closely.
        if let Some(place) =
            (0..size).rev().find(|i| current.get(*i).is_some_and(|number| number + size - i < self.count))
            && let Some(start) = current.get(place).map(|number| number + 1)
        {
            for (number, value) in following.iter_mut().skip(place).zip(start..) {
                *number = value;
            }
            self.next = Some(following);
        }
        Some(current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_are_all() {
        assert_eq!(Subsets::new(5, 3).count(), 10);
        assert_eq!(Subsets::new(4, 2).collect::<Vec<_>>(), [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        assert_eq!(Subsets::new(3, 0).collect::<Vec<_>>(), [Vec::<usize>::new()]);
        assert_eq!(Subsets::new(1, 2).count(), 0);
    }
}

//! Products made so far are verified together: one check for all of them, whose communication is logarithmic.
//!
//! The product protocols of passive Shamir and Rep3 keep their privacy against active parties, and a false product
//! differs from the true one by a number that the adversary knows (Genkin, Ishai, Prabhakaran, Sahai and Tromer, STOC
//! 2014; for Rep3 Lindell and Nof, CCS 2017). An inner product costs as much communication as a product. So many products
//! are one inner product after random scaling, and an inner product of length m becomes one of length m / 8 by
//! interpolation (Goyal and Song, "Malicious Security Comes Free in Honest-Majority MPC", 2020, section 5.3, after Boneh,
//! Boyle, Corrigan-Gibbs, Gilboa and Ishai, CRYPTO 2019).

use core::future::Future;
use std::sync::{Mutex, PoisonError};

use core::{future::poll_fn, task::Poll};

use theta_groups::{Scalar as _, Secret};
use theta_rounds::Bug;

use super::{BlackBox, Cell, Element, Reserve, Scalar, Shared};
use crate::Stop;

/// A black box whose products are one local multiplication and one exchange, so that inner products cost one, too.
pub(crate) trait Products: BlackBox {
    /// Random values that were drawn in advance.
    fn reserve(&self) -> &Reserve<Self>;

    /// Random values to mask a factor, and more that are not. Where it can be known afterwards who dealt what of the masks, that goes on record, under the number that is
    /// returned.
    fn random_for_masks(&self, masks: usize, more: usize) -> impl Future<Output = Result<ForMasks<Self>, Stop>> + Send {
        async move {
            let (masks, more) = self.random(masks + more).await?.split(masks);
            Ok((masks, more, None))
        }
    }

    /// This party's part of a product. The parts of all parties, weighted as `reduce` does, add up to it.
    fn local(a: &Self::Cell, b: &Self::Cell) -> Scalar<Self>;

    /// Shares of the sums that the parties hold such parts of. Not verified.
    fn reduce(&self, parts: &Secret<Vec<Scalar<Self>>>) -> impl Future<Output = Result<Shared<Self>, Stop>> + Send;

    /// Shows those sums to all and nothing else, without sharing them first, which takes fewer bytes. Not verified: whoever lies adds a number to one.
    fn open_parts(
        &self,
        parts: &Secret<Vec<Scalar<Self>>>,
    ) -> impl Future<Output = Result<Vec<Scalar<Self>>, Stop>> + Send;

    /// Opens without verifying products first.
    fn open_now(&self, values: &Shared<Self>) -> impl Future<Output = Result<Vec<Scalar<Self>>, Stop>> + Send;

    /// Opens elements without verifying anything: whatever is sent is believed.
    fn open_elements_now(
        &self,
        logarithms: &Shared<Self>,
    ) -> impl Future<Output = Result<Vec<Element<Self>>, Stop>> + Send;
}

/// Masks, other random values, and the number of the record.
pub(crate) type ForMasks<B> = (Shared<B>, Shared<B>, Option<u64>);

/// Products that nobody has verified yet: factors, factors, results.
pub(crate) struct Unverified<B: BlackBox>(Mutex<Queue<B>>);

struct Queue<B: BlackBox> {
    waiting: [Secret<Vec<B::Cell>>; 3],
    /// A verification runs.
    busy: bool,
}

impl<B: BlackBox> Default for Unverified<B> {
    fn default() -> Self {
        let waiting = [(); 3].map(|()| Secret::new(Vec::new()));
        Self(Mutex::new(Queue { waiting, busy: false }))
    }
}

impl<B: Products> Unverified<B> {
    fn with<T>(&self, change: impl FnOnce(&mut Queue<B>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes products.
    pub(crate) fn push(&self, a: &Shared<B>, b: &Shared<B>, c: &Shared<B>) {
        self.with(|queue| {
            for (to, from) in queue.waiting.iter_mut().zip([a, b, c]) {
                // Grows without leaving copies behind.
                let mut grown = Secret::new(Vec::with_capacity(to.expose().len() + from.len()));
                grown.expose_mut().extend_from_slice(to.expose());
                grown.expose_mut().extend_from_slice(from.cells());
                *to = grown;
            }
        });
    }

    /// Verifies what was noted until now. Returns when that and whatever another part of the program has begun to verify
    /// is verified.
    pub(crate) async fn verify(&self, black_box: &B) -> Result<(), Stop> {
        poll_fn(|_| if self.with(|queue| queue.busy) { Poll::Pending } else { Poll::Ready(()) }).await;
        let [a, b, c] = self.with(|queue| {
            queue.busy = queue.waiting.iter().any(|list| !list.expose().is_empty());
            core::mem::replace(&mut queue.waiting, [(); 3].map(|()| Secret::new(Vec::new())))
        });
        if a.expose().is_empty() {
            return Ok(());
        }
        let verified = check(black_box, &a, &b, &c).await;
        // If it failed, the program ends with that, and nothing passes here any more.
        if verified.is_ok() {
            self.with(|queue| queue.busy = false);
        }
        verified
    }
}

/// Whether two lists can be multiplied, place by place.
pub(crate) fn check_lengths<B: BlackBox>(a: &Shared<B>, b: &Shared<B>) -> Result<(), Stop> {
    if a.len() == b.len() { Ok(()) } else { Err(Stop::Input("lists of different lengths are not multiplied")) }
}

/// Whether a factor is one value.
pub(crate) fn check_factor<B: BlackBox>(factor: &Shared<B>) -> Result<(), Stop> {
    if factor.len() == 1 { Ok(()) } else { Err(Stop::Input("a factor of many values is one value")) }
}

/// Products of two lists, noted in `unverified` if they are to be verified.
pub(crate) async fn multiply<B: Products>(
    black_box: &B,
    a: &Shared<B>,
    b: &Shared<B>,
    unverified: Option<&Unverified<B>>,
) -> Result<Shared<B>, Stop> {
    check_lengths(a, b)?;
    let products = black_box.reduce(&parts_of(a, b)).await?;
    if let Some(unverified) = unverified {
        unverified.push(a, b, &products);
    }
    Ok(products)
}

/// This party's parts of the products of two lists.
pub(super) fn parts_of<B: Products>(a: &Shared<B>, b: &Shared<B>) -> Secret<Vec<Scalar<B>>> {
    let mut parts = Secret::new(Vec::with_capacity(a.len()));
    parts.expose_mut().extend(a.cells().iter().zip(b.cells()).map(|(a, b)| B::local(a, b)));
    parts
}

/// Blocks into which a list is folded at each step.
pub(super) const FOLD: usize = 8;

/// How many random values it takes to verify so many products: a coin for the weights and one for each step, and the two masks of the last one.
pub(super) fn drawn_to_verify(products: usize) -> usize {
    let steps = core::iter::successors(Some(products), |left| (*left > FOLD).then(|| left.div_ceil(FOLD)));
    steps.count() + 3
}

/// A public random number, which nobody can know before all honest parties have received whatever was sent before.
///
/// Messages take as long as the adversary likes: it may keep a message back from one honest party while another goes on.
/// So nobody shows a share of the coin before it has heard from all that they are here, and nobody says so before it has its
/// share of the coin: the barrier and the opening are rounds of their own, and the dealing is in an earlier one. (If the dealing shared the barrier's
/// round, a dealer could keep its share back from one party, see the other shares, and then choose the coin.)
pub(crate) async fn coin<B: Products>(black_box: &B) -> Result<Scalar<B>, Stop> {
    let drawn = black_box.reserve().take(black_box, 1).await?;
    black_box.party().everybody_is_here().await?;
    let drawn = black_box.open_now(&drawn).await?;
    drawn.first().copied().ok_or(Stop::Bug(Bug("a coin without a side")))
}

/// Checks c = a b for all of a list at once.
async fn check<B: Products>(
    black_box: &B,
    a: &Secret<Vec<B::Cell>>,
    b: &Secret<Vec<B::Cell>>,
    c: &Secret<Vec<B::Cell>>,
) -> Result<(), Stop> {
    // sum rho^i a_i b_i = sum rho^i c_i.
    let rho = coin(black_box).await?;
    let mut power = Scalar::<B>::ONE;
    let mut xs = Vec::with_capacity(a.expose().len());
    let mut z = B::Cell::ZERO;
    for (a, c) in a.expose().iter().zip(c.expose()) {
        power = power * rho;
        xs.push(a.times(&power));
        z = z.plus(&c.times(&power));
    }
    let mut xs = Secret::new(xs);
    let mut ys = Secret::new(b.expose().clone());
    while xs.expose().len() > FOLD {
        (xs, ys, z) = fold(black_box, &xs, &ys, z).await?;
    }
    finish(black_box, xs, ys, z).await
}

/// The values at the next integers of polynomials that have these values at 0, 1, 2 and so on: by differences, so that it
/// takes additions only.
fn extend<S: theta_groups::Scalar, C: Cell<S>>(values: &[C], more: usize) -> Vec<C> {
    let mut last_differences = Secret::new(Vec::with_capacity(values.len()));
    let mut row = Secret::new(values.to_vec());
    while let Some(last) = row.expose().last().copied() {
        last_differences.expose_mut().push(last);
        let next =
            row.expose().iter().zip(row.expose().iter().skip(1)).map(|(left, right)| right.minus(left)).collect();
        row = Secret::new(next);
    }
    let mut found = Vec::with_capacity(more);
    for _ in 0..more {
        let mut carry = C::ZERO;
        for difference in last_differences.expose_mut().iter_mut().rev() {
            carry = difference.plus(&carry);
            *difference = carry;
        }
        found.push(carry);
    }
    found
}

/// The coefficients with which a polynomial of degree below `count` is evaluated at `at` from its values at 0, 1, 2 and so
/// on. `None` if `at` is one of them.
pub(super) fn coefficients<S: theta_groups::Scalar>(count: usize, at: S) -> Option<Vec<S>> {
    let points: Vec<S> = (0..count).map(|i| S::from_u64(u64::try_from(i).unwrap_or(u64::MAX))).collect();
    let mut weights: Vec<S> = points
        .iter()
        .map(|i| {
            let others = points.iter().filter(|j| *j != i);
            others.fold(at - *i, |product, j| product * (*i - *j))
        })
        .collect();
    if points.contains(&at) {
        return None;
    }
    S::vartime_batch_invert(&mut weights);
    let numerator = points.iter().fold(S::ONE, |product, i| product * (at - *i));
    Some(weights.into_iter().map(|weight| weight * numerator).collect())
}

/// A list, its partner, and their inner product, if all was honest.
type Claim<C> = (Secret<Vec<C>>, Secret<Vec<C>>, C);

/// One step: lists of length m become lists of length m / [`FOLD`].
///
/// The blocks of x are the values at 0, 1, ... of a vector of polynomials f, those of y of g. h = <f, g> has degree
/// 2 FOLD - 2: its values at the blocks are made by products, all but the last, which is what is missing to z; so are its
/// values at as many more places. If z is not <x, y>, then h is not <f, g>, which a random place shows, except with
/// probability (2 FOLD - 2) / q.
async fn fold<B: Products>(
    black_box: &B,
    xs: &Secret<Vec<B::Cell>>,
    ys: &Secret<Vec<B::Cell>>,
    z: B::Cell,
) -> Result<Claim<B::Cell>, Stop> {
    let len = xs.expose().len().div_ceil(FOLD);
    reduce_blocks(black_box, [xs, ys], z, Blocks { len, count: FOLD, masks: 0 }).await
}

/// How lists are split.
#[derive(Clone, Copy)]
struct Blocks {
    len: usize,
    count: usize,
    /// So many blocks at the front are no part of the claim: they hide the others.
    masks: usize,
}

/// The step of [`fold`]; what is missing in the last block is zero.
async fn reduce_blocks<B: Products>(
    black_box: &B,
    [xs, ys]: [&Secret<Vec<B::Cell>>; 2],
    z: B::Cell,
    Blocks { len, count: blocks, masks }: Blocks,
) -> Result<Claim<B::Cell>, Stop> {
    let at = |list: &Secret<Vec<B::Cell>>, block: usize, i: usize| {
        list.expose().get(block * len + i).copied().unwrap_or(B::Cell::ZERO)
    };
    let column = |list: &Secret<Vec<B::Cell>>, i: usize| {
        Secret::new((0..blocks).map(|block| at(list, block, i)).collect::<Vec<_>>())
    };
    // Parts of h(0), ..., h(blocks - 2), h(blocks), ..., h(2 blocks - 2).
    let mut parts = Secret::new(vec![Scalar::<B>::ZERO; 2 * (blocks - 1)]);
    for i in 0..len {
        let (x, y) = (column(xs, i), column(ys, i));
        let more = (Secret::new(extend(x.expose(), blocks - 1)), Secret::new(extend(y.expose(), blocks - 1)));
        let known = x.expose().iter().take(blocks - 1).chain(more.0.expose());
        let partners = y.expose().iter().take(blocks - 1).chain(more.1.expose());
        for (part, (x, y)) in parts.expose_mut().iter_mut().zip(known.zip(partners)) {
            *part += B::local(x, y);
        }
    }
    let reduced = black_box.reduce(&parts).await?;
    let (before, beyond) =
        reduced.cells().split_at_checked(blocks - 1).ok_or(Stop::Bug(Bug("products are missing")))?;
    let last = before.iter().skip(masks).fold(z, |rest, value| rest.minus(value));
    let h = Secret::new(before.iter().chain([&last]).chain(beyond).copied().collect::<Vec<_>>());

    let place = coin(black_box).await?;
    let unlucky = Stop::Cheated("a coin that fell on a block, which happens with probability 2^-250");
    let for_blocks = coefficients(blocks, place).ok_or(unlucky)?;
    let for_h = coefficients(2 * blocks - 1, place).ok_or(unlucky)?;
    let combine = |cells: &[B::Cell], weights: &[Scalar<B>]| {
        let terms = cells.iter().zip(weights).map(|(cell, weight)| cell.times(weight));
        terms.fold(B::Cell::ZERO, |sum, term| sum.plus(&term))
    };
    let folded = |list: &Secret<Vec<B::Cell>>| {
        Secret::new((0..len).map(|i| combine(column(list, i).expose(), &for_blocks)).collect::<Vec<_>>())
    };
    Ok((folded(xs), folded(ys), combine(h.expose(), &for_h)))
}

/// The last step: at most [`FOLD`] products and one of two random numbers, which hides the rest, become one product, which
/// is opened.
///
/// The random numbers' product is h(0), and no part of the claim. (If it were made a second time and added to the claim, it
/// would be a number that whoever lies may choose when all coins but the last are known: so that it takes away what an
/// earlier lie has put in.)
async fn finish<B: Products>(
    black_box: &B,
    xs: Secret<Vec<B::Cell>>,
    ys: Secret<Vec<B::Cell>>,
    z: B::Cell,
) -> Result<(), Stop> {
    let masks = black_box.reserve().take(black_box, 2).await?;
    let [mask_x, mask_y] = masks.cells()[..] else { return Err(Stop::Bug(Bug("masks are missing"))) };
    let with = |mask: B::Cell, list: &Secret<Vec<B::Cell>>| {
        Secret::new([mask].iter().chain(list.expose()).copied().collect::<Vec<_>>())
    };
    let (xs, ys) = (with(mask_x, &xs), with(mask_y, &ys));
    let blocks = Blocks { len: 1, count: xs.expose().len(), masks: 1 };
    let (x, y, z) = reduce_blocks(black_box, [&xs, &ys], z, blocks).await?;
    let all = x.expose().iter().chain(y.expose()).chain([&z]).copied().collect::<Vec<_>>();
    let opened = black_box.open_now(&Shared::from_cells(all)).await?;
    match opened[..] {
        [x, y, z] if x * y == z => Ok(()),
        _ => Err(Stop::Cheated("a product is false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use theta_groups::P256Scalar as S;

    /// x^2 + 3 x + 5, and x^3.
    fn values(range: core::ops::Range<u64>) -> Vec<[S; 2]> {
        range.map(|x| [S::from_u64(x * x + 3 * x + 5), S::from_u64(x * x * x)]).collect()
    }

    #[test]
    fn differences_extend_polynomials() {
        assert_eq!(extend::<S, _>(&values(0..4), 6), values(4..10));
        assert_eq!(extend::<S, _>(&[[S::from_u64(7)]], 2), vec![[S::from_u64(7)]; 2]);
    }

    #[test]
    fn coefficients_evaluate() {
        let at = S::from_u64(9);
        let weights = coefficients(4, at).unwrap();
        let sum = values(0..4).iter().zip(weights).fold(<[S; 2]>::ZERO, |sum, (v, w)| sum.plus(&v.times(&w)));
        assert_eq!(sum, values(9..10)[0]);
        assert!(coefficients(4, S::from_u64(3)).is_none());
    }
}

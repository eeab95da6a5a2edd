//! The receiver's side.

use subtle::{Choice, ConditionallySelectable};
use theta_groups::Secret;

use super::{Growth, Leaf, Shape, Tree, sum};
use crate::base::ReceivedSeeds;
use crate::error::expect_len;
use crate::{Misbehaviour, Session, words};

/// The seeds of all leaves, by y, with zero for the missing leaf of each tree.
///
/// All trees are opened before any is judged: the error does not tell which one is false, nor does the time that it takes.
pub(crate) fn puncture(
    session: &Session,
    purpose: &'static str,
    shape: Shape,
    received: &ReceivedSeeds,
    opening: &[u8],
) -> Result<Secret<Vec<u128>>, Misbehaviour> {
    expect_len(opening, shape.opening_len())?;
    let mut opening = words::blocks(opening);
    let choices: Vec<Choice> = received.choices.iter().collect();
    let mut seeds = Secret::new(Vec::with_capacity(shape.trees().map(Tree::leaves).sum()));
    let mut difference = 0;
    for tree in shape.trees() {
        let growth = Growth::new(session, purpose, tree);
        let range = tree.first_bit..tree.first_bit + tree.depth as usize;
        let chosen = choices.get(range.clone()).unwrap_or_default();
        let transferred = received.seeds.expose().get(range).unwrap_or_default();
        let mut leaves = tree_of(&growth, chosen, transferred, &mut opening);
        if tree.depth > 1 {
            difference |= check(&growth, chosen, &mut leaves, &mut opening);
        }
        seeds.expose_mut().extend(leaves.expose().iter().map(|leaf| leaf.seed));
    }
    if difference == 0 { Ok(seeds) } else { Err(Misbehaviour::Trees) }
}

/// Opens one tree, up to the check.
fn tree_of(
    growth: &Growth,
    choices: &[Choice],
    seeds: &[u128],
    opening: &mut impl Iterator<Item = u128>,
) -> Secret<Vec<Leaf>> {
    let mut levels = choices.iter().zip(seeds).rev();
    let first = levels.next().map_or(0, |(_, seed)| *seed);
    // The nodes of a level but the one on the path, which stands at place 0 as zero.
    let mut nodes = Secret::new(vec![0, first]);
    for (choice, seed) in levels {
        let [zero, one] = [opening.next(), opening.next()].map(Option::unwrap_or_default);
        let mut sibling = seed ^ u128::conditional_select(&zero, &one, *choice);
        let mut children = Secret::new(Vec::with_capacity(2 * nodes.expose().len()));
        children.expose_mut().extend([0, 0]);
        for node in nodes.expose().iter().skip(1) {
            let [mut zero, mut one] = growth.children(*node);
            // By y, the child on the side of the path is the even one.
            u128::conditional_swap(&mut zero, &mut one, *choice);
            sibling ^= one;
            children.expose_mut().extend([zero, one]);
        }
        if let Some(child) = children.expose_mut().get_mut(1) {
            *child = sibling;
        }
        nodes = children;
    }
    let leaf = |node: &u128| growth.leaf(*node);
    let mut leaves = Secret::new(nodes.expose().iter().map(leaf).collect::<Vec<_>>());
    if let Some(missing) = leaves.expose_mut().first_mut() {
        *missing = Leaf::default();
    }
    leaves
}

/// Zero if the check holds: the missing leaf's part follows from the sum, and then the hash must be the one that was sent.
fn check(
    growth: &Growth,
    choices: &[Choice],
    leaves: &mut Secret<Vec<Leaf>>,
    opening: &mut impl Iterator<Item = u128>,
) -> u128 {
    let [a, b, c, d] = [(); 4].map(|()| opening.next().unwrap_or_default());
    let [e, f] = sum(leaves.expose());
    // By number, not by y, since the sender hashes in that order.
    let mut numbered = Secret::new(leaves.expose().clone());
    if let Some(missing) = numbered.expose_mut().first_mut() {
        missing.check = [a ^ e, b ^ f];
    }
    for (bit, choice) in choices.iter().enumerate() {
        for pair in numbered.expose_mut().chunks_exact_mut(2 << bit) {
            let (low, high) = pair.split_at_mut(1 << bit);
            for (low, high) in low.iter_mut().zip(high) {
                let ([a, b], [c, d]) = (&mut low.check, &mut high.check);
                u128::conditional_swap(a, c, *choice);
                u128::conditional_swap(b, d, *choice);
            }
        }
    }
    let [g, h] = growth.digest(numbered.expose());
    (c ^ g) | (d ^ h)
}

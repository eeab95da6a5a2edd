//! The sender's side.

use theta_groups::Secret;

use super::{Growth, Leaf, Shape, sum};
use crate::base::SentSeeds;
use crate::{Session, words};

/// The seeds of all leaves, and what opens all but one leaf of each tree to the receiver.
pub(crate) fn grow(
    session: &Session,
    purpose: &'static str,
    shape: Shape,
    seeds: &SentSeeds,
) -> (Secret<Vec<u128>>, Vec<u8>) {
    let mut grown = Secret::new(Vec::with_capacity(shape.trees().map(super::Tree::leaves).sum()));
    let mut opening = Vec::with_capacity(shape.opening_len());
    for tree in shape.trees() {
        let growth = Growth::new(session, purpose, tree);
        let end = tree.first_bit + tree.depth as usize;
        let pairs = seeds.expose().get(tree.first_bit..end).unwrap_or_default();
        let leaves = tree_of(&growth, pairs, &mut opening);
        if tree.depth > 1 {
            words::put(&sum(leaves.expose()), &mut opening);
            words::put(&growth.digest(leaves.expose()), &mut opening);
        }
        grown.expose_mut().extend(leaves.expose().iter().map(|leaf| leaf.seed));
    }
    (grown, opening)
}

/// Grows one tree. `pairs` are the seeds of its transfers, of which the last chooses at the first level. At each level the choice x
/// gives the sum of all children on the other side: of those the receiver can compute all but the sibling of its path, which the sum
/// gives it.
fn tree_of(growth: &Growth, pairs: &[[u128; 2]], opening: &mut Vec<u8>) -> Secret<Vec<Leaf>> {
    let mut levels = pairs.iter().rev();
    let mut nodes = Secret::new(levels.next().map(|[zero, one]| vec![*one, *zero]).unwrap_or_default());
    for [zero, one] in levels {
        let mut children = Secret::new(Vec::with_capacity(2 * nodes.expose().len()));
        for node in nodes.expose() {
            children.expose_mut().extend(growth.children(*node));
        }
        let [even, odd] = children.expose().as_chunks().0.iter().fold([0; 2], |[a, b], [c, d]| [a ^ c, b ^ d]);
        words::put(&[zero ^ odd, one ^ even], opening);
        nodes = children;
    }
    Secret::new(nodes.expose().iter().map(|node| growth.leaf(*node)).collect())
}

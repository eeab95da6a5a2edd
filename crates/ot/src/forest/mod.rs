//! All-but-one OTs: trees of seeds of which the receiver lacks one leaf each (Boyle et al. 2019; the check is that of Roy,
//! *SoftSpokenOT*, CRYPTO 2022).
//!
//! The sender grows a tree of depth d for each d transfers. The receiver, with d bits x as choices, gets all leaves but that with the
//! number x. It names leaves by y, the exclusive or of their number and x: the one that it lacks is always leaf 0, so that nothing
//! it does depends on x but selections by masks.

mod grow;
mod puncture;
#[cfg(test)]
mod tests;

pub(crate) use grow::grow;
pub(crate) use puncture::puncture;

use zeroize::Zeroize;

use crate::{Misuse, Session, words};

/// How many choices there are, and how they are divided among trees: k for each, what is left for the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    bits: usize,
    k: u8,
}

/// A tree of a forest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    /// Its place in the forest, from 0.
    pub(crate) index: usize,
    /// The first of its choices.
    pub(crate) first_bit: usize,
    /// How many choices it has, at least 1.
    pub(crate) depth: u32,
}

impl Tree {
    /// How many leaves it has.
    pub(crate) const fn leaves(self) -> usize {
        1 << self.depth
    }

    /// Blocks of its opening: two for each level below the first, and four of the check. A tree of one level has nothing to open:
    /// its leaves are the seeds of its transfer.
    const fn opening(self) -> usize {
        if self.depth == 1 { 0 } else { 2 * (self.depth as usize - 1) + 4 }
    }
}

impl Shape {
    pub(crate) const fn new(bits: usize, k: u8) -> Result<Self, Misuse> {
        if k == 0 || k > 8 { Err(Misuse::FieldSize(k)) } else { Ok(Self { bits, k }) }
    }

    /// How many choices there are.
    pub(crate) const fn bits(self) -> usize {
        self.bits
    }

    /// The trees.
    pub(crate) fn trees(self) -> impl DoubleEndedIterator<Item = Tree> + ExactSizeIterator {
        let k = usize::from(self.k);
        (0..self.bits.div_ceil(k)).map(move |index| {
            let first_bit = index * k;
            // At most 8.
            let depth = u32::try_from(k.min(self.bits - first_bit)).unwrap_or(1);
            Tree { index, first_bit, depth }
        })
    }

    /// The leaves of each tree, from those of all trees.
    pub(crate) fn split(self, mut leaves: &[u128]) -> impl DoubleEndedIterator<Item = (Tree, &[u128])> {
        let mut parts = Vec::with_capacity(self.trees().len());
        for tree in self.trees() {
            let (these, rest) = leaves.split_at_checked(tree.leaves()).unwrap_or((leaves, &[]));
            leaves = rest;
            parts.push((tree, these));
        }
        parts.into_iter()
    }

    /// The length of an opening of the forest in bytes.
    pub(crate) fn opening_len(self) -> usize {
        self.trees().map(|tree| 16 * tree.opening()).sum()
    }
}

/// A leaf: the seed that is used, and what the check is about.
#[derive(Clone, Copy, Default, Debug)]
struct Leaf {
    seed: u128,
    check: [u128; 2],
}

impl Zeroize for Leaf {
    fn zeroize(&mut self) {
        self.seed.zeroize();
        self.check.zeroize();
    }
}

/// The hashes of one tree: BLAKE3 under a public key that session and place give.
struct Growth([u8; 32]);

impl Growth {
    fn new(session: &Session, purpose: &'static str, tree: Tree) -> Self {
        let transcript = session.transcript("theta/ot/forest/v1").with("purpose", purpose.as_bytes());
        Self(transcript.with("tree", &(tree.index as u64).to_be_bytes()).finish32())
    }

    fn hash(&self, tag: u8, node: u128) -> [u128; 4] {
        let mut input = zeroize::Zeroizing::new([0; 17]);
        let (first, rest) = input.split_at_mut(1);
        first.fill(tag);
        rest.copy_from_slice(&node.to_le_bytes());
        let mut output = zeroize::Zeroizing::new([0; 64]);
        blake3::Hasher::new_keyed(&self.0).update(input.as_ref()).finalize_xof().fill(output.as_mut());
        let mut blocks = [0; 4];
        blocks.iter_mut().zip(words::blocks(output.as_ref())).for_each(|(block, bytes)| *block = bytes);
        blocks
    }

    /// The two children of a node.
    fn children(&self, node: u128) -> [u128; 2] {
        let [zero, one, ..] = self.hash(0, node);
        [zero, one]
    }

    /// The leaf of a node of the last level. Its last two blocks bind the sender to the node: two nodes with the same are a collision.
    fn leaf(&self, node: u128) -> Leaf {
        let [seed, _, check, more] = self.hash(1, node);
        Leaf { seed, check: [check, more] }
    }

    /// The hash of all checks of a tree, in the order of the leaves' numbers.
    fn digest(&self, leaves: &[Leaf]) -> [u128; 2] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&[2]);
        for leaf in leaves {
            leaf.check.iter().for_each(|block| {
                hasher.update(&block.to_le_bytes());
            });
        }
        let mut digest = [0; 2];
        let hash = hasher.finalize();
        digest.iter_mut().zip(words::blocks(hash.as_bytes())).for_each(|(block, bytes)| *block = bytes);
        digest
    }
}

/// The exclusive or of all checks.
fn sum(leaves: &[Leaf]) -> [u128; 2] {
    leaves.iter().fold([0; 2], |[a, b], Leaf { check: [c, d], .. }| [a ^ c, b ^ d])
}

//! From the seeds of a forest to rows of pseudorandom bits: the small-field VOLE of Roy 2022.

use theta_groups::Secret;
use zeroize::Zeroizing;

use crate::forest::{Shape, Tree};
use crate::prg::{Generator, number};

/// How many blocks of a row are made at once, for all leaves of a tree. A call of the cipher costs as much as some blocks, so these
/// are many, as far as the leaves of a tree fit into a cache together.
const SMALL_TREE: usize = 64;
const LARGE_TREE: usize = 16;

/// The rows of one batch.
pub(super) struct Rows {
    /// For each tree the sum of what its leaves give: `blocks` blocks a tree.
    pub(super) sums: Secret<Vec<u128>>,
    /// For each choice the sum of the leaves whose number has that bit: `blocks` blocks a choice.
    pub(super) rows: Secret<Vec<u128>>,
}

/// Expands all trees. Where `punctured`, the first leaf of each gives nothing.
pub(super) fn expand(shape: Shape, leaves: &[u128], punctured: bool, batch: u64, blocks: usize) -> Rows {
    let mut sums = Secret::new(vec![0; shape.trees().len() * blocks]);
    let mut rows = Secret::new(vec![0; shape.bits() * blocks]);
    let mut left = rows.expose_mut().as_mut_slice();
    for ((tree, seeds), sum) in shape.split(leaves).zip(sums.expose_mut().chunks_exact_mut(blocks)) {
        let (these, rest) = left.split_at_mut(tree.depth as usize * blocks);
        let expand = if tree.depth <= 5 { expand_tree::<SMALL_TREE> } else { expand_tree::<LARGE_TREE> };
        expand(tree, seeds, usize::from(punctured), batch, sum, these);
        left = rest;
    }
    Rows { sums, rows }
}

fn expand_tree<const CHUNK: usize>(
    tree: Tree,
    seeds: &[u128],
    skipped: usize,
    batch: u64,
    sum: &mut [u128],
    rows: &mut [u128],
) {
    let generators: Vec<Generator> = seeds.iter().map(|seed| Generator::new(*seed)).collect();
    let blocks = sum.len();
    let mut pads = Zeroizing::new(vec![[0; CHUNK]; tree.leaves()]);
    for (sum, start) in sum.chunks_mut(CHUNK).zip((0..).step_by(CHUNK)) {
        if let Some(missing) = pads.first_mut() {
            *missing = [0; CHUNK];
        }
        for (pad, generator) in pads.iter_mut().zip(&generators).skip(skipped) {
            let mut buffer = [aes::Block::default(); CHUNK];
            generator.fill(batch, start as u64, &mut buffer);
            pad.iter_mut().zip(&buffer).for_each(|(to, from)| *to = number(from));
        }
        // Halves are folded onto each other, from the highest bit of the leaves' numbers down.
        let mut folded = pads.as_mut_slice();
        for row in rows.chunks_exact_mut(blocks).rev() {
            let (low, high) = folded.split_at_mut(folded.len() / 2);
            let mut odd = [0; CHUNK];
            for (low, high) in low.iter_mut().zip(high) {
                for ((low, odd), high) in low.iter_mut().zip(&mut odd).zip(high) {
                    *odd ^= *high;
                    *low ^= *high;
                }
            }
            row.iter_mut().skip(start).zip(odd).for_each(|(to, from)| *to = from);
            folded = low;
        }
        let all = folded.first().copied().unwrap_or([0; CHUNK]);
        sum.iter_mut().zip(all).for_each(|(to, from)| *to = from);
    }
}

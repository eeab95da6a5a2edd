//! Tables with constant-time selection.

use crate::comb::mask_if_equal;
use core::hint::black_box;
use crrl::field::GF448;
use subtle::Choice;

/// A field element, canonical, from the lowest limb.
pub(super) type Limbs = [u64; 7];

/// Field elements in a table. They are limbs, because selecting these takes the fewest instructions.
#[derive(Clone, Copy)]
pub(super) struct Entry<const N: usize>(pub(super) [Limbs; N]);

impl<const N: usize> Entry<N> {
    pub(super) fn new(elements: [GF448; N]) -> Self {
        Self(elements.map(|element| {
            let mut limbs = [0; 7];
            let encoding = element.encode();
            limbs.iter_mut().zip(encoding.as_chunks().0).for_each(|(limb, bytes)| *limb = u64::from_le_bytes(*bytes));
            limbs
        }))
    }

    /// The elements of an entry.
    pub(super) fn elements(&self) -> [GF448; N] {
        self.0.map(GF448::w64le)
    }

    /// The entry at the index. Reads all entries.
    pub(super) fn select(entries: &[Self], index: u8) -> Self {
        let mut selected = [[0; 7]; N];
        for (entry, place) in entries.iter().zip(0..) {
            let mask = black_box(mask_if_equal(place, index));
            for (to, from) in selected.as_flattened_mut().iter_mut().zip(entry.0.as_flattened()) {
                *to |= from & mask;
            }
        }
        Self(selected)
    }
}

/// Swaps two elements if `condition`.
pub(super) fn swap_if(a: &mut Limbs, b: &mut Limbs, condition: Choice) {
    let mask = u64::from(condition.unwrap_u8()).wrapping_neg();
    for (a, b) in a.iter_mut().zip(b) {
        let change = (*a ^ *b) & mask;
        *a ^= change;
        *b ^= change;
    }
}

/// Negates an element if `condition`: p - x is 2^448 - 1 - x, which is x with all bits inverted, minus 2^224.
pub(super) fn negate_if(element: &mut Limbs, condition: Choice) {
    let mask = u64::from(condition.unwrap_u8()).wrapping_neg();
    let (low, high) = element.split_at_mut(3);
    low.iter_mut().for_each(|limb| *limb ^= mask);
    let mut borrow = mask & 1 << 32;
    for limb in high {
        let (difference, below) = (*limb ^ mask).overflowing_sub(borrow);
        (*limb, borrow) = (difference, below.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_found() {
        let elements = [0, 1, 2, 3, 4, 5, 6].map(|i| [GF448::from_u32(i), -GF448::from_u32(i).square()]);
        let entries = elements.map(Entry::new);
        for (expected, index) in elements.iter().zip(0..) {
            let selected = Entry::select(&entries, index);
            assert!(selected.elements().iter().zip(expected).all(|(a, b)| a.equals(*b) == u32::MAX));
        }
    }
}

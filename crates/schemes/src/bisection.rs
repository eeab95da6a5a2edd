//! Finding the false entries of a batch.

use rand_core::CryptoRng;

/// A random weight, which a cheater guesses with probability 2^-128.
pub(crate) fn random_weight(rng: &mut (impl CryptoRng + ?Sized)) -> u128 {
    let mut weight = [0; 16];
    rng.fill_bytes(&mut weight);
    u128::from_le_bytes(weight)
}

/// Checks a batch with `holds` and, if it fails, its halves, down to the single false entries, which are given to `found` in
/// order. `holds` must weigh its entries at random (the small-exponents test of Bellare, Garay and Rabin, EUROCRYPT 1998),
/// because errors could cancel in a plain sum.
pub(crate) fn find_false<T>(batch: &[T], holds: &impl Fn(&[T]) -> bool, found: &mut impl FnMut(&T)) {
    if !batch.is_empty() && !holds(batch) {
        find_in_false(batch, holds, found);
    }
}

/// The same for a batch that does not hold. Where its left half does, the right one does not, and is not checked again.
fn find_in_false<T>(batch: &[T], holds: &impl Fn(&[T]) -> bool, found: &mut impl FnMut(&T)) {
    if let [culprit] = batch {
        return found(culprit);
    }
    let (left, right) = batch.split_at(batch.len() / 2);
    if holds(left) {
        return find_in_false(right, holds, found);
    }
    find_in_false(left, holds, found);
    find_false(right, holds, found);
}

#[cfg(test)]
mod tests {
    use super::find_false;

    #[test]
    fn all_and_only_the_false_are_found() {
        for bits in 0_u32..1 << 9 {
            let batch: Vec<bool> = (0..9).map(|i| bits >> i & 1 == 1).collect();
            let numbered: Vec<(usize, bool)> = batch.into_iter().enumerate().collect();
            let mut found = Vec::new();
            find_false(&numbered, &|batch| batch.iter().all(|(_, good)| *good), &mut |(i, _)| found.push(*i));
            let expected: Vec<usize> = numbered.iter().filter(|(_, good)| !good).map(|(i, _)| *i).collect();
            assert_eq!(found, expected);
        }
    }
}

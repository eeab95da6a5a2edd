//! Who lies, by elimination: masks hide which share of a signature is false, but not that one of its signers' is.
//!
//! With at most t liars, one of them is in each set of signers whose shares made no signature. A party without which t others could not be in all of these
//! sets is one, whatever the others are. Two holders whose accounts of a program that failed differ are such a set, too. That convinces whoever has seen the sets, and nobody else.

use std::collections::BTreeSet;

use theta_rounds::PartyId;

/// So many sets are kept; with more than that nobody is found who was not before.
const MOST_SETS: usize = 64;

/// Of more liars than this nobody is named: looking for them takes t + 1 to the power of t steps.
pub(super) const MOST_LIARS: usize = 3;

type Set = BTreeSet<PartyId>;

/// The sets in each of which somebody has lied, without this party, and who was found by them.
#[derive(Default)]
pub(crate) struct Elimination {
    /// None of them is part of another: whoever is in the smaller one is in the larger one, too.
    sets: Vec<Set>,
    named: Set,
}

impl Elimination {
    /// Somebody has lied among these, of whom none is this party, and at most `liars` parties lie. Returns who must be one and was not named before.
    pub(crate) fn note(&mut self, others: Set, liars: usize) -> Vec<PartyId> {
        if others.is_empty() || liars > MOST_LIARS || self.sets.iter().any(|known| known.is_subset(&others)) {
            return Vec::new();
        }
        self.sets.retain(|known| !others.is_subset(known));
        if self.sets.len() >= MOST_SETS {
            return Vec::new();
        }
        self.sets.push(others);
        // More than t have lied, at some time or other, and nothing follows from sets of before.
        if !self.are_met(None, &mut Set::new(), liars) {
            self.sets.drain(..self.sets.len() - 1);
            return Vec::new();
        }
        let all: Set = self.sets.iter().flatten().copied().collect();
        let found: Vec<PartyId> = all
            .difference(&self.named)
            .copied()
            .filter(|party| !self.are_met(Some(*party), &mut Set::new(), liars))
            .collect();
        self.named.extend(&found);
        found
    }

    /// Whether so many more parties, none of them `without`, meet all sets that these do not.
    fn are_met(&self, without: Option<PartyId>, met: &mut Set, liars: usize) -> bool {
        let Some(next) = self.sets.iter().find(|set| set.is_disjoint(met)) else { return true };
        if liars == 0 {
            return false;
        }
        next.iter().filter(|party| Some(**party) != without).any(|party| {
            met.insert(*party);
            let are_met = self.are_met(without, met, liars - 1);
            met.remove(party);
            are_met
        })
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_core::{Rng as _, SeedableRng};
    use theta_sharing::ShareIndex;

    use super::*;

    fn party(number: u16) -> PartyId {
        PartyId::of_share(ShareIndex::try_from(number).unwrap())
    }

    fn set(numbers: &[u16]) -> Set {
        numbers.iter().copied().map(party).collect()
    }

    #[test]
    fn one_liar_is_in_all_sets() {
        let mut seen = Elimination::default();
        assert_eq!(seen.note(set(&[2, 4]), 1), []);
        assert_eq!(seen.note(set(&[2, 3, 4]), 1), [], "it says less than the first");
        assert_eq!(seen.note(set(&[3, 4]), 1), [party(4)]);
        assert_eq!(seen.note(set(&[4]), 1), [], "it is known");
        assert_eq!(Elimination::default().note(set(&[3]), 1), [party(3)], "there is nobody else");
        assert_eq!(Elimination::default().note(Set::new(), 1), []);
    }

    #[test]
    fn two_liars_are_named_when_there_is_no_other_way() {
        let mut seen = Elimination::default();
        for pair in [[1, 4], [2, 4], [1, 5]] {
            assert_eq!(seen.note(set(&pair), 2), [], "1 and 2, 4 and 5 or 4 and 1 may be those");
        }
        assert_eq!(seen.note(set(&[2, 5]), 2), [], "1 and 2 may be those");
        // 1 and 2 are not in this one, and whoever is in it has to be in two others with one more: 4 with 5.
        assert_eq!(seen.note(set(&[3, 4]), 2), [party(4), party(5)]);
        assert_eq!(seen.note(set(&[3, 5]), 2), []);
    }

    /// Whatever liars do, with t of them at most nobody else is named.
    #[test]
    fn nobody_honest_is_named() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (mut named, mut below) = (0, |most: u32| u16::try_from(rng.next_u32() % most).unwrap());
        for _ in 0..300 {
            let t = 1 + below(3);
            let n = 2 * t + 1 + below(4);
            let liars: Set = (0..t).map(|_| party(1 + below(n.into()))).collect();
            let mut seen = Elimination::default();
            for _ in 0..40 {
                let signers: Set = (0..=t).map(|_| party(1 + below(n.into()))).collect();
                if !signers.is_disjoint(&liars) {
                    let found = seen.note(signers, t.into());
                    assert!(found.iter().all(|party| liars.contains(party)), "{found:?} of {liars:?}");
                    named += found.len();
                }
            }
        }
        assert!(named > 200, "{named}");
    }

    /// One was bad and is mended, and then another one is.
    #[test]
    fn where_more_have_lied_nothing_follows_from_before() {
        let mut seen = Elimination::default();
        assert_eq!(seen.note(set(&[1, 2]), 1), []);
        assert_eq!(seen.note(set(&[3, 4]), 1), []);
        assert_eq!(seen.note(set(&[4, 5]), 1), [party(4)]);
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let mut seen = Elimination::default();
        for first in 1..=3 {
            for second in 4..=40 {
                seen.note(set(&[first, second]), MOST_LIARS);
            }
        }
        assert_eq!(seen.sets.len(), MOST_SETS);
        assert_eq!(seen.note(set(&[1, 2]), MOST_LIARS + 1), []);
    }
}

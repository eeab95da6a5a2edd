//! Which numbers have come.

/// How many numbers below the greatest are remembered, in words.
const WORDS: usize = 16;
/// The same in numbers.
pub(crate) const WINDOW: u64 = 64 * 16;
/// The words of [`Window::recent`].
pub(crate) const RECENT_WORDS: usize = 8;

/// The numbers of received frames: each is taken once; what is older than the window never.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    /// One more than the greatest number that came; 0: none has.
    top: u64,
    /// A ring of bits, by the number modulo the window.
    bits: [u64; WORDS],
}

impl Window {
    /// Whether this number has not come yet, as far as is known.
    pub(crate) fn is_new(&self, number: u64) -> bool {
        if number >= self.top {
            return number < u64::MAX;
        }
        self.top - number <= WINDOW && !self.has(number)
    }

    /// Notes that this number has come.
    pub(crate) fn take(&mut self, number: u64) {
        if number >= self.top {
            let top = number.saturating_add(1);
            if top - self.top >= WINDOW {
                self.bits = [0; WORDS];
            } else {
                (self.top..number).for_each(|skipped| self.set(skipped, false));
            }
            self.top = top;
        }
        self.set(number, true);
    }

    /// The greatest number that has come.
    pub(crate) fn greatest(&self) -> Option<u64> {
        self.top.checked_sub(1)
    }

    /// Whether all numbers below the greatest have come, as far as [`recent`](Self::recent) goes.
    pub(crate) fn has_gaps(&self) -> bool {
        let Some(greatest) = self.greatest() else { return false };
        let first = greatest.saturating_sub(63);
        (first..greatest).any(|number| !self.has(number))
    }

    /// Bit i of word w is set if the greatest number less 64 w + i has come.
    pub(crate) fn recent(&self) -> [u64; RECENT_WORDS] {
        let mut recent = [0; RECENT_WORDS];
        let Some(greatest) = self.greatest() else { return recent };
        for (word, below) in recent.iter_mut().zip((0_u64..).step_by(64)) {
            for bit in 0..64 {
                let Some(number) = greatest.checked_sub(below + bit) else { break };
                *word |= u64::from(self.has(number)) << bit;
            }
        }
        recent
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.bits.get(word).is_some_and(|word| word & bit != 0)
    }

    fn set(&mut self, number: u64, to: bool) {
        let (word, bit) = place(number);
        if let Some(word) = self.bits.get_mut(word) {
            *word = if to { *word | bit } else { *word & !bit };
        }
    }
}

fn place(number: u64) -> (usize, u64) {
    let place = number % WINDOW;
    (usize::try_from(place / 64).unwrap_or(usize::MAX), 1 << (place % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_number_is_new_once_and_old_ones_never() {
        let mut window = Window::default();
        assert_eq!((window.greatest(), window.recent()), (None, [0; RECENT_WORDS]));
        for number in [5, 3, 4, 70, 1] {
            assert!(window.is_new(number));
            window.take(number);
            assert!(!window.is_new(number), "{number} twice");
        }
        assert!(window.has_gaps() && window.is_new(69) && window.is_new(0));
        window.take(70 + WINDOW);
        assert!(!window.is_new(70) && window.is_new(71), "70 is behind the window");
        assert!(!window.is_new(u64::MAX), "there is no number after it");
    }

    #[test]
    fn recent_numbers_are_bits_below_the_greatest() {
        let mut window = Window::default();
        (0..100).filter(|number| number % 3 != 1).for_each(|number| window.take(number));
        let recent = window.recent();
        for number in 0..100_u64 {
            let below = 99 - number;
            let bit = recent[usize::try_from(below / 64).unwrap()] >> (below % 64) & 1;
            assert_eq!(bit == 1, number % 3 != 1, "{number}");
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_set(numbers in proptest::collection::vec(0_u64..4000, 1..300)) {
            let (mut window, mut taken) = (Window::default(), BTreeSet::new());
            for number in numbers {
                let greatest: Option<u64> = taken.last().copied();
                let expected = !taken.contains(&number) && greatest.is_none_or(|top| number + WINDOW > top);
                prop_assert_eq!(window.is_new(number), expected);
                if expected {
                    window.take(number);
                    taken.insert(number);
                }
            }
        }
    }
}

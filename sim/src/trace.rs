//! The events in order: always as a hash, on demand as text.

/// The number of last lines that are kept for a violation.
const KEPT: usize = 400;

/// A hash (as FNV-1a, 64 bit, but of eight bytes at a time) over all events, and their text.
pub(crate) struct Trace {
    hash: u64,
    verbose: bool,
    lines: std::collections::VecDeque<String>,
    most: usize,
}

impl Trace {
    pub(crate) fn new(verbose: bool) -> Self {
        let most = if verbose { usize::MAX } else { KEPT };
        Self { hash: 0xcbf2_9ce4_8422_2325, verbose, lines: Default::default(), most }
    }

    pub(crate) fn absorb(&mut self, parts: &[&[u8]]) {
        for part in parts {
            let (words, rest) = part.as_chunks::<8>();
            words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
            rest.iter().for_each(|byte| self.mix(u64::from(*byte)));
            self.mix(part.len() as u64);
        }
    }

    const fn mix(&mut self, word: u64) {
        self.hash = (self.hash.rotate_left(23) ^ word).wrapping_mul(0x0100_0000_01b3);
    }

    /// Adds a line, if text was asked for.
    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        if self.verbose {
            if self.lines.len() >= self.most {
                self.lines.pop_front();
            }
            self.lines.push_back(line());
        }
    }

    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.into()
    }
}

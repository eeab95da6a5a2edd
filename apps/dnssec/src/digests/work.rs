//! What hashing costs.

/// Hashes that may still be computed, in blocks of 64 bytes, and how many were.
#[derive(Debug)]
pub struct Work {
    left: u64,
    done: u64,
    was_short: bool,
}

impl Work {
    /// So many blocks and no more.
    #[must_use]
    pub const fn of(left: u64) -> Self {
        Self { left, done: 0, was_short: false }
    }

    /// Blocks that were hashed.
    #[must_use]
    pub const fn done(&self) -> u64 {
        self.done
    }

    /// Whether there was more to hash than this was.
    #[must_use]
    pub const fn was_short(&self) -> bool {
        self.was_short
    }

    /// Half of what is left.
    #[must_use]
    pub const fn half(&self) -> Self {
        Self::of(self.left / 2)
    }

    /// Counts what was done of a half.
    pub const fn count(&mut self, half: &Self) {
        self.left = self.left.saturating_sub(half.done);
        self.done = self.done.saturating_add(half.done);
        self.was_short |= half.was_short;
    }

    pub(super) fn take(&mut self, bytes: usize) -> Option<()> {
        // SHA-256 adds a bit and the length.
        let blocks = u64::try_from(bytes.saturating_add(9).div_ceil(64)).unwrap_or(u64::MAX);
        self.was_short |= blocks > self.left;
        self.left = self.left.checked_sub(blocks)?;
        self.done = self.done.saturating_add(blocks);
        Some(())
    }
}

/// What has been hashed of late: so much at once, and so much more in each second.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    spent: u64,
    /// When that was reckoned last, in seconds since 1970.
    at: u64,
}

impl Allowance {
    /// How many blocks are left of `most`, of which `each_second` come back in each second.
    pub(super) fn left(&mut self, most: u64, each_second: u64, now: u64) -> u64 {
        let back = each_second.saturating_mul(now.saturating_sub(self.at));
        (self.spent, self.at) = (self.spent.saturating_sub(back), now);
        most.saturating_sub(self.spent)
    }

    pub(super) const fn spend(&mut self, work: &Work) {
        self.spent = self.spent.saturating_add(work.done);
    }
}

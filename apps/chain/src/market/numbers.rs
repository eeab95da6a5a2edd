//! Which numbered messages of one validator have had a place.

/// The numbers of messages: each has a place once; those that are far behind the greatest have none any more. Messages overtake each other on their
/// way into blocks, by a few.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// The greatest number that has had a place. Numbers begin with 1.
    pub greatest: u64,
    /// Bit i: the greatest less i has had a place.
    pub recent: u64,
}

impl Numbers {
    /// Gives a number its place. `false`: it has had one, or is too late, and nothing has changed.
    pub(super) fn take(&mut self, number: u64) -> bool {
        if let Some(ahead) = number.checked_sub(self.greatest).filter(|ahead| *ahead > 0) {
            let kept = u32::try_from(ahead).ok().and_then(|ahead| self.recent.checked_shl(ahead)).unwrap_or(0);
            (self.greatest, self.recent) = (number, kept | 1);
            return true;
        }
        let behind = u32::try_from(self.greatest.saturating_sub(number)).ok();
        let Some(bit) = behind.and_then(|behind| 1_u64.checked_shl(behind)).filter(|_| number > 0) else {
            return false;
        };
        let new = self.recent & bit == 0;
        self.recent |= bit;
        new
    }
}

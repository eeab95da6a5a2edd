//! What the questions of each client may cost, so that one who asks too much uses up nothing of the others'.

use std::collections::{HashMap, VecDeque};

use super::{
    Guesses,
    candidates::Digest,
    work::{Allowance, Work},
};

/// How many digests that are none of the zone's are remembered of a client.
const MOST_MISSES: usize = 256;
/// For how long, in seconds.
const MISS: u64 = 60;
/// Digests that are none may cost so many whole searches at once, and one more in each minute.
const SEARCHES: u64 = 4;
const MINUTE: u64 = 60;
/// All that is hashed may take so many whole searches at once, and a quarter of one more in each second: whoever knows the zone can make events,
/// too, each of which is recognised.
const BUSY: u64 = 16;
const BUSY_PART: u64 = 4;
/// So many clients have what is theirs; those beyond share what one has.
const MOST_CLIENTS: usize = 64;
/// After so many seconds without a question everything that it has cost is back.
const IDLE: u64 = 300;

/// What one client has used.
#[derive(Debug, Default)]
pub(super) struct Budget {
    misses: VecDeque<(Digest, u64)>,
    /// What misses have cost.
    missed: Allowance,
    /// What everything has cost.
    busy: Allowance,
    /// When it asked last, in seconds since 1970.
    used: u64,
}

impl Budget {
    /// Whether a digest was looked for in vain of late.
    pub(super) fn is_miss(&mut self, digest: &Digest, now: u64) -> bool {
        self.misses.retain(|(_, until)| *until > now);
        self.misses.iter().any(|(miss, _)| miss == digest)
    }

    /// Remembers that a digest is none.
    pub(super) fn miss(&mut self, digest: Digest, now: u64) {
        self.misses.push_front((digest, now.saturating_add(MISS)));
        self.misses.truncate(MOST_MISSES);
    }

    /// Whether there may be a whole search now: half a one would find nothing where there is something.
    ///
    /// # Errors
    /// Why there may be none, in words.
    pub(super) fn may_search(&mut self, guesses: &Guesses, now: u64) -> Result<(), String> {
        let most = guesses.most_blocks;
        if self.missed.left(most.saturating_mul(SEARCHES), most.div_ceil(MINUTE), now) < most {
            return Err("too many digests of no record set: for a minute this agent looks for no more".to_owned());
        }
        if self.left(guesses, now) < most {
            return Err("too many digests of different times: for a second this agent looks for no more".to_owned());
        }
        Ok(())
    }

    /// How many blocks may be hashed now, for whatever it is.
    pub(super) fn left(&mut self, guesses: &Guesses, now: u64) -> u64 {
        let most = guesses.most_blocks;
        self.busy.left(most.saturating_mul(BUSY), most.div_ceil(BUSY_PART), now)
    }

    /// Counts what was hashed.
    pub(super) const fn spend(&mut self, work: &Work) {
        self.busy.spend(work);
    }

    /// Counts a search in vain.
    pub(super) const fn spend_in_vain(&mut self, work: &Work) {
        self.missed.spend(work);
    }
}

/// What all clients have used.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    own: HashMap<String, Budget>,
    others: Budget,
}

impl Budgets {
    /// Those of a client.
    pub(super) fn of(&mut self, client: &str, now: u64) -> &mut Budget {
        if self.own.len() >= MOST_CLIENTS && !self.own.contains_key(client) {
            self.own.retain(|_, budget| now.saturating_sub(budget.used) < IDLE);
        }
        let has_room = self.own.len() < MOST_CLIENTS || self.own.contains_key(client);
        let budget = if has_room { self.own.entry(client.to_owned()).or_default() } else { &mut self.others };
        budget.used = now;
        budget
    }

    /// What was looked for in vain may be in another copy.
    pub(super) fn forgive(&mut self) {
        for budget in self.own.values_mut().chain([&mut self.others]) {
            budget.misses.clear();
            budget.missed = Allowance::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_bounded_and_those_beyond_share() {
        let mut budgets = Budgets::default();
        for client in 0..100 {
            budgets.of(&client.to_string(), 1_000).miss([client; 32], 1_000);
        }
        assert_eq!(budgets.own.len(), MOST_CLIENTS);
        assert!(budgets.of("7", 1_001).is_miss(&[7; 32], 1_001));
        assert!(!budgets.of("7", 1_001).is_miss(&[8; 32], 1_001));
        assert!(budgets.of("98", 1_001).is_miss(&[99; 32], 1_001), "they share");
        // Who has not asked for a while has nothing to remember.
        budgets.of("99", 1_000 + IDLE);
        assert_eq!(budgets.own.len(), 2, "the one that has asked since, and the new one");
    }
}

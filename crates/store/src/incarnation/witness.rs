//! What one peer remembers of a node's store.

use std::collections::VecDeque;

use super::{Incarnation, Lineage, Opening, Rollback};

/// How many openings before the remembered one are still recognised, so that a late message of the node is told from a
/// message of a copy. Messages are overtaken by those of the next openings, not by a hundred of them.
const MOST_BEFORE: usize = 64;

/// What one peer remembers of a node's store: the head of the chain of its openings with the highest commit seen, and
/// whether another store was seen that is not on the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    seen: Option<Incarnation>,
    fork: Option<Incarnation>,
    /// The links before the head that were seen since this process started.
    before: VecDeque<[u8; 32]>,
}

/// How an incarnation that shows no rollback relates to the remembered one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Seen {
    /// It is the remembered opening or the next one, and is remembered from now on.
    Continues,
    /// It was sent before what is remembered.
    Late,
    /// It may be a continuation, which the node has to prove by links ([`Witness::prove`]). What was remembered stays.
    Unproven,
}

impl Witness {
    /// A witness that remembers `seen`, and a `fork` that did not continue it.
    #[must_use]
    pub fn new(seen: Option<Incarnation>, fork: Option<Incarnation>) -> Self {
        Self { seen, fork, before: VecDeque::new() }
    }

    /// The head, with the highest commit that was seen.
    #[must_use]
    pub const fn remembered(&self) -> Option<&Incarnation> {
        self.seen.as_ref()
    }

    /// The first incarnation of the same store that is not on the chain. It is remembered until a person ends that.
    #[must_use]
    pub const fn fork(&self) -> Option<&Incarnation> {
        self.fork.as_ref()
    }

    /// Examines the incarnation that a node states, and remembers it if it follows.
    ///
    /// # Errors
    /// [`Rollback`] if it cannot be a continuation; then what was remembered stays. Messages of one opening may arrive
    /// in any order, since a store cannot go back within an opening.
    pub fn observe(&mut self, now: &Incarnation) -> Result<Seen, Rollback> {
        let Some(seen) = self.seen else {
            self.seen = Some(*now);
            return Ok(Seen::Continues);
        };
        if seen.store_id != now.store_id {
            return Err(Rollback::OtherStore { remembered: seen.store_id, now: now.store_id });
        }
        let (before, present) = (seen.opening.generation, now.opening.generation);
        if present == before {
            if seen.opening != now.opening {
                return Err(self.forked(now, Rollback::Forked { generation: present }));
            }
            self.seen = Some(Incarnation { sequence: seen.sequence.max(now.sequence), ..seen });
            return Ok(Seen::Continues);
        }
        if present < before {
            // A message from before the node's last opening may arrive late, but then its link is on the chain.
            let late = self.before.contains(&now.opening.link);
            let older = Rollback::Older { remembered: seen.sequence, now: now.opening.opened_at };
            return if late { Ok(Seen::Late) } else { Err(older) };
        }
        if present > before.saturating_add(1) {
            return Ok(Seen::Unproven);
        }
        let next = seen.opening.next(&seen.store_id, now.opening.session, now.opening.opened_at);
        if next != now.opening {
            return Err(self.forked(now, Rollback::Forked { generation: present }));
        }
        self.follow(&[next], now).map(|()| Seen::Continues)
    }

    /// Examines the links that a node shows. Returns `false` if they do not answer what is remembered, or do not lead
    /// where they say: such links prove nothing.
    ///
    /// # Errors
    /// [`Rollback`] if the node's own history contradicts what is remembered.
    pub fn prove(&mut self, lineage: &Lineage) -> Result<bool, Rollback> {
        let (now, Some(seen)) = (lineage.now(), self.seen) else { return Ok(false) };
        if *lineage.claim() != seen.opening.link || now.store_id != seen.store_id {
            return Ok(false);
        }
        let Some(openings) = lineage.openings(&seen.store_id) else { return Ok(false) };
        let (generation, link) = *lineage.base();
        if link == seen.opening.link && generation == seen.opening.generation {
            return if openings.is_empty() { Ok(false) } else { self.follow(&openings, now).map(|()| true) };
        }
        // The node answers what is remembered, so it has seen that: this is no late message.
        let generation = generation.min(seen.opening.generation);
        if lineage.base().0 > seen.opening.generation {
            return Err(Rollback::Forgotten { generation: seen.opening.generation });
        }
        Err(self.forked(now, Rollback::Forked { generation }))
    }

    /// A person decides: remembers `now` in place of the head and of the fork. Returns `false` if `claim` is neither of
    /// them.
    pub fn overrule(&mut self, claim: &Incarnation, now: &Incarnation) -> bool {
        let known = [self.seen, self.fork].into_iter().flatten().any(|known| known.opening == claim.opening);
        if known {
            *self = Self::new(Some(*now), None);
        }
        known
    }

    fn follow(&mut self, openings: &[Opening], now: &Incarnation) -> Result<(), Rollback> {
        let Some(seen) = self.seen else { return Ok(()) };
        let known = openings.first().map_or(0, |first| first.opened_at.saturating_sub(1));
        // The next opening must have known every commit that was seen.
        if known < seen.sequence {
            return Err(self.forked(now, Rollback::Older { remembered: seen.sequence, now: known }));
        }
        self.before.push_back(seen.opening.link);
        let between = openings.split_last().map_or(&[][..], |(_, between)| between);
        self.before.extend(between.iter().map(|opening| opening.link));
        while self.before.len() > MOST_BEFORE {
            self.before.pop_front();
        }
        self.seen = Some(*now);
        Ok(())
    }

    fn forked(&mut self, now: &Incarnation, how: Rollback) -> Rollback {
        self.fork.get_or_insert(*now);
        how
    }
}

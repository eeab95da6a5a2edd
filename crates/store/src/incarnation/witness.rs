//! What one peer remembers of a node's store.

use std::collections::VecDeque;

use super::{Incarnation, Lineage, Opening, Rollback};

/// Openings before the remembered one that are still known for the node's own, so that a message that arrives late is told from
/// one of a copy. Messages are overtaken by those of the next openings, not by a hundred of them.
const MOST_BEFORE: usize = 64;

/// What one peer remembers of a node's store: the head of the chain of its openings with the highest commit seen, and whether
/// another store was seen that is not on the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    seen: Option<Incarnation>,
    fork: Option<Incarnation>,
    /// The links before the head, as far as they were seen since this process started.
    before: VecDeque<[u8; 32]>,
}

/// What is to be thought of an incarnation that is no rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Seen {
    /// It is the one that is remembered, or its next opening, and is remembered now.
    Continues,
    /// It was said before what is remembered.
    Late,
    /// It may be a continuation; the node has to show the links ([`Witness::prove`]). What was remembered stays.
    Unproven,
}

impl Witness {
    /// A witness that has seen this, and another one that was none of its continuations.
    #[must_use]
    pub fn new(seen: Option<Incarnation>, fork: Option<Incarnation>) -> Self {
        Self { seen, fork, before: VecDeque::new() }
    }

    /// The head, with the highest commit that was seen.
    #[must_use]
    pub const fn remembered(&self) -> Option<&Incarnation> {
        self.seen.as_ref()
    }

    /// The first that was seen of the same store and is not on the chain. It is remembered until a person ends it.
    #[must_use]
    pub const fn fork(&self) -> Option<&Incarnation> {
        self.fork.as_ref()
    }

    /// Looks at what a node says that its store is, and remembers it if it follows.
    ///
    /// # Errors
    /// [`Rollback`] if it cannot be a continuation; what was remembered stays. Messages of one opening may arrive in any order:
    /// within it nothing can go back.
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
            // What a node said before it was opened again may arrive late, but then it is on the chain.
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

    /// Looks at the links that a node shows. `false` if they do not answer what is remembered, or do not lead where they say:
    /// then nothing was shown.
    ///
    /// # Errors
    /// [`Rollback`] if the node's own history is another than what is remembered.
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
        // It knows what is remembered, since it answers it: so this is no message of before.
        let generation = generation.min(seen.opening.generation);
        if lineage.base().0 > seen.opening.generation {
            return Err(Rollback::Forgotten { generation: seen.opening.generation });
        }
        Err(self.forked(now, Rollback::Forked { generation }))
    }

    /// Remembers another head in place of this one and of the fork, by a person's word. `false` if the claim is none.
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
        // What came next has to have known all that was seen.
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

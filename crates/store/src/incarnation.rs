//! How a store that was copied and restored is found out.
//!
//! A file can be copied and put back. What it forgot, no file can know: only others do. So each store counts the times it
//! was opened (its *generation*) and the times it committed (its *sequence*), and a node says both, as an [`Incarnation`],
//! in what it sends after it burnt something. Its peers remember the highest, as a [`Witness`], and give it back when the
//! node returns:
//!
//! - the peer sees that the node is older than it was ([`Witness::observe`]);
//! - the node sees it for itself, and however often the copy was opened since, because it keeps the history of its openings
//!   ([`crate::Store::check_remembered`]).
//!
//! Either way, nothing that a peer ever saw after the copy was taken is unknown to the one who checks.

use core::fmt;

/// 16 random bytes that name a store, drawn when it is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreId(pub [u8; 16]);

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One opening of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Counts the openings, from 1.
    pub generation: u64,
    /// 16 random bytes: two copies that are opened have two of them.
    pub session: [u8; 16],
    /// The sequence of the commit that recorded the opening.
    pub opened_at: u64,
}

/// Which store, opened for which time, after how many commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// Which store.
    pub store_id: StoreId,
    /// Its present opening.
    pub opening: Opening,
    /// How many commits it has made in its life.
    pub sequence: u64,
}

impl Incarnation {
    /// Length of an encoded incarnation in bytes.
    pub const ENCODED_LEN: usize = 16 + 8 + 16 + 8 + 8;

    /// Store, session, generation, commit of the opening, commits: numbers in big-endian order.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { store_id, opening, sequence } = self;
        let numbers = [opening.generation, opening.opened_at, *sequence].map(u64::to_be_bytes);
        [&store_id.0[..], &opening.session, numbers.as_flattened()].concat()
    }

    /// Reads what [`Incarnation::encode`] wrote; `None` for another number of bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk()?;
        let (session, rest) = rest.split_first_chunk()?;
        let ([generation, opened_at, sequence], []) = rest.as_chunks() else { return None };
        let [generation, opened_at, sequence] =
            [generation, opened_at, sequence].map(|bytes| u64::from_be_bytes(*bytes));
        let opening = Opening { generation, session: *session, opened_at };
        Some(Self { store_id: StoreId(*id), opening, sequence })
    }
}

/// A store is not the continuation of what was seen of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rollback {
    /// Another store: new, or restored from a backup. A person has to say that this is meant.
    #[error("this is store {now}, it was store {remembered}: it was replaced; confirm that this is meant")]
    OtherStore {
        /// What was seen.
        remembered: StoreId,
        /// What it is.
        now: StoreId,
    },
    /// An older copy was put in its place.
    #[error(
        "the store went back in time: commit {remembered} was seen of it, this copy was opened after commit {now}: \
         an old copy was put in its place"
    )]
    Older {
        /// The highest commit seen.
        remembered: u64,
        /// What this copy knew when it was opened.
        now: u64,
    },
    /// Two copies of it were opened.
    #[error("two copies of this store were opened, both for the time number {generation}: stop one of them")]
    Forked {
        /// The opening that happened twice.
        generation: u64,
    },
}

/// What one peer remembers of a node's store: its highest incarnation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Witness(Option<Incarnation>);

impl Witness {
    /// A witness that has seen this, or nothing yet.
    #[must_use]
    pub const fn new(seen: Option<Incarnation>) -> Self {
        Self(seen)
    }

    /// The highest incarnation that was seen.
    #[must_use]
    pub const fn remembered(&self) -> Option<&Incarnation> {
        self.0.as_ref()
    }

    /// Whether the store can be the one that was seen.
    ///
    /// # Errors
    /// [`Rollback`] if it cannot. Messages of one opening may arrive in any order: within it nothing can go back.
    pub fn check(&self, now: &Incarnation) -> Result<(), Rollback> {
        let Some(seen) = &self.0 else { return Ok(()) };
        if seen.store_id != now.store_id {
            return Err(Rollback::OtherStore { remembered: seen.store_id, now: now.store_id });
        }
        if seen.opening.generation == now.opening.generation {
            return if seen.opening == now.opening {
                Ok(())
            } else {
                Err(Rollback::Forked { generation: now.opening.generation })
            };
        }
        if now.opening.generation > seen.opening.generation && now.opening.opened_at > seen.sequence {
            return Ok(());
        }
        Err(Rollback::Older { remembered: seen.sequence, now: now.opening.opened_at })
    }

    /// Checks, and remembers if it is higher.
    ///
    /// # Errors
    /// As [`Witness::check`]; what was remembered stays.
    pub fn observe(&mut self, now: &Incarnation) -> Result<(), Rollback> {
        self.check(now)?;
        if self.0.is_none_or(|seen| now.sequence > seen.sequence) {
            self.0 = Some(*now);
        }
        Ok(())
    }
}

/// Checks what a peer remembers of us against our own history: `openings` are those from the remembered generation on,
/// ascending, `now` is what we are.
///
/// # Errors
/// [`Rollback`] if a copy of us did something that is not in our history.
pub(crate) fn check_remembered(
    remembered: &Incarnation,
    openings: &[Opening],
    now: &Incarnation,
) -> Result<(), Rollback> {
    if remembered.store_id != now.store_id {
        return Err(Rollback::OtherStore { remembered: remembered.store_id, now: now.store_id });
    }
    let generation = remembered.opening.generation;
    if generation > now.opening.generation {
        return Err(Rollback::Older { remembered: remembered.sequence, now: now.sequence });
    }
    if openings.iter().any(|opening| opening.generation == generation && *opening != remembered.opening) {
        return Err(Rollback::Forked { generation });
    }
    // What came next has to have known all that was seen.
    let next = openings.iter().find(|opening| opening.generation > generation);
    let known = next.map_or(now.sequence, |next| next.opened_at.saturating_sub(1));
    if known >= remembered.sequence {
        Ok(())
    } else {
        Err(Rollback::Older { remembered: remembered.sequence, now: known })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(generation: u64, session: u8, opened_at: u64) -> Opening {
        Opening { generation, session: [session; 16], opened_at }
    }

    fn at(opening: Opening, sequence: u64) -> Incarnation {
        Incarnation { store_id: StoreId([1; 16]), opening, sequence }
    }

    #[test]
    fn an_incarnation_is_read_as_it_was_written() {
        let now = at(opening(5, 6, 40), 60);
        let bytes = now.encode();
        assert_eq!((bytes.len(), Incarnation::decode(&bytes)), (Incarnation::ENCODED_LEN, Some(now)));
        assert_eq!(Incarnation::decode(&bytes[1..]), None);
        assert_eq!(Incarnation::decode(&[&bytes[..], &[0]].concat()), None);
    }

    #[test]
    fn a_store_that_goes_on_is_believed() {
        let mut witness = Witness::default();
        let first = opening(1, 1, 1);
        for now in [at(first, 1), at(first, 9), at(first, 4), at(opening(2, 2, 10), 10), at(opening(5, 5, 40), 41)] {
            witness.observe(&now).unwrap();
        }
        assert_eq!(witness.remembered().unwrap().sequence, 41);
    }

    #[test]
    fn a_copy_from_the_past_is_found_out() {
        let witness = Witness::new(Some(at(opening(5, 5, 40), 60)));
        let older = Rollback::Older { remembered: 60, now: 51 };
        assert_eq!(witness.check(&at(opening(6, 6, 51), 51)), Err(older));
        // Even if it has meanwhile committed more than the one that was seen.
        assert_eq!(witness.check(&at(opening(6, 6, 51), 99)), Err(older));
        assert!(matches!(witness.check(&at(opening(4, 4, 30), 39)), Err(Rollback::Older { .. })));
        assert_eq!(witness.check(&at(opening(5, 7, 31), 31)), Err(Rollback::Forked { generation: 5 }));
        let other = Incarnation { store_id: StoreId([2; 16]), ..at(opening(6, 6, 99), 99) };
        assert!(matches!(witness.check(&other), Err(Rollback::OtherStore { .. })));
    }

    #[test]
    fn history_tells_what_a_single_glance_does_not() {
        let remembered = at(opening(5, 5, 40), 60);
        // A copy taken at 50 was opened, did much, and was opened again: generation and sequence are higher than remembered.
        let now = at(opening(7, 7, 200), 201);
        assert_eq!(Witness::new(Some(remembered)).check(&now), Ok(()));
        let copied = [opening(5, 5, 40), opening(6, 6, 51), opening(7, 7, 200)];
        let older = Rollback::Older { remembered: 60, now: 50 };
        assert_eq!(check_remembered(&remembered, &copied, &now), Err(older));
        let honest = [opening(5, 5, 40), opening(6, 6, 61), opening(7, 7, 200)];
        assert_eq!(check_remembered(&remembered, &honest, &now), Ok(()));
        let forked = [opening(5, 9, 40), opening(6, 6, 61), opening(7, 7, 200)];
        assert_eq!(check_remembered(&remembered, &forked, &now), Err(Rollback::Forked { generation: 5 }));
    }
}

//! How peers detect that a copy of a store was put back.
//!
//! A file can be copied and put back, and no file can know what it has forgotten: only others can. So each store counts
//! how often it was opened (its *generation*) and how often it committed (its *sequence*), and each opening is a link
//! of a chain of hashes: it covers the link before, a random *session*, and the commit that it followed. A node sends
//! all that, as an [`Incarnation`], when it greets a peer and after it has decided something once and for all. Its
//! peers remember the head of the chain, as a [`Witness`], and send it back:
//!
//! - The peer accepts another head only with the links that lead to it from the one that it remembers, and the first of
//!   these links must have known every commit that was seen ([`Witness::observe`], [`Witness::prove`]). A copy that was
//!   put back has no such links, and cannot find any however often it is opened, since that would be a collision of the
//!   hash.
//! - The node itself notices, too, since it keeps the history of its openings ([`crate::Store::check_remembered`]).

mod lineage;
mod witness;

use core::fmt;

use theta_names::codec::{DecodeError, Reader, Writer};

pub use lineage::Lineage;
pub(crate) use lineage::check_remembered;
pub use witness::{Seen, Witness};

const CONTEXT: &str = "theta store opening chain v1";

/// 16 random bytes that identify a store, drawn when it is created.
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
    /// The number of the opening, from 1.
    pub generation: u64,
    /// 16 random bytes: two copies that are opened draw different ones.
    pub session: [u8; 16],
    /// The sequence of the commit that recorded the opening.
    pub opened_at: u64,
    /// The hash of all this and of the link before: it commits to all openings up to this one.
    pub link: [u8; 32],
}

impl Opening {
    /// The first opening of a store.
    #[must_use]
    pub fn first(store: &StoreId, session: [u8; 16]) -> Self {
        Self::after(store, (0, &[0; 32]), session, 1)
    }

    /// The next opening.
    #[must_use]
    pub fn next(&self, store: &StoreId, session: [u8; 16], opened_at: u64) -> Self {
        Self::after(store, (self.generation, &self.link), session, opened_at)
    }

    /// The opening that follows the one of this generation and link.
    pub(crate) fn after(store: &StoreId, (before, link): (u64, &[u8; 32]), session: [u8; 16], opened_at: u64) -> Self {
        let generation = before.saturating_add(1);
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        hasher.update(link).update(&store.0).update(&generation.to_be_bytes());
        hasher.update(&session).update(&opened_at.to_be_bytes());
        Self { generation, session, opened_at, link: *hasher.finalize().as_bytes() }
    }
}

/// A store, its present opening, and its number of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// Which store.
    pub store_id: StoreId,
    /// Its present opening.
    pub opening: Opening,
    /// How many commits the store has made since it was created.
    pub sequence: u64,
}

impl Incarnation {
    /// Length of an encoded incarnation in bytes.
    pub const ENCODED_LEN: usize = 16 + 16 + 32 + 8 + 8 + 8;

    /// Encodes store, session, link, generation, commit of the opening, and number of commits; numbers are big-endian.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { store_id, opening, sequence } = self;
        let writer = Writer::default().raw(&store_id.0).raw(&opening.session).raw(&opening.link);
        writer.u64(opening.generation).u64(opening.opened_at).u64(*sequence).finish()
    }

    /// Reads what [`Incarnation::encode`] wrote; `None` for another number of bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let incarnation = Self::read(&mut reader).ok()?;
        reader.end(incarnation).ok()
    }

    /// Reads an incarnation among other fields.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (id, session, link) = (reader.array()?, reader.array()?, reader.array()?);
        let (generation, opened_at, sequence) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let opening = Opening { generation, session, opened_at, link };
        Ok(Self { store_id: StoreId(id), opening, sequence })
    }
}

/// The reason why a store does not continue what was seen of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rollback {
    /// It is another store: new, or restored from a backup. A person has to confirm that this is meant.
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
        /// The highest commit that was seen.
        remembered: u64,
        /// The last commit that this copy knew when it was opened.
        now: u64,
    },
    /// Two copies of the store were opened.
    #[error("two copies of this store were opened, both for the time number {generation}: stop one of them")]
    Forked {
        /// The generation that was opened twice.
        generation: u64,
    },
    /// The store has been opened so often since that it has forgotten the opening, so nobody but a person can tell.
    #[error(
        "it was opened so often that it has forgotten its opening number {generation}, and cannot show that it goes on from there; \
         confirm that this is meant"
    )]
    Forgotten {
        /// The generation of the forgotten opening.
        generation: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: StoreId = StoreId([1; 16]);

    /// Openings at these commits, from the first, with sessions that begin with `session`.
    fn openings(session: u8, commits: &[u64]) -> Vec<Opening> {
        let mut all = vec![Opening::first(&STORE, [session; 16])];
        for (number, at) in commits.iter().enumerate() {
            let mut next = [session; 16];
            next[15] = u8::try_from(number).unwrap();
            let opening = all.last().unwrap().next(&STORE, next, *at);
            all.push(opening);
        }
        all
    }

    fn at(opening: Opening, sequence: u64) -> Incarnation {
        Incarnation { store_id: STORE, opening, sequence }
    }

    fn lineage(openings: &[Opening], from: u64, sequence: u64) -> Lineage {
        let claim = openings[usize::try_from(from).unwrap() - 1].link;
        let known: Vec<Opening> = openings.iter().copied().filter(|opening| opening.generation >= from).collect();
        Lineage::of(claim, &known, at(*openings.last().unwrap(), sequence)).unwrap()
    }

    #[test]
    fn an_incarnation_is_read_as_it_was_written() {
        let now = at(openings(5, &[40]).pop().unwrap(), 60);
        let bytes = now.encode();
        assert_eq!((bytes.len(), Incarnation::decode(&bytes)), (Incarnation::ENCODED_LEN, Some(now)));
        assert_eq!(Incarnation::decode(&bytes[1..]), None);
        assert_eq!(Incarnation::decode(&[&bytes[..], &[0]].concat()), None);
    }

    #[test]
    fn a_store_that_goes_on_is_believed() {
        let mut witness = Witness::default();
        let all = openings(1, &[10, 20, 30, 40]);
        for (now, seen) in [
            (at(all[0], 1), Seen::Continues),
            (at(all[0], 9), Seen::Continues),
            (at(all[0], 4), Seen::Continues),
            // The next opening needs no links: it follows by itself.
            (at(all[1], 10), Seen::Continues),
            // Of what was said before it, the last arrives late.
            (at(all[0], 9), Seen::Late),
            // Further openings are believed with their links.
            (at(all[4], 41), Seen::Unproven),
        ] {
            assert_eq!(witness.observe(&now), Ok(seen));
        }
        assert_eq!(witness.remembered().unwrap().sequence, 10);
        let shown = lineage(&all, 2, 41);
        assert_eq!(Lineage::decode(&shown.encode()), Some(shown.clone()));
        assert_eq!(witness.prove(&shown), Ok(true));
        assert_eq!(witness.remembered(), Some(&at(all[4], 41)));
        assert_eq!(witness.prove(&shown), Ok(false), "it answers what is remembered no more");
        assert_eq!(witness.observe(&at(all[2], 25)), Ok(Seen::Late));
        assert_eq!(witness.fork(), None);
    }

    #[test]
    fn a_copy_never_passes_for_what_was_copied() {
        let original = openings(5, &[10, 20, 30]);
        let seen = at(original[3], 60);
        let witness = || Witness::new(Some(seen), None);
        // Taken at commit 50 of the last opening, and opened once or often, with more commits than were ever seen.
        for opened in 1..40_u64 {
            let mut copy = original.clone();
            for number in 0..opened {
                let next = copy.last().unwrap().next(&STORE, [6; 16], 51 + 1_000 * number);
                copy.push(next);
            }
            let now = at(*copy.last().unwrap(), 100_000);
            let mut peer = witness();
            let first = peer.observe(&now);
            let shown = if opened == 1 { first.map(|_| true) } else { peer.prove(&lineage(&copy, 4, 100_000)) };
            assert_eq!(shown, Err(Rollback::Older { remembered: 60, now: 50 }), "opened {opened} times");
            assert_eq!((peer.remembered(), peer.fork()), (Some(&seen), Some(&now)), "it is remembered as what it is");
            let later = Witness::new(peer.remembered().copied(), peer.fork().copied());
            assert_eq!(later.fork(), Some(&now));
        }
        // Taken in an opening before.
        let other = openings(5, &[10, 20]).pop().unwrap().next(&STORE, [7; 16], 21);
        assert_eq!(witness().observe(&at(other, 22)), Err(Rollback::Forked { generation: 4 }));
        let mut peer = witness();
        let older = original[2].next(&STORE, [8; 16], 25).next(&STORE, [8; 16], 70);
        assert_eq!(peer.observe(&at(older, 71)), Err(Rollback::Forked { generation: 5 }));
        assert_eq!(witness().observe(&at(original[1], 15)), Err(Rollback::Older { remembered: 60, now: 10 }));
        let elsewhere = Incarnation { store_id: StoreId([2; 16]), ..seen };
        assert!(matches!(witness().observe(&elsewhere), Err(Rollback::OtherStore { .. })));
    }

    #[test]
    fn made_up_links_show_nothing() {
        let original = openings(5, &[10, 20, 30]);
        let mut witness = Witness::new(Some(at(original[1], 12)), None);
        let shown = lineage(&original, 2, 31);
        let bytes = shown.encode();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            let Some(changed) = Lineage::decode(&changed) else { continue };
            let before = witness.clone();
            let proved = witness.prove(&changed);
            // The commits are no part of the chain: it is for the node to tell the truth about them.
            assert!(proved != Ok(true) || witness.remembered().unwrap().opening == original[3], "byte {place}");
            witness = before;
        }
        for len in 0..bytes.len() {
            assert!(Lineage::decode(&bytes[..len]).is_none_or(|cut| witness.clone().prove(&cut) == Ok(false)));
        }
        assert!(Lineage::decode(&[&bytes[..], &[0; 24].repeat(5_000)].concat()).is_none());
    }

    #[test]
    fn history_tells_what_a_single_glance_does_not() {
        let original = openings(5, &[10, 20, 30]);
        let remembered = at(original[2], 26);
        let now = at(original[3], 201);
        assert_eq!(check_remembered(&remembered, &original[2..], &now), Ok(()));
        let copied = original[2].next(&STORE, [6; 16], 24);
        let older = Rollback::Older { remembered: 26, now: 23 };
        assert_eq!(check_remembered(&remembered, &[original[2], copied], &at(copied, 300)), Err(older));
        let forked = [original[1].next(&STORE, [9; 16], 20)];
        assert_eq!(check_remembered(&remembered, &forked, &now), Err(Rollback::Forked { generation: 3 }));
        assert_eq!(check_remembered(&remembered, &original[3..], &now), Err(Rollback::Forgotten { generation: 3 }));
        let ahead = at(original[3], 40);
        assert!(matches!(check_remembered(&ahead, &[], &at(original[2], 99)), Err(Rollback::Older { .. })));
    }
}

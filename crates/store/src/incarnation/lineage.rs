//! The links from one opening to another.

use theta_names::codec::{DecodeError, Reader, Writer};

use super::{Incarnation, Opening, Rollback, StoreId};

/// The most links that are shown at a time: as many as a store keeps.
const MOST_LINKS: usize = 4096;
/// The length of a link, in bytes: session and commit.
const LINK_LEN: usize = 16 + 8;
/// The length of the rest, in bytes: claim, incarnation, generation and link of the base.
const FIXED_LEN: usize = 32 + Incarnation::ENCODED_LEN + 8 + 32;

/// What a node shows to a peer that remembers another opening than the present one: its own opening of that generation,
/// and the links from there to the present one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// The link that the peer remembers and that this answers.
    claim: [u8; 32],
    /// The present incarnation of the store.
    now: Incarnation,
    /// Generation and link of the opening after which the links begin.
    base: (u64, [u8; 32]),
    /// Session and commit of each opening since then, in ascending order.
    links: Vec<([u8; 16], u64)>,
}

impl Lineage {
    /// Makes a lineage from `openings`, in ascending order: the links begin after the first, and the last is the
    /// present one; `None` if `openings` is empty.
    pub(crate) fn of(claim: [u8; 32], openings: &[Opening], now: Incarnation) -> Option<Self> {
        let (base, since) = openings.split_first()?;
        let links = since.iter().map(|opening| (opening.session, opening.opened_at)).collect();
        Some(Self { claim, now, base: (base.generation, base.link), links })
    }

    /// The link that this answers.
    #[must_use]
    pub const fn claim(&self) -> &[u8; 32] {
        &self.claim
    }

    /// The present incarnation of the store.
    #[must_use]
    pub const fn now(&self) -> &Incarnation {
        &self.now
    }

    pub(super) const fn base(&self) -> &(u64, [u8; 32]) {
        &self.base
    }

    /// The openings since the base, if they lead to the present one.
    pub(super) fn openings(&self, store: &StoreId) -> Option<Vec<Opening>> {
        let (mut before, mut link) = self.base;
        let mut openings = Vec::with_capacity(self.links.len());
        for (session, opened_at) in &self.links {
            let opening = Opening::after(store, (before, &link), *session, *opened_at);
            (before, link) = (opening.generation, opening.link);
            openings.push(opening);
        }
        let leads = (before, link) == (self.now.opening.generation, self.now.opening.link);
        // The link is a hash over the rest of the opening; only here is it compared with the opening that the node
        // states.
        let told = openings.last().is_none_or(|last| *last == self.now.opening);
        (leads && told).then_some(openings)
    }

    /// Claim, incarnation, generation and link of the base, then session and commit of each opening.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { claim, now, base: (generation, link), links } = self;
        let writer = Writer::default().raw(claim).raw(&now.encode()).u64(*generation).raw(link);
        let links = links.iter();
        links.fold(writer, |writer, (session, opened_at)| writer.raw(session).u64(*opened_at)).finish()
    }

    /// Reads what [`Lineage::encode`] wrote; `None` for anything else, and for more than 4096 links.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        // Checked before anything is allocated for the links.
        if bytes.len() > FIXED_LEN + MOST_LINKS * LINK_LEN {
            return None;
        }
        Self::read(Reader::new(bytes)).ok()
    }

    fn read(mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        let (claim, now) = (reader.array()?, Incarnation::read(&mut reader)?);
        let base = (reader.u64()?, reader.array()?);
        let links = reader.all(|reader| Ok::<_, DecodeError>((reader.array()?, reader.u64()?)))?;
        Ok(Self { claim, now, base, links })
    }
}

/// Checks what a peer remembers of this store against its history: `openings` are those from the remembered generation
/// on, as far as they are kept, in ascending order; `now` is the present incarnation.
///
/// # Errors
/// [`Rollback`] if a copy of this store did something that is not in its history, or its history does not reach back so
/// far.
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
    match openings.first() {
        // The link commits to all earlier openings, too.
        Some(opening) if opening.generation == generation => {
            if *opening != remembered.opening {
                return Err(Rollback::Forked { generation });
            }
        }
        _ => return Err(Rollback::Forgotten { generation }),
    }
    // The next opening must have known every commit that was seen.
    let known = openings.get(1).map_or(now.sequence, |next| next.opened_at.saturating_sub(1));
    if known >= remembered.sequence {
        Ok(())
    } else {
        Err(Rollback::Older { remembered: remembered.sequence, now: known })
    }
}

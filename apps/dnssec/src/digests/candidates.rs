//! What a signer may sign: the record sets of the operator's copy, and those that it adds, as far as they follow from the copy and the keys.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::{added::key_sets, moments::Moment, work::Work};
use crate::{
    denial::{Added, Denial},
    keys::{Keys, Signer},
    owner::Owner,
    signed::SignedSet,
    ttl,
    zone::{Zone, rtype},
};

/// RRSIG's fields before the signer's name (RFC 4034, section 3.1).
const HEAD: usize = 18;
/// From the end of the signed bytes of a SOA record to its serial (RFC 1035, section 3.3.13).
const SERIAL_BEFORE_END: usize = 20;

/// How far from the copy's serial one is looked for, if another one is known.
const AGAIN: u32 = 64;

/// A SHA-256 digest of what a signature covers.
pub type Digest = [u8; 32];

/// Which of the candidates it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The set at this place.
    Set(usize),
    /// The start of authority with this serial.
    Start(u32),
}

/// All that may be signed with keys whose signers send digests. Each is the signed bytes ([`SignedSet::write`]) in which algorithm, times and
/// tag are yet to be put.
#[derive(Debug, Default)]
pub struct Candidates {
    sets: Vec<Box<[u8]>>,
    /// From this place on each set has the only form that it may have, and they are in the order in which signers go through a zone.
    ordered: usize,
    start: Box<[u8]>,
    serial: u32,
    signers: Vec<Signer>,
}

impl Candidates {
    /// Those of a zone, of what denies names in it, and of its keys, which have one of the times to live of [`ttl::of_keys`]. There are none
    /// if no key is one of digests.
    #[must_use]
    pub fn new(zone: &Zone, denial: &Denial, keys: &Keys, key_ttls: &[u32]) -> Self {
        let signers = keys.signers_of_digests();
        let apex = zone.apex();
        let Some(start) = zone.set(apex, rtype::SOA) else { return Self::default() };
        if signers.is_empty() {
            return Self::default();
        }
        let (mut sets, mut in_order) = (key_sets(zone, keys, key_ttls), Vec::new());
        let mut denials = denial.added(zone).peekable();
        for (owner, kinds) in zone.names() {
            for kind in kinds.filter(|kind| *kind != rtype::SOA && zone.answers(owner, *kind)) {
                let own = zone.set(owner, kind);
                in_order.extend(own.map(|set| template(zone, owner, kind, set.ttl, set.data.clone())));
            }
            // Both are in canonical order. Hashed names come after all others.
            while let Some(denial) = denials.next_if(|denial| denial.owner == *owner) {
                add_denial(zone, &denial, &mut in_order, &mut sets);
            }
        }
        denials.for_each(|denial| add_denial(zone, &denial, &mut in_order, &mut sets));
        let ordered = sets.len();
        sets.append(&mut in_order);
        let start = template(zone, apex, rtype::SOA, start.ttl, start.data.clone());
        let serial = parts(&start).map_or(0, |(_, serial, _)| serial);
        Self { sets, ordered, start, serial, signers }
    }

    /// Who may sign.
    #[must_use]
    pub fn signers(&self) -> &[Signer] {
        &self.signers
    }

    /// How many sets there are beside the start of authority.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.sets.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// The bytes that are signed.
    #[must_use]
    pub fn bytes(&self, which: Which, signer: Signer, moment: Moment) -> Option<Vec<u8>> {
        match which {
            Which::Set(place) => bytes_of(self.sets.get(place)?, signer, moment),
            Which::Start(serial) => {
                let (before, _, after) = parts(&self.start)?;
                Some([&head(&self.start, signer, moment)?[..], before, &serial.to_be_bytes(), after].concat())
            }
        }
    }

    /// Looks for a digest among the sets, and then of the start of authority with one of these serials. `None` also when the work is done.
    pub fn find(
        &self,
        sought: &Digest,
        signer: Signer,
        moment: Moment,
        serials: &Serials,
        work: &mut Work,
    ) -> Option<Which> {
        let set = self.find_set(sought, signer, moment, work);
        set.or_else(|| self.find_start(sought, signer, moment, serials, work))
    }

    /// Looks for a digest among the sets, without the start of authority. `None` also when the work is done.
    fn find_set(&self, sought: &Digest, signer: Signer, moment: Moment, work: &mut Work) -> Option<Which> {
        let mut digests = self.digests(signer, moment, work);
        digests.find(|(_, digest)| digest == sought).map(|(place, _)| Which::Set(place))
    }

    /// The digests of the sets, each with its place, while there is work left.
    pub fn digests(&self, signer: Signer, moment: Moment, work: &mut Work) -> impl Iterator<Item = (usize, Digest)> {
        self.digests_from(0, signer, moment, work)
    }

    /// Those of sets that have one form each, in the order in which signers go through a zone: from so many before this one on, without itself. If
    /// it is none of them, as a set of keys or the start of authority, from the first on.
    pub fn around(
        &self,
        which: Which,
        before: usize,
        signer: Signer,
        moment: Moment,
        work: &mut Work,
    ) -> impl Iterator<Item = (usize, Digest)> {
        let own = match which {
            Which::Set(place) if place >= self.ordered => Some(place),
            Which::Set(_) | Which::Start(_) => None,
        };
        let from = match own {
            // Nothing before it is wanted, and its own digest would be computed in vain.
            Some(place) if before == 0 => place.saturating_add(1),
            own => own.map_or(0, |place| place.saturating_sub(before)).max(self.ordered),
        };
        self.digests_from(from, signer, moment, work).filter(move |(place, _)| Some(*place) != own)
    }

    fn digests_from(
        &self,
        from: usize,
        signer: Signer,
        moment: Moment,
        work: &mut Work,
    ) -> impl Iterator<Item = (usize, Digest)> {
        self.sets.iter().enumerate().skip(from).map_while(move |(place, set)| {
            work.take(set.len())?;
            Some((place, digest_of(set, signer, moment)?))
        })
    }

    /// Looks for a digest of the start of authority with one of these serials. `None` also when the work is done.
    pub fn find_start(
        &self,
        sought: &Digest,
        signer: Signer,
        moment: Moment,
        serials: &Serials,
        work: &mut Work,
    ) -> Option<Which> {
        let head = head(&self.start, signer, moment)?;
        let (before, _, after) = parts(&self.start)?;
        let hash = Sha256::new().chain_update(head).chain_update(before);
        for serial in serials.all(self.serial, moment.time) {
            work.take(self.start.len())?;
            let digest: Digest = hash.clone().chain_update(serial.to_be_bytes()).chain_update(after).finalize().into();
            if digest == *sought {
                return Some(Which::Start(serial));
            }
        }
        None
    }
}

/// Which serials a start of authority may have: signers count on, from that of the copy or from the last one, or take the time.
#[derive(Clone, Copy, Debug)]
pub struct Serials {
    /// The last one that was recognised.
    pub last: Option<u32>,
    /// How far a signer may have counted on.
    pub reach: u32,
    /// How many seconds after the event's beginning the zone may have got its serial, if that is the time.
    pub seconds: u32,
}

impl Serials {
    fn all(self, own: u32, time: u64) -> impl Iterator<Item = u32> {
        let counted = move |from: u32, reach| (0..=reach).map(move |on| from.wrapping_add(on));
        // A copy that is new has a serial of its own.
        let again = self.last.map(|_| counted(own, self.reach.min(AGAIN)));
        let times = counted(super::moments::low(time), self.seconds);
        counted(self.last.unwrap_or(own), self.reach).chain(again.into_iter().flatten()).chain(times)
    }
}

/// Adds what denies a name: to those in order if it has one form, and otherwise the rest. Of several times to live signers of today have the
/// first (RFC 9077, section 3).
fn add_denial(zone: &Zone, denial: &Added, in_order: &mut Vec<Box<[u8]>>, others: &mut Vec<Box<[u8]>>) {
    let Added { owner, rtype: kind, data } = denial;
    let is_one = data.len() == 1 && *kind != rtype::NSEC3PARAM;
    for (number, ttl) in ttl::of_denial(zone, *kind).into_iter().enumerate() {
        let sets = if is_one && number == 0 { &mut *in_order } else { &mut *others };
        sets.extend(data.iter().map(|data| template(zone, owner, *kind, ttl, [data.clone()].into())));
    }
}

/// Signed bytes without algorithm, times and tag.
pub(super) fn template(zone: &Zone, owner: &Owner, rtype: u16, ttl: u32, data: BTreeSet<Vec<u8>>) -> Box<[u8]> {
    let labels = u8::try_from(owner.labels()).unwrap_or(u8::MAX);
    let (signer, owner) = (zone.apex().clone(), owner.clone());
    let set = SignedSet { rtype, algorithm: 0, labels, ttl, expiration: 0, inception: 0, tag: 0, signer, owner, data };
    set.write().into_boxed_slice()
}

/// What is signed, with what was missing.
pub(super) fn bytes_of(set: &[u8], signer: Signer, moment: Moment) -> Option<Vec<u8>> {
    Some([&head(set, signer, moment)?[..], set.get(HEAD..)?].concat())
}

/// The digest of that.
pub(super) fn digest_of(set: &[u8], signer: Signer, moment: Moment) -> Option<Digest> {
    let hash = Sha256::new().chain_update(head(set, signer, moment)?).chain_update(set.get(HEAD..)?);
    Some(hash.finalize().into())
}

/// RRSIG's first fields with what was missing.
fn head(set: &[u8], signer: Signer, moment: Moment) -> Option<[u8; HEAD]> {
    let [kind_a, kind_b, _, labels, ttl_a, ttl_b, ttl_c, ttl_d, ..] = *set.first_chunk::<HEAD>()?;
    let [end_a, end_b, end_c, end_d] = moment.expiration().to_be_bytes();
    let [begin_a, begin_b, begin_c, begin_d] = moment.inception().to_be_bytes();
    let ([tag_a, tag_b], algorithm) = (signer.tag.to_be_bytes(), signer.algorithm);
    // Millions of these are made: without taking memory.
    Some([
        kind_a, kind_b, algorithm, labels, ttl_a, ttl_b, ttl_c, ttl_d, end_a, end_b, end_c, end_d, begin_a, begin_b,
        begin_c, begin_d, tag_a, tag_b,
    ])
}

/// What is before the serial of a start of authority (without RRSIG's first fields), the serial, and what is after it.
fn parts(start: &[u8]) -> Option<(&[u8], u32, &[u8])> {
    let (before, numbers) = start.split_at_checked(start.len().checked_sub(SERIAL_BEFORE_END)?)?;
    let (serial, after) = numbers.split_first_chunk::<4>()?;
    Some((before.get(HEAD..)?, u32::from_be_bytes(*serial), after))
}

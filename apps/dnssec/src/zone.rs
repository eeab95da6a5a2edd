//! The operator's copy of the zone, unsigned, from a file.

mod parentheses;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use domain::{
    base::{
        Record,
        iana::{Class, Rtype},
        name::{Name, ToName},
        rdata::ComposeRecordData,
    },
    zonefile::inplace::{Entry, Zonefile},
};

use crate::owner::Owner;

/// Types of records, as the registry of DNS parameters numbers them.
pub mod rtype {
    /// A delegation, or the zone's own servers.
    pub const NS: u16 = 2;
    /// The start of authority.
    pub const SOA: u16 = 6;
    /// A redirection of everything beneath.
    pub const DNAME: u16 = 39;
    /// The digest of a delegation's key.
    pub const DS: u16 = 43;
    /// A signature.
    pub const RRSIG: u16 = 46;
    /// The next name, and the types at this one.
    pub const NSEC: u16 = 47;
    /// A key of the zone.
    pub const DNSKEY: u16 = 48;
    /// The same by hashes.
    pub const NSEC3: u16 = 50;
    /// How these are hashed.
    pub const NSEC3PARAM: u16 = 51;
    /// A digest of a key for the parent.
    pub const CDS: u16 = 59;
    /// A key for the parent.
    pub const CDNSKEY: u16 = 60;
    /// How far BIND is with signing by a key: of the types for private use (RFC 6895, section 3.1) the one that it takes, at the top of a zone.
    pub const SIGNING: u16 = 65_534;
}

/// The largest file in bytes.
pub const MOST_FILE: u64 = 1 << 30;

/// Why there is no zone.
#[derive(Debug, thiserror::Error)]
pub enum ZoneError {
    /// The origin is no name.
    #[error("{0:?} is not the name of a zone; write it with its dot, as in example.org.")]
    Origin(String),
    /// The text is not a zone: where, and why not.
    #[error(
        "the zone cannot be read beyond line and column {0}: write what is there, or before, as section 5 of RFC 1035 has it"
    )]
    Syntax(String),
    /// A parenthesis is open where the text ends: the line that opens it.
    #[error("line {0} opens a parenthesis that nothing closes: write ) where the record ends that begins there")]
    Unclosed(usize),
    /// A record is longer than DNS has them.
    #[error("the zone cannot be read: {0}")]
    Long(&'static str),
    /// A record is not of the zone.
    #[error(
        "{0} is not in the zone {1}: leave it out, or end its name as that of the zone ends; --origin says which zone it is"
    )]
    Outside(Owner, Owner),
    /// Another class than that of the Internet.
    #[error("{0} is of another class than IN: leave it out")]
    Class(Owner),
    /// A line that includes another file.
    #[error("$INCLUDE is not followed: write the zone in one file")]
    Include,
    /// There is no SOA record at the top, or more than one.
    #[error("the zone has no SOA record at its top, {0}, or several: write one there; --origin says which zone it is")]
    NoStart(Owner),
    /// Differences take away what is not there.
    #[error("differences take a record away that is not in the copy: {0} {1}")]
    Absent(Owner, Rtype),
    /// Differences add what is there.
    #[error(
        "differences add a record that is in the copy already, or whose set has another time to live there: {0} {1}"
    )]
    Present(Owner, Rtype),
}

/// Records of one name and type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// The time to live in seconds.
    pub ttl: u32,
    /// The data in canonical form.
    pub data: BTreeSet<Vec<u8>>,
}

/// A zone without signatures, and without what a signer adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    apex: Owner,
    names: BTreeMap<Owner, BTreeMap<u16, Set>>,
}

/// A zone that is being read.
#[derive(Debug)]
pub struct Builder {
    apex: Owner,
    names: BTreeMap<Owner, BTreeMap<u16, Set>>,
}

impl Builder {
    /// The zone of this name, which has no records yet.
    #[must_use]
    pub const fn new(apex: Owner) -> Self {
        Self { apex, names: BTreeMap::new() }
    }

    /// Takes a record, or leaves it out if the signer adds it.
    ///
    /// # Errors
    /// [`ZoneError`]: it is not of the zone.
    pub fn add<N: ToName, D: ComposeRecordData>(&mut self, record: &Record<N, D>) -> Result<(), ZoneError> {
        let Some(Own { owner, kind, ttl, data }) = own(record, &self.apex)? else { return Ok(()) };
        let set = self.names.entry(owner).or_default().entry(kind).or_default();
        set.ttl = ttl;
        set.data.insert(data);
        Ok(())
    }

    /// The zone.
    ///
    /// # Errors
    /// [`ZoneError::NoStart`].
    pub fn finish(self) -> Result<Zone, ZoneError> {
        let Self { apex, names } = self;
        let starts = names.get(&apex).and_then(|types| types.get(&rtype::SOA)).map_or(0, |set| set.data.len());
        if starts == 1 { Ok(Zone { apex, names }) } else { Err(ZoneError::NoStart(apex)) }
    }
}

/// A record as copies have it.
struct Own {
    owner: Owner,
    kind: u16,
    ttl: u32,
    data: Vec<u8>,
}

/// A record of the zone of this name. `None`: the signer adds it.
fn own<N: ToName, D: ComposeRecordData>(record: &Record<N, D>, apex: &Owner) -> Result<Option<Own>, ZoneError> {
    let owner = owner_of(record)?;
    if record.class() != Class::IN {
        return Err(ZoneError::Class(owner));
    }
    if !owner.is_in(apex) {
        return Err(ZoneError::Outside(owner, apex.clone()));
    }
    let kind = record.rtype().to_int();
    if is_of_signer(kind) || (kind == rtype::SIGNING && owner == *apex) {
        return Ok(None);
    }
    let mut data = Vec::new();
    let long = |_| ZoneError::Long("a record is too long");
    record.data().compose_canonical_rdata(&mut data).map_err(long)?;
    Ok(Some(Own { owner, kind, ttl: record.ttl().as_secs(), data }))
}

/// A text of records, whose names belong to this one unless they end with a dot.
///
/// # Errors
/// [`ZoneError::Origin`], [`ZoneError::Unclosed`].
pub(crate) fn zonefile(text: &[u8], origin: &Owner) -> Result<Zonefile, ZoneError> {
    if let Some(line) = parentheses::unclosed(text) {
        return Err(ZoneError::Unclosed(line));
    }
    let unnamed = |_| ZoneError::Origin(origin.to_string());
    let name: Name<Bytes> = Name::from_octets(origin.wire().into()).map_err(unnamed)?;
    let mut file = Zonefile::with_capacity(text.len());
    file.extend_from_slice(text);
    file.extend_from_slice(b"\n");
    file.set_origin(name);
    file.set_default_class(Class::IN);
    Ok(file)
}

/// The name of a record.
///
/// # Errors
/// [`ZoneError::Long`]: it is too long.
pub fn owner_of<N: ToName, D>(record: &Record<N, D>) -> Result<Owner, ZoneError> {
    let owner: Name<Vec<u8>> = record.owner().to_name();
    let owner = Owner::read(owner.as_slice()).map(|(owner, _)| owner);
    owner.ok_or(ZoneError::Long("a name is too long"))
}

/// The serial in the data of a SOA record: of the five numbers at its end the first (RFC 1035, section 3.3.13).
#[must_use]
pub fn serial_of(data: &[u8]) -> Option<u32> {
    let numbers = data.last_chunk::<20>()?;
    numbers.first_chunk().map(|serial| u32::from_be_bytes(*serial))
}

/// Whether a serial is a later one than another, in serial number arithmetic (RFC 1982, section 3.2).
#[must_use]
pub const fn is_after(serial: u32, other: u32) -> bool {
    let ahead = serial.wrapping_sub(other);
    ahead != 0 && ahead < 1 << 31
}

impl Zone {
    /// Reads the text of a zone file. What a signer has added (keys, signatures, chains) is left out.
    ///
    /// # Errors
    /// [`ZoneError`].
    pub fn parse(text: &[u8], origin: &str) -> Result<Self, ZoneError> {
        let apex = Self::origin(origin)?;
        // The class of each record is looked at below, and what is said of it names the record.
        let mut file = zonefile(text, &apex)?.allow_invalid();
        let mut zone = Builder::new(apex);
        while let Some(entry) = file.next_entry().map_err(|error| ZoneError::Syntax(error.to_string()))? {
            let Entry::Record(record) = entry else { return Err(ZoneError::Include) };
            zone.add(&record)?;
        }
        zone.finish()
    }

    /// The name of a zone as text, with its dot.
    ///
    /// # Errors
    /// [`ZoneError::Origin`].
    pub fn origin(text: &str) -> Result<Owner, ZoneError> {
        let name = text.parse::<Name<Vec<u8>>>().ok();
        let owner = name.and_then(|name| Owner::read(name.as_slice()).map(|(owner, _)| owner));
        owner.ok_or_else(|| ZoneError::Origin(text.to_owned()))
    }

    /// The serial of its SOA record.
    #[must_use]
    pub fn serial(&self) -> Option<u32> {
        serial_of(self.start()?.data.first()?)
    }

    /// Its SOA record.
    #[must_use]
    pub fn start(&self) -> Option<&Set> {
        self.set(&self.apex, rtype::SOA)
    }

    /// For how many seconds a copy may be used without its primary: the last number but one of the SOA record (RFC 1035, section 3.3.13).
    #[must_use]
    pub fn expire(&self) -> Option<u32> {
        let numbers = self.start()?.data.first()?.last_chunk::<8>()?;
        numbers.first_chunk().map(|expire| u32::from_be_bytes(*expire))
    }

    /// How many records it has.
    #[must_use]
    pub fn records(&self) -> usize {
        self.names.values().flat_map(BTreeMap::values).map(|set| set.data.len()).sum()
    }

    /// Adds a record that differences add. What the signer adds is left out.
    pub(crate) fn insert<N: ToName, D: ComposeRecordData>(&mut self, record: &Record<N, D>) -> Result<(), ZoneError> {
        let Some(Own { owner, kind, ttl, data }) = own(record, &self.apex)? else { return Ok(()) };
        let set = self.names.entry(owner.clone()).or_default().entry(kind).or_default();
        let is_new = set.data.is_empty();
        if (!is_new && set.ttl != ttl) || !set.data.insert(data) {
            return Err(ZoneError::Present(owner, Rtype::from_int(kind)));
        }
        set.ttl = ttl;
        Ok(())
    }

    /// Takes a record away that differences take away.
    pub(crate) fn remove<N: ToName, D: ComposeRecordData>(&mut self, record: &Record<N, D>) -> Result<(), ZoneError> {
        let Some(Own { owner, kind, ttl, data }) = own(record, &self.apex)? else { return Ok(()) };
        let absent = || ZoneError::Absent(owner.clone(), Rtype::from_int(kind));
        let types = self.names.get_mut(&owner).ok_or_else(absent)?;
        let set = types.get_mut(&kind).filter(|set| set.ttl == ttl).ok_or_else(absent)?;
        if !set.data.remove(&data) {
            return Err(absent());
        }
        // A name without records is none, and would be in the chain.
        if set.data.is_empty() {
            types.remove(&kind);
        }
        if types.is_empty() {
            self.names.remove(&owner);
        }
        Ok(())
    }

    /// Puts another SOA record in the place of its own.
    pub(crate) fn restart<N: ToName, D: ComposeRecordData>(&mut self, record: &Record<N, D>) -> Result<(), ZoneError> {
        if let Some(Own { owner, kind, ttl, data }) = own(record, &self.apex)? {
            self.names.entry(owner).or_default().insert(kind, Set { ttl, data: [data].into() });
        }
        Ok(())
    }

    /// The zone's name.
    #[must_use]
    pub const fn apex(&self) -> &Owner {
        &self.apex
    }

    /// How many names it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether it has none; it has one at least.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// All names and the types of their records, in canonical order.
    pub fn names(&self) -> impl Iterator<Item = (&Owner, impl Iterator<Item = u16>)> {
        self.names.iter().map(|(owner, types)| (owner, types.keys().copied()))
    }

    /// Records of this name and type.
    #[must_use]
    pub fn set(&self, owner: &Owner, kind: u16) -> Option<&Set> {
        self.names.get(owner)?.get(&kind)
    }

    /// Whether a name has been delegated: others answer for what is beneath it, and for itself but for its digests of keys.
    fn is_cut(&self, owner: &Owner) -> bool {
        *owner != self.apex && self.set(owner, rtype::NS).is_some()
    }

    /// Whether something above has been delegated or redirected, so that the name is not the zone's.
    fn is_covered(&self, owner: &Owner) -> bool {
        let mut above = owner.above().filter_map(|name| self.names.get_key_value(name));
        above.any(|(name, types)| self.is_cut(name) || types.contains_key(&rtype::DNAME))
    }

    /// Whether the zone answers for records of this name and type, so that they are signed (RFC 4035, section 2.2).
    #[must_use]
    pub fn answers(&self, owner: &Owner, kind: u16) -> bool {
        let own = !self.is_cut(owner) || kind == rtype::DS || kind == rtype::NSEC;
        self.names.contains_key(owner) && own && !self.is_covered(owner)
    }

    /// What the chain of names says of this one: the next one, and the types that are at it in the zone (RFC 4035, section 2.3).
    #[must_use]
    pub fn link(&self, owner: &Owner) -> Option<(&Owner, BTreeSet<u16>)> {
        let types = self.types(owner)?;
        let after = self.names.range::<Owner, _>((core::ops::Bound::Excluded(owner), core::ops::Bound::Unbounded));
        let next = after.map(|(name, _)| name).find(|name| !self.is_covered(name)).unwrap_or(&self.apex);
        Some((next, types))
    }

    /// The types at a name, as far as a denial shows them: of a delegation, the delegation itself. `None`: others answer for the name, or it
    /// has no records.
    #[must_use]
    pub fn types(&self, owner: &Owner) -> Option<BTreeSet<u16>> {
        let types = self.names.get(owner).filter(|_| !self.is_covered(owner))?;
        let cut = self.is_cut(owner);
        let shown = |kind: &&u16| !cut || **kind == rtype::NS || **kind == rtype::DS;
        Some(types.keys().filter(shown).copied().collect())
    }

    /// The names that a denial speaks of, in canonical order: all but those that others answer for.
    pub fn chained(&self) -> impl Iterator<Item = &Owner> {
        self.names.keys().filter(|name| !self.is_covered(name))
    }
}

/// Whether records of this type are made by the signer.
const fn is_of_signer(kind: u16) -> bool {
    use rtype::{CDNSKEY, CDS, DNSKEY, NSEC, NSEC3, NSEC3PARAM, RRSIG};
    matches!(kind, RRSIG | NSEC | DNSKEY | NSEC3 | NSEC3PARAM | CDS | CDNSKEY)
}

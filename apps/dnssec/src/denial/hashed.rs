//! Denial by hashed names (RFC 5155): each name of the zone has a record at its hash, which says what the next hash is and which types are at the
//! name. Names without records above others have one, too. Opt-out, which leaves delegations without DS records out of the ring, is refused.

use core::{fmt, ops::Bound, str::FromStr};
use std::collections::{BTreeMap, BTreeSet, HashMap, btree_map::Entry};

use sha1::{Digest as _, Sha1};

use super::{Added, bitmap, maps};
use crate::{
    owner::Owner,
    signed::SignedSet,
    zone::{Zone, rtype},
};

/// The number of SHA-1, the only hash function there is (RFC 5155, section 11).
const SHA1: u8 = 1;
/// The flag that leaves delegations out (RFC 5155, section 3.1.2.1).
const OPT_OUT: u8 = 1;
/// The most additional iterations. Resolvers may take a zone with more than none as unsigned (RFC 9276, section 3.2), and this agent hashes each
/// name so often.
pub const MOST_ITERATIONS: u16 = 100;
/// The longest salt in bytes: its length is one byte (RFC 5155, section 3.2).
const MOST_SALT: usize = 255;

/// The hash of a name.
pub type Hash = [u8; 20];

/// How names are hashed. RFC 9276 recommends no additional iteration and no salt, which is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    iterations: u16,
    salt: Vec<u8>,
}

/// A text is not how names are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "write how many additional iterations there are ({MOST_ITERATIONS} at most), and after a comma the salt in hexadecimal digits if there is \
     one, as in 0 or 5,aabbccdd"
)]
pub struct NotParameters;

impl FromStr for Parameters {
    type Err = NotParameters;

    fn from_str(text: &str) -> Result<Self, NotParameters> {
        let (iterations, salt) = text.split_once(',').unwrap_or((text, "-"));
        let iterations = iterations.parse::<u16>().ok().filter(|iterations| *iterations <= MOST_ITERATIONS);
        // As zone files write that there is none (RFC 5155, section 3.3).
        let salt = if salt == "-" { Some(Vec::new()) } else { hex::decode(salt).ok().filter(|salt| !salt.is_empty()) };
        let salt = salt.filter(|salt| salt.len() <= MOST_SALT);
        iterations.zip(salt).map(|(iterations, salt)| Self { iterations, salt }).ok_or(NotParameters)
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} iterations and ", self.iterations)?;
        if self.salt.is_empty() { f.write_str("no salt") } else { write!(f, "the salt {}", hex::encode(&self.salt)) }
    }
}

impl Parameters {
    /// The hash of a name (RFC 5155, section 5).
    #[must_use]
    pub fn hash(&self, name: &Owner) -> Hash {
        let once = |bytes: &[u8]| Hash::from(Sha1::new().chain_update(bytes).chain_update(&self.salt).finalize());
        (0..self.iterations).fold(once(&name.wire()), |hash, _| once(&hash))
    }

    /// The data of NSEC3PARAM, with which those of NSEC3 begin: no flags.
    fn data(&self) -> Vec<u8> {
        let length = u8::try_from(self.salt.len()).unwrap_or(u8::MAX);
        [&[SHA1, 0][..], &self.iterations.to_be_bytes(), &[length], &self.salt].concat()
    }

    /// Whether data of NSEC3 or NSEC3PARAM begin with these parameters.
    ///
    /// # Errors
    /// What is otherwise, in words.
    fn agree(&self, data: &[u8]) -> Result<(), String> {
        let parsed = data.split_first_chunk::<5>().and_then(|(head, rest)| {
            let [algorithm, flags, high, low, length] = *head;
            let salt = rest.get(..usize::from(length))?.to_vec();
            Some((algorithm, flags, Self { iterations: u16::from_be_bytes([high, low]), salt }))
        });
        let Some((algorithm, flags, parameters)) = parsed else {
            return Err("the data of the NSEC3 record are too short".to_owned());
        };
        if flags & OPT_OUT != 0 {
            return Err("the NSEC3 record has opt-out: delegations could be added that nobody has signed".to_owned());
        }
        if (algorithm, flags) != (SHA1, 0) {
            return Err(format!("the NSEC3 record has the hash function {algorithm} and the flags {flags}"));
        }
        if parameters == *self {
            Ok(())
        } else {
            Err(format!("the NSEC3 record has {parameters}, and the operators have agreed on {self}"))
        }
    }
}

/// Two names of a zone have one hash, so that a ring would deny one of them with the record of the other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{one} and {other} have the same hash with {parameters}, so that this copy of the zone cannot be signed: the operators have to agree on \
     another salt (RFC 5155, section 7.1)"
)]
pub struct Collision {
    one: Owner,
    other: Owner,
    parameters: Parameters,
}

/// The hashes of all names of a zone that have a record of their own in the ring.
#[derive(Clone, Debug)]
pub struct Ring {
    parameters: Parameters,
    names: BTreeMap<Hash, Owner>,
    hashed: usize,
}

impl Ring {
    /// The ring of a zone's names, of delegations, and of what is above them without records of its own (RFC 5155, section 7.1). Hashes are
    /// taken over from the ring before it, if that has the same parameters.
    ///
    /// # Errors
    /// [`Collision`].
    pub fn new(zone: &Zone, parameters: Parameters, before: Option<&Self>) -> Result<Self, Collision> {
        Self::with(zone, parameters, before, Parameters::hash)
    }

    /// The same with a hash function of one's own.
    fn with(
        zone: &Zone,
        parameters: Parameters,
        before: Option<&Self>,
        hash: impl Fn(&Parameters, &Owner) -> Hash,
    ) -> Result<Self, Collision> {
        let before = before.filter(|ring| ring.parameters == parameters);
        let known: HashMap<&Owner, Hash> =
            before.into_iter().flat_map(|ring| &ring.names).map(|(hash, name)| (name, *hash)).collect();
        let (mut names, mut hashed) = (BTreeMap::new(), 0_usize);
        for name in names_of(zone) {
            let own = known.get(&name).copied();
            hashed = hashed.saturating_add(usize::from(own.is_none()));
            match names.entry(own.unwrap_or_else(|| hash(&parameters, &name))) {
                Entry::Vacant(place) => {
                    place.insert(name);
                }
                Entry::Occupied(place) => {
                    return Err(Collision { one: place.get().clone(), other: name, parameters });
                }
            }
        }
        Ok(Self { parameters, names, hashed })
    }

    /// How names are hashed.
    #[must_use]
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// How many names were hashed for it: the hashes of the others were those of the ring before it.
    #[must_use]
    pub const fn hashed(&self) -> usize {
        self.hashed
    }

    /// The records of the ring, and the parameters at the top of the zone that it was made of.
    pub fn added<'a>(&'a self, zone: &'a Zone) -> impl Iterator<Item = Added> + 'a {
        let data = vec![self.parameters.data()];
        let parameters = Added { owner: zone.apex().clone(), rtype: rtype::NSEC3PARAM, data };
        let links = self.names.iter().map(move |(hash, name)| Added {
            owner: zone.apex().below(&label(hash)),
            rtype: rtype::NSEC3,
            data: self.links(zone, hash, name),
        });
        links.chain([parameters])
    }

    /// The data that the record of a name may have.
    fn links(&self, zone: &Zone, hash: &Hash, name: &Owner) -> Vec<Vec<u8>> {
        // A name without records has no types.
        let mut types = zone.types(name).unwrap_or_default();
        if types.iter().any(|kind| zone.answers(name, *kind)) {
            types.insert(rtype::RRSIG);
        }
        if name == zone.apex() {
            types.insert(rtype::NSEC3PARAM);
        }
        let after = self.names.range::<Hash, _>((Bound::Excluded(hash), Bound::Unbounded)).next();
        let next = after.or_else(|| self.names.first_key_value()).map_or(hash, |(next, _)| next);
        let length = u8::try_from(next.len()).unwrap_or(u8::MAX);
        let before = [&self.parameters.data()[..], &[length], next].concat();
        maps(zone, name, &types).into_iter().map(|map| [&before[..], &map].concat()).collect()
    }

    /// Whether an NSEC3 or NSEC3PARAM record set is that of the zone.
    ///
    /// # Errors
    /// The objection.
    pub(crate) fn check(&self, set: &SignedSet, zone: &Zone) -> Result<(), String> {
        let Some(data) = set.data.first().filter(|_| set.data.len() == 1) else {
            return Err(format!("there are {} records of NSEC3 at {}, and not one", set.data.len(), set.owner));
        };
        self.parameters.agree(data)?;
        if set.rtype == rtype::NSEC3PARAM {
            let fits = set.owner == *zone.apex() && *data == self.parameters.data();
            return if fits { Ok(()) } else { Err(format!("there is no such NSEC3PARAM record at {}", set.owner)) };
        }
        let hash = set.owner.label().and_then(hash_of);
        let found = hash.and_then(|hash| self.names.get_key_value(&hash));
        let Some((hash, name)) = found.filter(|(hash, _)| zone.apex().below(&label(hash)) == set.owner) else {
            return Err(format!("{} is the hash of no name in the zone", set.owner));
        };
        let links = self.links(zone, hash, name);
        if links.contains(data) {
            return Ok(());
        }
        let parts = |data: &Vec<u8>| {
            let (length, rest) = data.get(self.parameters.data().len()..)?.split_first()?;
            let (next, map) = rest.split_at_checked(usize::from(*length))?;
            Some((String::from_utf8(label(next.try_into().ok()?)).ok()?, bitmap::read(map)?))
        };
        let unlike = format!("the NSEC3 record of {name} does not say what is in the zone");
        let Some(((next, types), (said, said_types))) = links.first().and_then(parts).zip(parts(data)) else {
            return Err(format!("{unlike}, and is malformed"));
        };
        let [own, here] = [(&types, &said_types), (&said_types, &types)].map(|(one, other)| bitmap::shown(one, other));
        Err(format!("{unlike}: {next} and{own} there, {said} and{here} here"))
    }
}

/// The names that have a record in the ring.
fn names_of(zone: &Zone) -> BTreeSet<Owner> {
    let mut names = BTreeSet::new();
    for name in zone.chained() {
        let mut next = Some(name.clone());
        while let Some(name) = next.filter(|name| name.is_in(zone.apex())) {
            next = name.above().next().map(Owner::of_labels);
            if !names.insert(name) {
                break;
            }
        }
    }
    names
}

/// A hash as a label: in base32 with the alphabet that keeps the order, without padding (RFC 5155, section 3.3; RFC 4648, section 7).
#[must_use]
pub fn label(hash: &Hash) -> Vec<u8> {
    let digit =
        |bits: u64| u8::try_from(bits & 31).map_or(b'0', |bits| if bits < 10 { b'0' + bits } else { b'a' + bits - 10 });
    let fives = hash.chunks(5).map(|five| five.iter().fold(0_u64, |bits, byte| (bits << 8) | u64::from(*byte)));
    fives.flat_map(|bits| (0_u32..8).rev().map(move |place| digit(bits >> (5 * place)))).collect()
}

/// The hash that a label is of, in lower case.
fn hash_of(label: &[u8]) -> Option<Hash> {
    let mut bytes = Vec::with_capacity(20);
    for eight in label.chunks(8).filter(|_| label.len() == 32) {
        let bits = eight.iter().try_fold(0_u64, |bits, digit| {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'v' => digit - b'a' + 10,
                _ => return None,
            };
            Some((bits << 5) | u64::from(value))
        })?;
        bytes.extend(bits.to_be_bytes().iter().skip(3));
    }
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody has two names with one hash of SHA-1. With two bits of each hash alone there are some among five names.
    #[test]
    fn two_names_with_one_hash_are_no_ring() {
        let text = "@ 60 IN SOA ns root 1 2 3 4 5\na 60 IN A 192.0.2.1\nb 60 IN A 192.0.2.1\nc 60 IN A 192.0.2.1\nd 60 IN A 192.0.2.1\n";
        let zone = Zone::parse(text.as_bytes(), "example.").unwrap();
        let parameters = || "1,aa".parse::<Parameters>().unwrap();
        let short = |parameters: &Parameters, name: &Owner| {
            let mut hash = [0; 20];
            hash[0] = parameters.hash(name)[0] & 3;
            hash
        };
        let collision = Ring::with(&zone, parameters(), None, short).unwrap_err();
        let [one, other] = [&collision.one, &collision.other].map(|name| short(&parameters(), name));
        assert!(one == other && collision.one != collision.other, "{collision:?}");
        let said = collision.to_string();
        assert!(said.contains("have the same hash with 1 iterations and the salt aa, so that this copy"), "{said}");
        assert_eq!(Ring::with(&zone, parameters(), None, Parameters::hash).unwrap().names.len(), 5);
    }
}

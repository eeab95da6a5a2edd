//! How a zone denies names that do not exist: by a ring of its names (NSEC; RFC 4034), or of the hashes of its names (NSEC3; RFC 5155). A signer
//! adds either; here it follows from the operator's copy.
//!
//! - [`hashed`]: the ring of hashes, and what is said of it.
//! - `bitmap`: the types at a name.

pub(crate) mod bitmap;
pub mod hashed;

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    owner::Owner,
    zone::{Zone, rtype},
};
use hashed::{Collision, Parameters, Ring};

/// What the operators have agreed on for their zone.
#[derive(Clone, Debug)]
pub enum Denial {
    /// NSEC records.
    Names,
    /// NSEC3 records.
    Hashes(Arc<Ring>),
}

/// A record set that a signer adds, which has one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// Its name.
    pub owner: Owner,
    /// Its type.
    pub rtype: u16,
    /// What the data of the record may be.
    pub data: Vec<Vec<u8>>,
}

impl Denial {
    /// By names, or by their hashes if there are parameters for these. Names that were hashed for an earlier copy of the zone are not hashed
    /// again.
    ///
    /// # Errors
    /// [`Collision`].
    pub fn new(zone: &Zone, parameters: Option<&Parameters>, before: Option<&Self>) -> Result<Self, Collision> {
        let Some(parameters) = parameters else { return Ok(Self::Names) };
        let before = match before {
            Some(Self::Hashes(ring)) => Some(ring.as_ref()),
            Some(Self::Names) | None => None,
        };
        Ok(Self::Hashes(Arc::new(Ring::new(zone, parameters.clone(), before)?)))
    }

    /// All that a signer adds for it to this zone, of which a ring of hashes has been made.
    #[must_use]
    pub fn added<'a>(&'a self, zone: &'a Zone) -> Box<dyn Iterator<Item = Added> + 'a> {
        match self {
            Self::Names => Box::new(zone.chained().map(move |owner| named(zone, owner))),
            Self::Hashes(ring) => Box::new(ring.added(zone)),
        }
    }
}

/// The NSEC record of a name (RFC 4035, section 2.3).
fn named(zone: &Zone, owner: &Owner) -> Added {
    let data = zone.link(owner).map_or_else(Vec::new, |(next, mut types)| {
        types.extend([rtype::RRSIG, rtype::NSEC]);
        maps(zone, owner, &types).into_iter().map(|map| [next.wire(), map].concat()).collect()
    });
    Added { owner: owner.clone(), rtype: rtype::NSEC, data }
}

/// The maps of types that a name may have: at the top a signer adds keys, with or without keys for the parent, and notes of how far it is.
fn maps(zone: &Zone, owner: &Owner, types: &BTreeSet<u16>) -> Vec<Vec<u8>> {
    if owner != zone.apex() {
        return vec![bitmap::write(types)];
    }
    let added: [&[u16]; 4] = [&[], &[rtype::CDS, rtype::CDNSKEY], &[rtype::CDS], &[rtype::CDNSKEY]];
    let notes: [&[u16]; 2] = [&[], &[rtype::SIGNING]];
    let with = |more: [&[u16]; 2]| {
        let more = more.into_iter().flatten().chain(&[rtype::DNSKEY]);
        bitmap::write(&types.iter().chain(more).copied().collect())
    };
    notes.iter().flat_map(|notes| added.map(|added| with([added, notes]))).collect()
}

//! Sets of a key's holders among whom somebody cheated, as this node has found.
//!
//! They compute no more together, and a restart does not change that: each further try would let a cheat guess once more at what the honest hide
//! (`spec/ecdsa.md`, Quarantine). A set is remembered with the sharing of which its holders have shares, and forgotten with it.

use theta_groups::Secret;
use theta_names::{Epoch, KeyName, ShareIndex, Version};

use super::{KeyError, share_key, version_prefix};
use crate::codec::{Decoder, Encoder, encoder};
use crate::database::{Rows as _, Table};
use crate::{Store, StoreError, Transaction};

/// The most sets that are remembered of one sharing, and the most cheats that are named. Whoever cheats in another set after so many, unnamed, is not on
/// record: it takes a program each.
pub const MOST_QUARANTINED: usize = 256;
/// Limit of a set's list of holders, in bytes: programs have 15 holders at most.
const MOST_HOLDERS: usize = 2 * 64;
/// Limit of the words about what was found false, in bytes.
const MOST_PHASE: usize = 512;

/// Holders among whom somebody cheated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// The holders' shares, by rising index.
    pub holders: Vec<ShareIndex>,
    /// What was found false, in words.
    pub phase: String,
    /// The share of the one that cheated, if that is known.
    pub culprit: Option<ShareIndex>,
}

/// Indices, two bytes each.
fn listed(holders: &[ShareIndex]) -> Vec<u8> {
    holders.iter().flat_map(|holder| holder.get().to_be_bytes()).collect()
}

impl Quarantined {
    /// Whether this says more than what is known: it names a cheat that was not named, or holders of whom nothing was known.
    fn is_news(&self, known: &[Self]) -> bool {
        match self.culprit {
            Some(_) => known.iter().all(|known| known.culprit != self.culprit),
            None => known.iter().all(|known| {
                known.holders != self.holders && known.culprit.is_none_or(|culprit| !self.holders.contains(&culprit))
            }),
        }
    }

    pub(crate) fn encode(&self) -> Secret<Vec<u8>> {
        let Self { holders, phase, culprit } = self;
        let record = encoder(64 + phase.len()).bytes(&listed(holders));
        record.option(culprit.map(ShareIndex::get), Encoder::u16).bytes(phase.as_bytes()).finish()
    }

    pub(crate) fn decode(record: &[u8]) -> Result<Self, StoreError> {
        let mut decoder = Decoder::new(Table::Quarantined.name(), record)?;
        let (holders, []) = decoder.bytes(MOST_HOLDERS)?.as_chunks::<2>() else {
            return Err(decoder.error("an index ends early"));
        };
        let index = |number: u16| ShareIndex::try_from(number).ok();
        let holders = holders.iter().map(|holder| index(u16::from_be_bytes(*holder))).collect::<Option<Vec<_>>>();
        let holders = holders.ok_or_else(|| decoder.error("no share has index zero"))?;
        let culprit = match decoder.option(Decoder::u16)? {
            None => None,
            Some(number) => Some(index(number).ok_or_else(|| decoder.error("no share has index zero"))?),
        };
        let phase = core::str::from_utf8(decoder.bytes(MOST_PHASE)?);
        let phase = phase.map_err(|_| decoder.error("words are no text"))?.to_owned();
        decoder.finish(Self { holders, phase, culprit })
    }
}

impl Store {
    /// The sets of holders that are in quarantine in this epoch of a version, in the order of their indices.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    pub fn quarantined(&self, name: &KeyName, version: Version, epoch: Epoch) -> Result<Vec<Quarantined>, StoreError> {
        let rows = self.snapshot()?.all(Table::Quarantined, &share_key(name, version, epoch))?;
        rows.iter().map(|(_, record)| Quarantined::decode(record.expose())).collect()
    }
}

impl Transaction<'_> {
    /// Puts holders of the epoch in use on record as ones among whom somebody cheated. What is on record stays as it is, and says it all if a cheat
    /// in the set is named; a set of another epoch has no shares any more, and one beyond [`MOST_QUARANTINED`] is not recorded. Returns whether the set is on record.
    ///
    /// # Errors
    /// [`KeyError::Unknown`], [`KeyError::TooLong`], [`KeyError::Store`].
    pub fn quarantine(
        &mut self,
        name: &KeyName,
        version: Version,
        epoch: Epoch,
        quarantined: &Quarantined,
    ) -> Result<bool, KeyError> {
        let key = self.key(name)?;
        let serving = key.version(version).and_then(|version| version.serving.as_ref());
        if serving.is_none_or(|serving| serving.number != epoch) {
            return Ok(false);
        }
        let holders = listed(&quarantined.holders);
        if holders.len() > MOST_HOLDERS {
            return Err(KeyError::TooLong { what: "a set of holders", most: MOST_HOLDERS });
        }
        if quarantined.phase.len() > MOST_PHASE {
            return Err(KeyError::TooLong { what: "what was found false", most: MOST_PHASE });
        }
        let sharing = share_key(name, version, epoch);
        let rows = self.rows.all(Table::Quarantined, &sharing)?;
        let known: Vec<Quarantined> =
            rows.iter().map(|(_, record)| Quarantined::decode(record.expose())).collect::<Result<_, _>>()?;
        if !quarantined.is_news(&known) {
            return Ok(true);
        }
        // A cheat that is named has room of its own: it would have another try in each set that it is in.
        if known.iter().filter(|known| known.culprit.is_some() == quarantined.culprit.is_some()).count()
            >= MOST_QUARANTINED
        {
            return Ok(false);
        }
        let mut row = [sharing.as_slice(), &holders].concat();
        if rows.iter().any(|(known, _)| *known == row) {
            // Another cheat of the same set. Indices rise in a list of holders, and after the last of them no holder's does: so no two rows are one.
            row.extend(listed(quarantined.culprit.as_slice()));
        }
        self.rows.put(Table::Quarantined, &row, quarantined.encode())?;
        Ok(true)
    }

    /// Forgets the sets of one epoch, whose shares are replaced.
    pub(super) fn lift_epoch(&mut self, name: &KeyName, version: Version, epoch: Epoch) -> Result<(), StoreError> {
        self.lift(&share_key(name, version, epoch))
    }

    /// Forgets the sets of all epochs of a version, whose shares are gone.
    pub(super) fn lift_version(&mut self, name: &KeyName, version: Version) -> Result<(), StoreError> {
        self.lift(&version_prefix(name, version))
    }

    /// Forgets the sets whose rows begin so. A store in which there never was any does not get a table by that.
    pub(super) fn lift(&mut self, prefix: &[u8]) -> Result<(), StoreError> {
        if self.rows.has(Table::Quarantined)? {
            self.rows.remove_all(Table::Quarantined, prefix)?;
        }
        Ok(())
    }
}

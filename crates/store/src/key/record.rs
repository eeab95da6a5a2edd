//! Keys, their versions, and the epochs of each version.

use theta_groups::Secret;
use theta_names::{Delivery, Epoch, KeyName, KeyState, Purpose, Version};

use super::{KeyError, KeyStates};
use crate::StoreError;
use crate::codec::{Decoder, Encoder, encoder};
use crate::database::Table;

const TABLE: &str = Table::Keys.name();
/// Limit of the public part, in bytes: more than twice the size of 65,535 verification keys of 96 bytes and the rest.
pub(crate) const MOST_PUBLIC: usize = 16 << 20;
/// Limit of a certificate, in bytes: a signature of each of 65,535 holders fits.
pub(crate) const MOST_CERTIFICATE: usize = 16 << 20;
/// Limit of a suite's name, in bytes.
const MOST_SUITE: usize = 64;
/// The most versions of one key.
const MOST_VERSIONS: u32 = 1024;

/// One sharing of a version's secret: its holders and the data that prove it. Refreshing and resharing make a new epoch
/// of the same public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochRecord {
    /// Its number: a share of an older epoch never replaces that of a newer one.
    pub number: Epoch,
    /// The number of shares that are needed.
    pub k: u16,
    /// The number of shares.
    pub n: u16,
    /// The numbers of the nodes that hold them: that of share index i at place i - 1.
    pub holders: Vec<u16>,
    /// The public key and verification keys, in the binary form of public parts (`spec/keys.md`).
    pub public: Vec<u8>,
    /// The holders' signatures at the end of the ceremony; empty for a key that a dealer made.
    pub certificate: Vec<u8>,
    /// When it was made, in seconds since 1970.
    pub created: u64,
}

/// One key pair under the name of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRecord {
    /// Its number.
    pub version: Version,
    /// Its own state; see [`KeyRecord::effective_state`].
    pub state: KeyState,
    /// The scheme and group.
    pub suite: String,
    /// Who makes shares for a request: the same in all its sharings.
    pub delivery: Delivery,
    /// The sharing in use; `None` until the first is certified.
    pub serving: Option<EpochRecord>,
    /// A sharing that waits for its certificate, beside the one in use.
    pub pending: Option<EpochRecord>,
    /// When it was made, in seconds since 1970.
    pub created: u64,
}

/// A key: a name, a purpose, and versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The name that people use.
    pub name: KeyName,
    /// Its purpose, which never changes.
    pub purpose: Purpose,
    /// The state of the key as a whole.
    pub state: KeyState,
    /// The number that the next version gets.
    pub(crate) next_version: Version,
    /// In ascending order.
    pub(crate) versions: Vec<VersionRecord>,
}

impl VersionRecord {
    /// The epoch of this number, serving or pending.
    pub(crate) fn epoch(&self, number: Epoch) -> Option<&EpochRecord> {
        [&self.serving, &self.pending].into_iter().flatten().find(|epoch| epoch.number == number)
    }
}

impl KeyRecord {
    pub(crate) const fn new(name: KeyName, purpose: Purpose) -> Self {
        Self { name, purpose, state: KeyState::Active, next_version: Version::FIRST, versions: Vec::new() }
    }

    /// The versions in ascending order.
    #[must_use]
    pub fn versions(&self) -> &[VersionRecord] {
        &self.versions
    }

    /// The number that the next version gets.
    #[must_use]
    pub const fn next_version(&self) -> Version {
        self.next_version
    }

    /// The version of this number.
    #[must_use]
    pub fn version(&self, version: Version) -> Option<&VersionRecord> {
        self.versions.iter().find(|record| record.version == version)
    }

    /// The version that makes new signatures, coins and ciphertexts.
    #[must_use]
    pub fn primary(&self) -> Option<&VersionRecord> {
        self.versions.iter().rev().find(|version| self.effective_state(version) == KeyState::Active)
    }

    /// The state of a version, limited by the state of the key.
    #[must_use]
    pub fn effective_state(&self, version: &VersionRecord) -> KeyState {
        version.state.and(self.state)
    }

    /// Whether this version serves requests now.
    #[must_use]
    pub fn serves(&self, version: &VersionRecord) -> bool {
        version.serving.is_some() && self.effective_state(version).serves(self.purpose)
    }

    pub(super) fn version_mut(&mut self, version: Version) -> Result<&mut VersionRecord, KeyError> {
        let unknown = || KeyError::NoVersion { name: self.name.clone(), version };
        if self.version(version).is_none() {
            return Err(unknown());
        }
        self.versions.iter_mut().find(|record| record.version == version).ok_or(KeyError::Bug)
    }

    /// Adds a version of this number, which waits for its first certificate. It may be older than versions that are here: a node that
    /// lost its store gets back what the others send first.
    pub(super) fn add_version(
        &mut self,
        version: Version,
        (suite, delivery): (&str, Delivery),
        created: u64,
    ) -> Result<&mut VersionRecord, KeyError> {
        if self.state == KeyState::Destroyed {
            return Err(KeyError::Destroyed(self.name.clone()));
        }
        if suite.is_empty() || suite.len() > MOST_SUITE {
            return Err(KeyError::TooLong { what: "the suite's name", most: MOST_SUITE });
        }
        let too_many = || KeyError::TooManyVersions(self.name.clone());
        let next = version.next().filter(|_| version.get() <= MOST_VERSIONS).ok_or_else(too_many)?;
        let place = match self.versions.binary_search_by_key(&version, |known| known.version) {
            Ok(_) => return Err(KeyError::KnownVersion { name: self.name.clone(), version }),
            Err(place) => place,
        };
        self.next_version = self.next_version.max(next);
        let (state, suite) = (KeyState::Pending, suite.to_owned());
        self.versions
            .insert(place, VersionRecord { version, state, suite, delivery, serving: None, pending: None, created });
        self.versions.get_mut(place).ok_or(KeyError::Bug)
    }

    /// Puts the pending epoch of the version into use; older versions no longer sign, nor does this one if a newer one is in use.
    /// Returns the epoch that it replaced.
    pub(super) fn certify(
        &mut self,
        version: Version,
        epoch: Epoch,
        certificate: &[u8],
    ) -> Result<Option<EpochRecord>, KeyError> {
        check_len("the certificate", certificate, MOST_CERTIFICATE)?;
        let name = self.name.clone();
        let superseded = self.is_superseded(version);
        let record = self.version_mut(version)?;
        if record.state == KeyState::Destroyed {
            return Err(KeyError::Destroyed(name));
        }
        let Some(mut pending) = record.pending.take_if(|pending| pending.number == epoch) else {
            return Err(KeyError::NotPending { name, version, epoch });
        };
        pending.certificate = certificate.to_vec();
        let replaced = record.serving.replace(pending);
        if record.state == KeyState::Pending {
            record.state = if superseded { KeyState::Retired } else { KeyState::Active };
            let older = self.versions.iter_mut().filter(|older| older.version < version);
            older.filter(|older| older.state == KeyState::Active).for_each(|older| older.state = KeyState::Retired);
        }
        Ok(replaced)
    }

    /// Adds a sharing that waits for its certificate, beside the one in use.
    pub(super) fn stage(&mut self, version: Version, epoch: EpochRecord) -> Result<(), KeyError> {
        epoch.check()?;
        let name = self.name.clone();
        let record = self.version_mut(version)?;
        if record.state == KeyState::Destroyed {
            return Err(KeyError::Destroyed(name));
        }
        if let Some(newer) = [&record.serving, &record.pending]
            .into_iter()
            .flatten()
            .map(|known| known.number)
            .find(|number| *number >= epoch.number)
        {
            return Err(KeyError::OldEpoch { name, version, epoch: epoch.number, newer });
        }
        record.pending = Some(epoch);
        Ok(())
    }

    /// Whether a newer version has replaced this one.
    pub(super) fn is_superseded(&self, version: Version) -> bool {
        let newest = self.versions.iter().rev().find(|record| record.serving.is_some());
        newest.is_some_and(|newest| newest.version > version)
    }

    /// Changes the state of a version. Only the newest one can become active again.
    pub(super) fn set_version_state(&mut self, version: Version, next: KeyState) -> Result<(), KeyError> {
        let newest = self.versions.iter().rev().find(|record| record.serving.is_some()).map(|record| record.version);
        let name = self.name.clone();
        let record = self.version_mut(version)?;
        let from = record.state;
        let superseded = next == KeyState::Active && newest != Some(version);
        if !from.may_become(next) || superseded {
            return Err(KeyError::Transition { name, from, next, superseded });
        }
        record.state = next;
        if next == KeyState::Destroyed {
            record.pending = None;
        }
        Ok(())
    }

    /// Takes over what the group has decided; returns the versions that are destroyed.
    pub(super) fn follow(&mut self, states: &KeyStates) -> Vec<Version> {
        if self.state != KeyState::Destroyed {
            self.state = states.state;
        }
        for record in &mut self.versions {
            let decided =
                states.versions.iter().find(|(version, _)| *version == record.version).map(|(_, state)| *state);
            match decided {
                _ if self.state == KeyState::Destroyed => record.state = KeyState::Destroyed,
                Some(state) if !matches!(record.state, KeyState::Pending | KeyState::Destroyed) => record.state = state,
                Some(KeyState::Destroyed) => record.state = KeyState::Destroyed,
                _ => {}
            }
            if record.state == KeyState::Destroyed {
                record.pending = None;
            }
        }
        let destroyed = self.versions.iter().filter(|record| record.state == KeyState::Destroyed);
        destroyed.map(|record| record.version).collect()
    }

    /// Changes the state of the whole key.
    pub(super) fn set_state(&mut self, next: KeyState) -> Result<(), KeyError> {
        if !self.state.may_become(next) {
            let (name, from) = (self.name.clone(), self.state);
            return Err(KeyError::Transition { name, from, next, superseded: false });
        }
        self.state = next;
        if next == KeyState::Destroyed {
            for version in &mut self.versions {
                (version.state, version.pending) = (KeyState::Destroyed, None);
            }
        }
        Ok(())
    }
}

fn check_len(what: &'static str, bytes: &[u8], most: usize) -> Result<(), KeyError> {
    if bytes.len() > most { Err(KeyError::TooLong { what, most }) } else { Ok(()) }
}

impl EpochRecord {
    fn check(&self) -> Result<(), KeyError> {
        check_len("the public part", &self.public, MOST_PUBLIC)?;
        check_len("the certificate", &self.certificate, MOST_CERTIFICATE)?;
        if self.k == 0 || self.k > self.n {
            return Err(KeyError::Threshold { k: self.k, n: self.n });
        }
        if are_holders(&self.holders, self.n) { Ok(()) } else { Err(KeyError::Holders { n: self.n }) }
    }

    fn encode(encoder: Encoder, epoch: &Self) -> Encoder {
        let encoder = encoder.epoch(epoch.number).u16(epoch.k).u16(epoch.n).u64(epoch.created);
        let encoder = epoch.holders.iter().fold(encoder, |encoder, holder| encoder.u16(*holder));
        encoder.bytes(&epoch.public).bytes(&epoch.certificate)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, StoreError> {
        let (number, k, n, created) = (decoder.epoch()?, decoder.u16()?, decoder.u16()?, decoder.u64()?);
        let (holders, []) = decoder.take(2 * usize::from(n))?.as_chunks() else {
            return Err(decoder.error("holders end early"));
        };
        let holders = holders.iter().map(|holder| u16::from_be_bytes(*holder)).collect::<Vec<_>>();
        let (public, certificate) = (decoder.bytes(MOST_PUBLIC)?.to_vec(), decoder.bytes(MOST_CERTIFICATE)?.to_vec());
        if k == 0 || k > n {
            return Err(decoder.error("a threshold is out of range"));
        }
        if !are_holders(&holders, n) {
            return Err(decoder.error("a holder is named twice, or 0"));
        }
        Ok(Self { number, k, n, holders, public, certificate, created })
    }
}

/// Whether these are the numbers of n different nodes.
fn are_holders(holders: &[u16], n: u16) -> bool {
    let mut sorted = holders.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len() == holders.len() && holders.len() == usize::from(n) && sorted.first() != Some(&0)
}

impl VersionRecord {
    fn encode(&self, encoder: Encoder) -> Encoder {
        let encoder =
            encoder.version(self.version).u8(self.state.code()).u64(self.created).bytes(self.suite.as_bytes());
        let encoder = encoder.delivery(self.delivery);
        encoder.option(self.serving.as_ref(), EpochRecord::encode).option(self.pending.as_ref(), EpochRecord::encode)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, StoreError> {
        let version = decoder.version()?;
        let state = state(decoder)?;
        let created = decoder.u64()?;
        let suite = core::str::from_utf8(decoder.bytes(MOST_SUITE)?)
            .map_err(|_| decoder.error("a suite's name is not text"))?
            .to_owned();
        let delivery = decoder.delivery()?;
        let serving = decoder.option(EpochRecord::decode)?;
        let pending = decoder.option(EpochRecord::decode)?;
        if let (Some(serving), Some(pending)) = (&serving, &pending)
            && serving.number >= pending.number
        {
            return Err(decoder.error("a pending epoch is not the newest"));
        }
        Ok(Self { version, state, suite, delivery, serving, pending, created })
    }
}

fn state(decoder: &mut Decoder<'_>) -> Result<KeyState, StoreError> {
    KeyState::from_code(decoder.u8()?).ok_or_else(|| decoder.error("a state is not known"))
}

impl KeyRecord {
    pub(crate) fn encode(&self) -> Secret<Vec<u8>> {
        let mut encoder = encoder(256)
            .bytes(self.name.as_str().as_bytes())
            .u8(self.purpose.code())
            .u8(self.state.code())
            .version(self.next_version)
            .u32(u32::try_from(self.versions.len()).unwrap_or(u32::MAX));
        for version in &self.versions {
            encoder = version.encode(encoder);
        }
        encoder.finish()
    }

    pub(crate) fn decode(record: &[u8]) -> Result<Self, StoreError> {
        let mut decoder = Decoder::new(TABLE, record)?;
        let name = decoder.name()?;
        let purpose = Purpose::from_code(decoder.u8()?).ok_or_else(|| decoder.error("a purpose is not known"))?;
        let state = state(&mut decoder)?;
        let (next_version, count) = (decoder.version()?, decoder.u32()?);
        let mut versions: Vec<VersionRecord> = Vec::new();
        for _ in 0..count {
            let version = VersionRecord::decode(&mut decoder)?;
            if version.version >= next_version || versions.last().is_some_and(|last| last.version >= version.version) {
                return Err(decoder.error("versions are not ascending"));
            }
            versions.push(version);
        }
        decoder.finish(Self { name, purpose, state, next_version, versions })
    }
}

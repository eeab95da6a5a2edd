//! The encoding of records: a version byte, then fields of fixed size in big-endian order or with their length before them.
//!
//! There is one encoding of every value, and the decoder takes no other: not one byte too few or too many, no number out of
//! range, no flag but 0 and 1.

use core::str::FromStr;

use theta_groups::Secret;

use crate::StoreError;

/// The version of every record of today, and of the stored format and the backup that they make up: what one part says is of
/// no use without the others. 1 had no holders in an epoch, no identity, and remembered no peers; in 2 openings were no chain,
/// and neither forks nor contradictions were remembered; in 3 what a ceremony is about had its public key as text.
pub(crate) const RECORD_VERSION: u8 = 4;

/// Writes one record. The buffer is wiped; it has to have room from the start when a secret goes in, since a buffer that
/// grows leaves copies behind.
pub(crate) struct Encoder(Secret<Vec<u8>>);

impl Encoder {
    pub(crate) fn new(room: usize) -> Self {
        let mut bytes = Vec::with_capacity(room.saturating_add(1));
        bytes.push(RECORD_VERSION);
        Self(Secret::new(bytes))
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.expose_mut().extend_from_slice(bytes);
        self
    }

    pub(crate) fn u8(self, value: u8) -> Self {
        self.raw(&[value])
    }

    pub(crate) fn u16(self, value: u16) -> Self {
        self.raw(&value.to_be_bytes())
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.raw(&value.to_be_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.raw(&value.to_be_bytes())
    }

    /// With the length before them. What is longer than 2^32 is refused where it comes in.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX)).raw(bytes)
    }

    /// A flag, and the value if there is one.
    pub(crate) fn option<T>(self, value: Option<T>, write: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            None => self.u8(0),
            Some(value) => write(self.u8(1), value),
        }
    }

    pub(crate) fn finish(self) -> Secret<Vec<u8>> {
        self.0
    }
}

/// Reads one record of a table.
pub(crate) struct Decoder<'a> {
    table: &'static str,
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Begins after the version byte, if it is ours.
    pub(crate) fn new(table: &'static str, record: &'a [u8]) -> Result<Self, StoreError> {
        match record.split_first() {
            Some((&RECORD_VERSION, rest)) => Ok(Self { table, rest }),
            Some((&found, _)) => Err(StoreError::RecordVersion { table, found }),
            None => Err(StoreError::Record { table, problem: "a record is empty" }),
        }
    }

    pub(crate) const fn error(&self, problem: &'static str) -> StoreError {
        StoreError::Record { table: self.table, problem }
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], StoreError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(|| self.error("a record ends early"))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        self.take(N)?.try_into().map_err(|_| self.error("a record ends early"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, StoreError> {
        self.array::<1>().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, StoreError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, StoreError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, StoreError> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn bytes(&mut self, most: usize) -> Result<&'a [u8], StoreError> {
        let len = usize::try_from(self.u32()?).unwrap_or(usize::MAX);
        if len > most { Err(self.error("a field is too long")) } else { self.take(len) }
    }

    /// A name of any kind.
    pub(crate) fn name<T: FromStr>(&mut self) -> Result<T, StoreError> {
        let bytes = self.bytes(64)?;
        let text = core::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
        text.ok_or_else(|| self.error("a name is not one"))
    }

    pub(crate) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        match self.u8()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(self.error("a flag is neither 0 nor 1")),
        }
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn finish<T>(self, value: T) -> Result<T, StoreError> {
        if self.rest.is_empty() { Ok(value) } else { Err(self.error("a record goes on after its end")) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::*};
    use theta_names::{KeyName, KeyState, Purpose};

    use super::*;
    use crate::{Epoch, KeyRecord, VersionRecord, audit::AuditRecord, burnt::decode_day, journal::Ceremony, slots};

    fn epoch() -> impl Strategy<Value = Epoch> {
        (0..9_u64, 1..9_u16, 0..9_u16, vec(any::<u8>(), 0..40), vec(any::<u8>(), 0..40), any::<u64>()).prop_map(
            |(number, k, more, public, certificate, created)| Epoch {
                number,
                k,
                n: k + more,
                holders: (0..k + more).map(|place| 65_535 - place).collect(),
                public,
                certificate,
                created,
            },
        )
    }

    fn key() -> impl Strategy<Value = KeyRecord> {
        let version = (option::of(epoch()), option::of(epoch()), "[a-z0-9-]{1,20}", 0..5_usize, any::<u64>());
        let name = "[a-z0-9][a-z0-9._-]{0,63}";
        (name, 0..3_usize, 0..5_usize, option::of(name), vec(version, 0..4)).prop_map(
            |(name, purpose, state, policy, versions)| {
                let parsed = |name: String| name.parse::<KeyName>().unwrap();
                let mut key =
                    KeyRecord::new(parsed(name), Purpose::ALL[purpose], policy.map(|name| name.parse().unwrap()));
                key.state = KeyState::ALL[state];
                for (serving, pending, suite, state, created) in versions {
                    let pending = pending.map(|pending| Epoch { number: pending.number + 10, ..pending });
                    let (version, state) = (key.next_version, KeyState::ALL[state]);
                    key.versions.push(VersionRecord { version, state, suite, serving, pending, created });
                    key.next_version += 1;
                }
                key
            },
        )
    }

    /// What is decoded is encoded as it was: there is one encoding.
    fn canonical(bytes: &[u8]) {
        if let Ok(key) = KeyRecord::decode(bytes) {
            assert_eq!(key.encode().expose(), bytes);
        }
        if let Ok(ceremony) = Ceremony::decode(&[0; 32], bytes) {
            assert_eq!(ceremony.encode().expose(), bytes);
        }
        if let Ok(day) = decode_day(bytes) {
            assert_eq!(Encoder::new(4).u32(day).finish().expose(), bytes);
        }
        if let Ok(mark) = slots::decode_mark(bytes) {
            assert_eq!(slots::mark_record(mark).expose(), bytes);
        }
        if let Ok(digest) = slots::decode_digest(bytes) {
            assert_eq!(Encoder::new(32).raw(&digest).finish().expose(), bytes);
        }
        if let Ok(record) = AuditRecord::decode(&[0; 8], bytes) {
            let again = Encoder::new(80).raw(&record.previous).raw(&record.hash).bytes(&record.body).finish();
            assert_eq!(again.expose(), bytes);
        }
    }

    proptest! {
        #[test]
        fn keys_are_what_they_were(key in key()) {
            let encoded = key.encode();
            prop_assert_eq!(KeyRecord::decode(encoded.expose()).unwrap(), key);
        }

        #[test]
        fn no_bytes_are_misread(mut bytes in vec(any::<u8>(), 0..120), version in 0..3_u8) {
            if let Some(first) = bytes.first_mut() {
                *first = version;
            }
            canonical(&bytes);
        }

        #[test]
        fn changed_keys_are_refused_or_another_key(key in key(), place in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let mut bytes = key.encode().expose().clone();
            let cut = place.index(bytes.len());
            prop_assert!(KeyRecord::decode(&bytes[..cut]).is_err());
            bytes[cut] ^= 1 << bit;
            prop_assert!(KeyRecord::decode(&bytes).ok() != Some(key));
            canonical(&bytes);
            bytes.push(0);
            canonical(&bytes);
        }
    }

    #[test]
    fn lengths_beyond_the_record_take_no_memory() {
        let mut huge = vec![RECORD_VERSION];
        huge.extend_from_slice(&[0xff; 4]);
        assert!(Decoder::new("t", &huge).unwrap().bytes(usize::MAX).is_err());
        assert!(Decoder::new("t", &huge).unwrap().bytes(10).is_err());
        assert!(matches!(Decoder::new("t", &[1, 0]), Err(StoreError::RecordVersion { table: "t", found: 1 })));
        assert!(Decoder::new("t", &[]).is_err());
    }
}

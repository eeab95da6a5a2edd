//! The encoding of records: a version byte, then fields as [`theta_names::codec`] writes them, in a buffer that is
//! wiped.

use core::str::FromStr;

use theta_groups::Secret;
use theta_names::codec::{DecodeError, Reader, Sink, Writer};
use theta_names::{Delivery, Epoch, Version};

use crate::StoreError;

/// The version of every record, and of the store and the backup that they form: records of different versions do not
/// work together. Version 1 had no holders in an epoch, no identity, and remembered no peers; in 2 openings formed no
/// chain, and neither forks nor contradictions were remembered; in 3 the subject of a ceremony had its public key as
/// text; in 4 no key had a delivery; in 5 the public parts of keys were text, and a key had room for the name of a policy.
pub(crate) const RECORD_VERSION: u8 = 7;

/// A buffer that is wiped, also where it is moved as it grows.
pub(crate) struct Wiped(Secret<Vec<u8>>);

impl Sink for Wiped {
    type Written = Secret<Vec<u8>>;

    fn put(&mut self, bytes: &[u8]) {
        let written = self.0.expose();
        let needed = written.len().saturating_add(bytes.len());
        if needed > written.capacity() {
            // A vector that grows by itself would leave an unwiped copy of its content behind.
            let mut roomier = Vec::with_capacity(needed.saturating_mul(2));
            roomier.extend_from_slice(written);
            self.0 = Secret::new(roomier);
        }
        self.0.expose_mut().extend_from_slice(bytes);
    }

    fn finish(self) -> Secret<Vec<u8>> {
        self.0
    }
}

/// Writes one record.
pub(crate) type Encoder = Writer<Wiped>;

/// Begins a record of about `room` bytes.
pub(crate) fn encoder(room: usize) -> Encoder {
    Writer::onto(Wiped(Secret::new(Vec::with_capacity(room.saturating_add(1))))).u8(RECORD_VERSION)
}

/// Reads one record of a table: the canonical reader, with the table's name in its errors.
pub(crate) struct Decoder<'a> {
    table: &'static str,
    fields: Reader<'a>,
}

impl<'a> Decoder<'a> {
    /// Starts after the version byte, which must be this build's.
    pub(crate) fn new(table: &'static str, record: &'a [u8]) -> Result<Self, StoreError> {
        let mut fields = Reader::new(record);
        match fields.u8() {
            Ok(RECORD_VERSION) => Ok(Self { table, fields }),
            Ok(found) => Err(StoreError::RecordVersion { table, found }),
            Err(_) => Err(StoreError::Record { table, problem: "a record is empty" }),
        }
    }

    pub(crate) const fn error(&self, problem: &'static str) -> StoreError {
        StoreError::Record { table: self.table, problem }
    }

    /// Turns an error into the store's; `wrong` describes a field with a value that does not exist.
    const fn problem(&self, error: &DecodeError, wrong: &'static str) -> StoreError {
        self.error(match error {
            DecodeError::Truncated => "a record ends early",
            DecodeError::Trailing => "a record goes on after its end",
            DecodeError::TooLong { .. } => "a field is too long",
            DecodeError::Domain { .. } | DecodeError::Field(_) => wrong,
        })
    }

    fn field<T>(
        &mut self,
        wrong: &'static str,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, DecodeError>,
    ) -> Result<T, StoreError> {
        read(&mut self.fields).map_err(|error| self.problem(&error, wrong))
    }

    /// Reads a field of which every value exists.
    fn any<T>(&mut self, read: impl FnOnce(&mut Reader<'a>) -> Result<T, DecodeError>) -> Result<T, StoreError> {
        self.field("a field is not valid", read)
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], StoreError> {
        self.any(|fields| fields.take(len))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        self.any(Reader::array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, StoreError> {
        self.any(Reader::u8)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, StoreError> {
        self.any(Reader::u16)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, StoreError> {
        self.any(Reader::u32)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, StoreError> {
        self.any(Reader::u64)
    }

    pub(crate) fn version(&mut self) -> Result<Version, StoreError> {
        self.field("a version is 0", Reader::version)
    }

    pub(crate) fn epoch(&mut self) -> Result<Epoch, StoreError> {
        self.field("an epoch is out of range", Reader::epoch)
    }

    pub(crate) fn delivery(&mut self) -> Result<Delivery, StoreError> {
        self.field("a delivery is not known", Reader::delivery)
    }

    pub(crate) fn bytes(&mut self, most: usize) -> Result<&'a [u8], StoreError> {
        self.any(|fields| fields.bytes_within(most))
    }

    /// A name of any kind.
    pub(crate) fn name<T: FromStr>(&mut self) -> Result<T, StoreError> {
        self.field("a name is not one", |fields| fields.parsed("a name", 64))
    }

    pub(crate) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        if self.field("a flag is neither 0 nor 1", Reader::flag)? { read(self).map(Some) } else { Ok(None) }
    }

    pub(crate) const fn rest(&mut self) -> &'a [u8] {
        self.fields.rest()
    }

    pub(crate) fn finish<T>(self, value: T) -> Result<T, StoreError> {
        let Self { table, fields } = self;
        fields.end(value).map_err(|_| StoreError::Record { table, problem: "a record goes on after its end" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::*};
    use theta_names::{KeyName, KeyState, Purpose};

    use super::*;
    use crate::{
        EpochRecord, KeyRecord, Quarantined, VersionRecord, audit::AuditRecord, burnt::decode_day, journal::Ceremony,
        slots,
    };

    fn epoch() -> impl Strategy<Value = EpochRecord> {
        (0..9_u32, 1..9_u16, 0..9_u16, vec(any::<u8>(), 0..40), vec(any::<u8>(), 0..40), any::<u64>()).prop_map(
            |(number, k, more, public, certificate, created)| EpochRecord {
                number: Epoch::new(number),
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
        let kind = ("[a-z0-9-]{1,20}", 0..Delivery::ALL.len());
        let version = (option::of(epoch()), option::of(epoch()), kind, 0..5_usize, any::<u64>());
        let name = "[a-z0-9][a-z0-9._-]{0,63}";
        (name, 0..3_usize, 0..5_usize, vec(version, 0..4)).prop_map(|(name, purpose, state, versions)| {
            let mut key = KeyRecord::new(name.parse().unwrap(), Purpose::ALL[purpose]);
            key.state = KeyState::ALL[state];
            for (serving, pending, (suite, delivery), state, created) in versions {
                let delivery = Delivery::ALL[delivery];
                let pending =
                    pending.map(|pending| EpochRecord { number: Epoch::new(pending.number.get() + 10), ..pending });
                let (version, state) = (key.next_version, KeyState::ALL[state]);
                key.versions.push(VersionRecord { version, state, suite, delivery, serving, pending, created });
                key.next_version = version.next().unwrap();
            }
            key
        })
    }

    /// Whatever decodes encodes to the same bytes: each record has one encoding.
    fn canonical(bytes: &[u8]) {
        if let Ok(key) = KeyRecord::decode(bytes) {
            assert_eq!(key.encode().expose(), bytes);
        }
        if let Ok(ceremony) = Ceremony::decode(&[0; 32], bytes) {
            assert_eq!(ceremony.encode().expose(), bytes);
        }
        if let Ok(day) = decode_day(bytes) {
            assert_eq!(encoder(4).u32(day).finish().expose(), bytes);
        }
        if let Ok(mark) = slots::decode_mark(bytes) {
            assert_eq!(slots::mark_record(mark).expose(), bytes);
        }
        if let Ok(digest) = slots::decode_digest(bytes) {
            assert_eq!(encoder(32).raw(&digest).finish().expose(), bytes);
        }
        if let Ok(quarantined) = Quarantined::decode(bytes) {
            assert_eq!(quarantined.encode().expose(), bytes);
        }
        if let Ok(record) = AuditRecord::decode(&[0; 8], bytes) {
            let again = encoder(80).raw(&record.previous).raw(&record.hash).bytes(&record.body).finish();
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
        fn no_bytes_are_misread(mut bytes in vec(any::<u8>(), 0..120), version in 0..=RECORD_VERSION) {
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

    #[test]
    fn a_record_without_room_is_the_same_record() {
        let parts: Vec<Vec<u8>> = (0..100).map(|len: u8| vec![len; usize::from(len)]).collect();
        let write = |room| parts.iter().fold(encoder(room), |encoder, part| encoder.bytes(part)).finish();
        assert_eq!(write(0).expose(), write(1 << 16).expose());
    }

    #[test]
    fn what_is_wrong_is_said_with_the_table() {
        let problem = |fields: &[u8], read: fn(&mut Decoder<'_>) -> Result<(), StoreError>| {
            let record = [&[RECORD_VERSION], fields].concat();
            let mut decoder = Decoder::new("t", &record).unwrap();
            match read(&mut decoder).and_then(|()| decoder.finish(())) {
                Err(StoreError::Record { table: "t", problem }) => problem,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(problem(&[0, 0, 0], |decoder| decoder.u32().map(drop)), "a record ends early");
        assert_eq!(problem(&[0, 0, 0], |decoder| decoder.u16().map(drop)), "a record goes on after its end");
        assert_eq!(problem(&[0, 0, 0, 2, 1, 1], |decoder| decoder.bytes(1).map(drop)), "a field is too long");
        assert_eq!(problem(&[2], |decoder| decoder.option(Decoder::u8).map(drop)), "a flag is neither 0 nor 1");
        assert_eq!(problem(&[0; 4], |decoder| decoder.version().map(drop)), "a version is 0");
        assert_eq!(problem(&[0, 0, 0, 1, 0, 0, 0, 0], |decoder| decoder.epoch().map(drop)), "an epoch is out of range");
        assert_eq!(problem(&[0, 0, 0, 1, b'A'], |decoder| decoder.name::<KeyName>().map(drop)), "a name is not one");
    }
}

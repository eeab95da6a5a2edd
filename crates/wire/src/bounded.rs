//! Messages that are read up to a number of fields.
//!
//! What carries messages bounds their bytes. That is not enough: an entry of a list that has two bytes takes a hundred times as much in memory,
//! and fields that mean nothing are skipped one by one, so that 16 MiB of them take a receiver as long as thousands of good messages. So the
//! fields are counted while they are read, and nothing is read behind the last one that there may be.

use core::fmt;

use bytes::{Buf, BufMut};
use prost::{
    DecodeError, Message,
    encoding::{DecodeContext, WireType},
};

/// A message of which `MOST` fields are read, each entry of a list counting as one. Groups, which are fields within fields, are in no message of
/// ours, and are not read either.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounded<M, const MOST: usize> {
    message: M,
    fields: usize,
    has_more: bool,
}

/// A message has more fields than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyFields {
    /// How many it may have.
    pub most: usize,
}

impl<M, const MOST: usize> Bounded<M, MOST> {
    /// The message, and how many fields it has.
    ///
    /// # Errors
    /// [`TooManyFields`].
    pub fn whole(self) -> Result<(M, usize), TooManyFields> {
        if self.has_more { Err(TooManyFields { most: MOST }) } else { Ok((self.message, self.fields)) }
    }
}

impl<M: Message + Default, const MOST: usize> Message for Bounded<M, MOST> {
    fn encode_raw(&self, buffer: &mut impl BufMut) {
        self.message.encode_raw(buffer);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buffer: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        let is_group = matches!(wire_type, WireType::StartGroup | WireType::EndGroup);
        if self.fields >= MOST || is_group {
            self.has_more = true;
            buffer.advance(buffer.remaining());
            return Ok(());
        }
        self.fields = self.fields.saturating_add(1);
        self.message.merge_field(tag, wire_type, buffer, context)
    }

    fn encoded_len(&self) -> usize {
        self.message.encoded_len()
    }

    fn clear(&mut self) {
        self.message.clear();
        (self.fields, self.has_more) = (0, false);
    }
}

impl fmt::Display for TooManyFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it has more than {} parts", self.most)
    }
}

impl core::error::Error for TooManyFields {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{KeyInfo, ListKeysResponse};

    fn keys(count: usize) -> ListKeysResponse {
        ListKeysResponse { keys: vec![KeyInfo::default(); count] }
    }

    #[test]
    fn what_has_more_fields_than_it_may_is_not_read() {
        let read = |count| Bounded::<ListKeysResponse, 4>::decode(keys(count).encode_to_vec().as_slice()).unwrap();
        assert_eq!(read(4).whole(), Ok((keys(4), 4)));
        assert_eq!(read(5).whole(), Err(TooManyFields { most: 4 }));
        let over = read(100_000);
        assert_eq!(over.message.keys.len(), 4, "the others take neither memory nor time");
        assert!(over.whole().is_err());
    }

    #[test]
    fn fields_that_mean_nothing_count_and_groups_are_not_read() {
        // A number, eight bytes, a string, four bytes: fields of a later release.
        for field in [&b"\x78\x81\x01"[..], b"\x79********", b"\x7a\x02xx", b"\x7d****"] {
            let read = |count| Bounded::<ListKeysResponse, 8>::decode(field.repeat(count).as_slice()).unwrap().whole();
            assert_eq!(read(8), Ok((keys(0), 8)));
            assert!(read(9).is_err());
        }
        // One group is one field, whatever is in it.
        let group = [b"\x7b".to_vec(), b"\x78\x01".repeat(100_000), b"\x7c".to_vec()].concat();
        assert!(Bounded::<ListKeysResponse, 8>::decode(group.as_slice()).unwrap().whole().is_err());
    }

    #[test]
    fn it_is_written_as_the_message_is() {
        let bytes = keys(3).encode_to_vec();
        let read = Bounded::<ListKeysResponse, 4>::decode(bytes.as_slice()).unwrap();
        assert_eq!((read.encode_to_vec(), read.encoded_len()), (bytes.clone(), bytes.len()));
    }
}

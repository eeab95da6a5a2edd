//! Messages that are read up to a number of fields.
//!
//! A message of two bytes an entry takes a hundred times as much in memory. What a node sends is bounded in bytes, and of lists that may be long
//! in bytes the entries are counted while they are read.

use bytes::{Buf, BufMut, Bytes};
use prost::{
    DecodeError, Message,
    encoding::{DecodeContext, WireType, skip_field},
};
use tonic::Status;

/// A message of which `MOST` fields are read, each entry of a list counting as one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bounded<M, const MOST: usize> {
    message: M,
    fields: usize,
}

impl<M, const MOST: usize> Bounded<M, MOST> {
    /// The message, if it had no more fields.
    pub(crate) fn whole(self) -> Result<M, Status> {
        if self.fields > MOST {
            return Err(Status::internal(format!("the answer has {} parts, and may have {MOST}", self.fields)));
        }
        Ok(self.message)
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
        self.fields = self.fields.saturating_add(1);
        if self.fields > MOST {
            return skip_field(wire_type, tag, buffer, context);
        }
        self.message.merge_field(tag, wire_type, buffer, context)
    }

    fn encoded_len(&self) -> usize {
        self.message.encoded_len()
    }

    fn clear(&mut self) {
        self.message.clear();
        self.fields = 0;
    }
}

/// An answer that is a list, its first field: each entry as it came.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct List {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(crate) entries: Vec<Bytes>,
}

/// An entry of a list, if it has no more fields than it may.
pub(crate) fn entry<M: Message + Default, const MOST: usize>(bytes: Bytes) -> Result<M, Status> {
    Ok(counted_entry::<M, MOST>(bytes)?.0)
}

/// The same, and how many fields it has.
pub(crate) fn counted_entry<M: Message + Default, const MOST: usize>(bytes: Bytes) -> Result<(M, usize), Status> {
    let entry = Bounded::<M, MOST>::decode(bytes).map_err(|error| Status::internal(error.to_string()))?;
    let fields = entry.fields;
    Ok((entry.whole()?, fields))
}

#[cfg(test)]
mod tests {
    use super::*;
    use theta_wire::v1::{CeremonyStatus, Evidence, KeyInfo, ListKeysResponse};

    #[test]
    fn what_has_more_parts_than_it_may_is_not_read() {
        let keys = |count: usize| ListKeysResponse { keys: vec![KeyInfo::default(); count] }.encode_to_vec();
        let read = |count| Bounded::<List, 4>::decode(keys(count).as_slice()).unwrap();
        assert_eq!(read(4).whole().unwrap().entries, vec![Bytes::new(); 4]);
        let over = read(1_000_000);
        assert_eq!(over.message.entries.len(), 4, "the others take no memory");
        assert!(over.whole().is_err());
        let evidence = vec![Evidence::default(); 5];
        let status = CeremonyStatus { key: "seal".to_owned(), evidence, ..CeremonyStatus::default() };
        let bytes = Bytes::from(status.encode_to_vec());
        assert!(entry::<CeremonyStatus, 5>(bytes.clone()).is_err());
        assert_eq!(entry::<CeremonyStatus, 6>(bytes).unwrap(), status);
    }
}

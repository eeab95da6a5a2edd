//! Lists in answers, whose entries are counted while they are read ([`Bounded`]).

use bytes::Bytes;
use prost::Message;
use theta_wire::{Bounded, TooManyFields};
use tonic::Status;

/// An answer that is a list, its first field: each entry as it came.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct List {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(crate) entries: Vec<Bytes>,
}

/// The answer, if it has no more fields than it may.
pub(crate) fn whole<M, const MOST: usize>(answer: Bounded<M, MOST>) -> Result<M, Status> {
    Ok(answer.whole().map_err(too_many)?.0)
}

/// An entry of a list, if it has no more fields than it may.
pub(crate) fn entry<M: Message + Default, const MOST: usize>(bytes: Bytes) -> Result<M, Status> {
    Ok(counted_entry::<M, MOST>(bytes)?.0)
}

/// The same, and how many fields it has.
pub(crate) fn counted_entry<M: Message + Default, const MOST: usize>(bytes: Bytes) -> Result<(M, usize), Status> {
    let entry = Bounded::<M, MOST>::decode(bytes).map_err(|error| Status::internal(error.to_string()))?;
    entry.whole().map_err(too_many)
}

fn too_many(error: TooManyFields) -> Status {
    Status::internal(format!("the answer is too long: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use theta_wire::v1::{CeremonyStatus, Evidence, KeyInfo, ListKeysResponse};

    #[test]
    fn what_has_more_parts_than_it_may_is_not_read() {
        let keys = |count: usize| ListKeysResponse { keys: vec![KeyInfo::default(); count] }.encode_to_vec();
        let read = |count| whole(Bounded::<List, 4>::decode(keys(count).as_slice()).unwrap());
        assert_eq!(read(4).unwrap().entries, vec![Bytes::new(); 4]);
        assert!(read(1_000_000).unwrap_err().message().contains("more than 4 parts"));
        let evidence = vec![Evidence::default(); 5];
        let status = CeremonyStatus { key: "seal".to_owned(), evidence, ..CeremonyStatus::default() };
        let bytes = Bytes::from(status.encode_to_vec());
        assert!(entry::<CeremonyStatus, 5>(bytes.clone()).is_err());
        assert_eq!(entry::<CeremonyStatus, 6>(bytes).unwrap(), status);
    }
}

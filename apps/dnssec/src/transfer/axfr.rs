//! A whole zone from its primary (RFC 5936).

use domain::base::iana::Rtype;

use super::{
    TransferError,
    answers::{AnyRecord, Arriving, question, receive, start},
    tsig::Key,
};
use crate::{
    owner::Owner,
    zone::{Builder, Zone},
};

/// The whole zone.
pub(super) fn zone(address: &str, key: &Key, origin: &Owner) -> Result<Zone, TransferError> {
    let mut zone = Received::new(origin);
    receive(address, key, question(origin, Rtype::AXFR)?, &mut zone)?;
    zone.finish()
}

/// A zone on its way: it begins and ends with the same SOA record (RFC 5936, section 2.2).
pub(super) struct Received<'a> {
    origin: &'a Owner,
    builder: Builder,
    first: Option<Vec<u8>>,
    has_ended: bool,
}

impl<'a> Received<'a> {
    /// Nothing has come yet.
    pub(super) fn new(origin: &'a Owner) -> Self {
        Self { origin, builder: Builder::new(origin.clone()), first: None, has_ended: false }
    }

    /// The data of the SOA record with which it began.
    pub(super) fn first(&self) -> Option<&[u8]> {
        self.first.as_deref()
    }

    pub(super) fn finish(self) -> Result<Zone, TransferError> {
        Ok(self.builder.finish()?)
    }
}

impl Arriving for Received<'_> {
    fn add(&mut self, record: &AnyRecord<'_>) -> Result<(), TransferError> {
        if self.has_ended {
            return Err(TransferError::Message("there are records after the second SOA record"));
        }
        match (start(record, self.origin)?, &self.first) {
            (Some(data), Some(first)) => {
                self.has_ended = true;
                let same = data == *first;
                return if same { Ok(()) } else { Err(TransferError::Message("the zone changed while it was sent")) };
            }
            (Some(data), None) => self.first = Some(data),
            (None, Some(_)) => {}
            (None, None) => return Err(TransferError::Message("the first record is no SOA record")),
        }
        Ok(self.builder.add(record)?)
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}

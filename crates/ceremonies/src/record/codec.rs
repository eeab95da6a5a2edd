//! Reading bytes from outside: every length is checked, nothing is left over unseen.

use theta_names::NodeId;
use theta_rounds::{Malformed, PartyId};

/// What is left of a message.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed("too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed("too short"))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn party(&mut self) -> Result<PartyId, Malformed> {
        let node = NodeId::try_from(self.u16()?).map_err(|_| Malformed("no party has number zero"))?;
        Ok(PartyId::of_node(node))
    }

    /// Bytes behind their length in four bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.u32()?;
        self.take(usize::try_from(len).map_err(|_| Malformed("too long"))?)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) const fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("too long")) }
    }

    /// Reads items until nothing is left.
    pub(crate) fn all<T>(mut self, item: impl Fn(&mut Self) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        let mut items = Vec::new();
        while !self.is_empty() {
            items.push(item(&mut self)?);
        }
        Ok(items)
    }
}

/// Appends bytes behind their length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // What is sent is bounded far below four gigabytes; should it not be, the receiver finds it malformed.
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a party's number.
pub(crate) fn put_party(out: &mut Vec<u8>, party: PartyId) {
    out.extend_from_slice(&party.get().to_be_bytes());
}

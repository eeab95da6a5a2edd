//! The encoding of what custodians keep and send: fixed numbers in big-endian order, everything else behind its length.
//!
//! There is one encoding of every value, and the reader takes no other.

use theta_rounds::{Malformed, PartyId};
use theta_schemes::keys::KeyName;

/// Writes fields one after the other.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn new(first: u8) -> Self {
        Self(vec![first])
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
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

    /// Behind its length in one byte; names and words are never longer.
    pub(crate) fn word(self, text: &str) -> Self {
        let text = text.get(..text.len().min(255)).unwrap_or_default();
        self.u8(u8::try_from(text.len()).unwrap_or(u8::MAX)).raw(text.as_bytes())
    }

    /// Behind its length in four bytes.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX)).raw(bytes)
    }

    /// Behind their number in two bytes.
    pub(crate) fn nodes(self, nodes: &[u16]) -> Self {
        let writer = self.u16(u16::try_from(nodes.len()).unwrap_or(u16::MAX));
        nodes.iter().fold(writer, |writer, node| writer.u16(*node))
    }

    /// A flag, and the value if there is one.
    pub(crate) fn option<T>(self, value: Option<T>, write: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            None => self.u8(0),
            Some(value) => write(self.u8(1), value),
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads what [`Writer`] wrote.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed("it ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed("it ends early"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn word(&mut self) -> Result<&'a str, Malformed> {
        let len = usize::from(self.u8()?);
        core::str::from_utf8(self.take(len)?).map_err(|_| Malformed("not text"))
    }

    pub(crate) fn name(&mut self) -> Result<KeyName, Malformed> {
        self.word()?.parse().map_err(|_| Malformed("not the name of a key"))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = usize::try_from(self.u32()?).map_err(|_| Malformed("it ends early"))?;
        self.take(len)
    }

    /// A node's number, which is never 0.
    pub(crate) fn node(&mut self) -> Result<u16, Malformed> {
        let node = self.u16()?;
        if node == 0 { Err(Malformed("there is no node 0")) } else { Ok(node) }
    }

    pub(crate) fn nodes(&mut self) -> Result<Vec<u16>, Malformed> {
        let count = usize::from(self.u16()?);
        if self.0.len() < 2 * count {
            return Err(Malformed("it ends early"));
        }
        (0..count).map(|_| self.node()).collect()
    }

    pub(crate) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        match self.u8()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(Malformed("a flag is neither 0 nor 1")),
        }
    }

    /// All that is left.
    pub(crate) const fn rest(&mut self) -> &'a [u8] {
        let rest = self.0;
        self.0 = &[];
        rest
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn end<T>(self, value: T) -> Result<T, Malformed> {
        if self.0.is_empty() { Ok(value) } else { Err(Malformed("it goes on after its end")) }
    }
}

/// Parties by number; none of them is 0.
pub(crate) fn parties(nodes: &[u16]) -> Vec<PartyId> {
    nodes.iter().filter_map(|node| PartyId::try_from(*node).ok()).collect()
}

/// Numbers of parties.
pub(crate) fn numbers(parties: &[PartyId]) -> Vec<u16> {
    parties.iter().map(|party| party.get()).collect()
}

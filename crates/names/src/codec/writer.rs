//! Writing.

use crate::{Delivery, Epoch, Label, NodeId, Version};

/// What a [`Writer`] appends to: a vector, or a buffer of another crate that is wiped when it is dropped.
pub trait Sink {
    /// What [`Writer::finish`] gives.
    type Written;

    /// Appends bytes.
    fn put(&mut self, bytes: &[u8]);

    /// Ends writing.
    fn finish(self) -> Self::Written;
}

impl Sink for Vec<u8> {
    type Written = Self;

    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn finish(self) -> Self {
        self
    }
}

/// Appends to a buffer that stays the caller's.
impl Sink for &mut Vec<u8> {
    type Written = ();

    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn finish(self) {}
}

/// Writes fields one after the other.
#[derive(Debug)]
pub struct Writer<S = Vec<u8>>(S);

impl Default for Writer {
    /// An empty writer.
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl Writer {
    /// Begins with one byte: a format, or a tag.
    #[must_use]
    pub fn new(first: u8) -> Self {
        Self(vec![first])
    }

    /// Begins with a domain, written as by [`Writer::text`].
    #[must_use]
    pub fn of(domain: &'static str) -> Self {
        Self(Vec::with_capacity(256)).text(domain)
    }
}

impl<S: Sink> Writer<S> {
    /// Appends to what the sink holds already.
    #[must_use]
    pub const fn onto(sink: S) -> Self {
        Self(sink)
    }

    /// Bytes without a length.
    #[must_use]
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.put(bytes);
        self
    }

    /// One byte.
    #[must_use]
    pub fn u8(self, value: u8) -> Self {
        self.raw(&[value])
    }

    /// One byte, 0 or 1.
    #[must_use]
    pub fn flag(self, value: bool) -> Self {
        self.u8(u8::from(value))
    }

    /// Two bytes.
    #[must_use]
    pub fn u16(self, value: u16) -> Self {
        self.raw(&value.to_be_bytes())
    }

    /// Four bytes.
    #[must_use]
    pub fn u32(self, value: u32) -> Self {
        self.raw(&value.to_be_bytes())
    }

    /// Eight bytes.
    #[must_use]
    pub fn u64(self, value: u64) -> Self {
        self.raw(&value.to_be_bytes())
    }

    /// A version of a key.
    #[must_use]
    pub fn version(self, version: Version) -> Self {
        self.raw(&version.to_be_bytes())
    }

    /// A version or none, for which 0 stands.
    #[must_use]
    pub fn named_version(self, version: Option<Version>) -> Self {
        self.u32(Version::number_of(version))
    }

    /// An epoch, in eight bytes.
    #[must_use]
    pub fn epoch(self, epoch: Epoch) -> Self {
        self.raw(&epoch.to_be_bytes())
    }

    /// An epoch in four bytes, as ceremonies encode it.
    #[must_use]
    pub fn short_epoch(self, epoch: Epoch) -> Self {
        self.u32(epoch.get())
    }

    /// A delivery, by its code.
    #[must_use]
    pub fn delivery(self, delivery: Delivery) -> Self {
        self.u8(delivery.code())
    }

    /// A text after its length in one byte. A text of more than 255 bytes is cut between characters; names are shorter.
    #[must_use]
    pub fn word(self, text: &str) -> Self {
        let text = text.get(..text.floor_char_boundary(255)).unwrap_or_default();
        self.u8(u8::try_from(text.len()).unwrap_or(u8::MAX)).raw(text.as_bytes())
    }

    /// Bytes after their length in four bytes. Callers bound them far below 4 GiB; what is longer could not be read again.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX)).raw(bytes)
    }

    /// A text after its length in four bytes.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// A label after its length in four bytes.
    #[must_use]
    pub fn label(self, label: Label<&[u8]>) -> Self {
        self.bytes(label.bytes())
    }

    /// Numbers of nodes after their count in two bytes.
    #[must_use]
    pub fn nodes(self, nodes: &[u16]) -> Self {
        let writer = self.u16(u16::try_from(nodes.len()).unwrap_or(u16::MAX));
        nodes.iter().fold(writer, |writer, node| writer.u16(*node))
    }

    /// A node, by its number.
    #[must_use]
    pub fn node_id(self, node: NodeId) -> Self {
        self.u16(node.get())
    }

    /// The byte 0, or the byte 1 and the value.
    #[must_use]
    pub fn option<T>(self, value: Option<T>, write: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            None => self.u8(0),
            Some(value) => write(self.u8(1), value),
        }
    }

    /// What was written.
    pub fn finish(self) -> S::Written {
        self.0.finish()
    }
}

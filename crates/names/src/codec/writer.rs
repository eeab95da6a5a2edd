//! Writing.

use crate::{Epoch, Label, NodeId, Version};

/// Where a [`Writer`] puts what it writes: a vector, or a buffer of a floor above that is wiped.
pub trait Sink {
    /// What was written, when all is.
    type Written;

    /// Appends bytes.
    fn put(&mut self, bytes: &[u8]);

    /// The end.
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

/// A buffer of somebody else, who goes on with it.
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
    /// Begins with nothing.
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

    /// Begins with a domain, as [`Writer::text`].
    #[must_use]
    pub fn of(domain: &'static str) -> Self {
        Self(Vec::with_capacity(256)).text(domain)
    }
}

impl<S: Sink> Writer<S> {
    /// Goes on behind what is there already.
    #[must_use]
    pub const fn onto(sink: S) -> Self {
        Self(sink)
    }

    /// Bytes as they are.
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

    /// 0 or 1.
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

    /// A version as it may be named: 0 stands for none.
    #[must_use]
    pub fn named_version(self, version: Option<Version>) -> Self {
        self.u32(Version::number_of(version))
    }

    /// An epoch, in eight bytes.
    #[must_use]
    pub fn epoch(self, epoch: Epoch) -> Self {
        self.raw(&epoch.to_be_bytes())
    }

    /// An epoch in four bytes, as ceremonies have it.
    #[must_use]
    pub fn short_epoch(self, epoch: Epoch) -> Self {
        self.u32(epoch.get())
    }

    /// Behind its length in one byte. Names and words are never longer than 255 bytes; what is longer is cut.
    #[must_use]
    pub fn word(self, text: &str) -> Self {
        let text = text.get(..text.floor_char_boundary(255)).unwrap_or_default();
        self.u8(u8::try_from(text.len()).unwrap_or(u8::MAX)).raw(text.as_bytes())
    }

    /// Behind its length in four bytes. Fields are bounded far below 4 GiB by those who make them; a longer one would be refused
    /// at reading.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX)).raw(bytes)
    }

    /// Behind its length in four bytes.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// A label, behind its length in four bytes.
    #[must_use]
    pub fn label(self, label: Label<&[u8]>) -> Self {
        self.bytes(label.bytes())
    }

    /// Numbers of nodes behind their number in two bytes.
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

    /// A byte 0, or 1 and the value.
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

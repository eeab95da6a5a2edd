//! Messages as tonic sees them: bytes on their way in, something that can be written on its way out.

use core::fmt;

use bytes::{Buf, Bytes};
use prost::Message;
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

/// A message that can write itself, of whatever type.
trait Writes: Send + Sync {
    fn write(&self, to: &mut EncodeBuf<'_>) -> Result<(), Status>;
}

impl<M: Message> Writes for M {
    fn write(&self, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        self.encode(to).map_err(|error| Status::internal(error.to_string()))
    }
}

/// A message on its way out. It is encoded straight into the buffer that is sent.
pub struct Outgoing(Box<dyn Writes>);

impl Outgoing {
    /// A message to send.
    pub fn new<M: Message + 'static>(message: M) -> Self {
        Self(Box::new(message))
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outgoing")
    }
}

/// Decodes a message that has come. It borrows from the buffer in which it arrived.
///
/// # Errors
/// `INTERNAL`, with the words of the decoder, as tonic's own codec says it.
pub(super) fn decoded<M: Message + Default>(bytes: Bytes) -> Result<M, Status> {
    M::decode(bytes).map_err(|error| Status::internal(error.to_string()))
}

/// The codec of all messages: it takes what writes itself, and gives bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frames;

impl Codec for Frames {
    type Encode = Outgoing;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Frames {
    type Item = Outgoing;
    type Error = Status;

    fn encode(&mut self, item: Outgoing, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.0.write(to)
    }
}

impl Decoder for Frames {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        // No copy: the message's part of the buffer is taken out of it.
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

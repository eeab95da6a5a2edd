//! The frames of a connection: `length: u32 | kind: u8 | body`, big-endian; the length counts kind and body.
//!
//! The dialling side sends [`Frame::Hello`] first and, once welcomed, [`Frame::Data`] and [`Frame::Ping`]. The accepting
//! side answers with [`Frame::Welcome`] first, then [`Frame::Ack`], which is also its sign of life.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The version of the protocol. Both sides must speak the same.
pub(super) const VERSION: u16 = 1;

/// Drawn at random when a mesh starts: it distinguishes a restarted peer from one that only reconnects.
pub(crate) type BootId = [u8; 16];

/// The bytes of length, kind and sequence number of a data frame.
pub(super) const DATA_HEADER_BYTES: usize = 4 + 1 + 8;

/// The largest length field of a frame without a message.
pub(super) const CONTROL_FRAME_BYTES: usize = 64;

const LENGTH_BYTES: usize = 4;
const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const DATA: u8 = 3;
const ACK: u8 = 4;
const PING: u8 = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The sender's boot id, and the lowest sequence number that it may still send.
    Hello { version: u16, boot: BootId, oldest: u64 },
    /// Everything up to `delivered` from the peer's boot id has been delivered.
    Welcome { version: u16, delivered: u64 },
    /// Message number `sequence`, counted from 1.
    Data { sequence: u64, message: Bytes },
    /// Everything up to `delivered` has been delivered.
    Ack { delivered: u64 },
    /// A sign of life.
    Ping,
}

/// The other side does not follow the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameError {
    #[error("a frame of {length} bytes is over the limit of {limit}")]
    TooLong { length: usize, limit: usize },
    #[error("a frame of unknown kind {0}")]
    UnknownKind(u8),
    #[error("a frame of kind {kind} with a body of {length} bytes")]
    BadLength { kind: u8, length: usize },
    #[error("an empty frame")]
    Empty,
}

impl Frame {
    /// Encodes a control frame. Data frames are written by [`put_data_header`], without copying the message.
    pub(super) fn encode(&self) -> BytesMut {
        let mut body = BytesMut::with_capacity(CONTROL_FRAME_BYTES);
        match self {
            Self::Hello { version, boot, oldest } => {
                body.put_u8(HELLO);
                body.put_u16(*version);
                body.put_slice(boot);
                body.put_u64(*oldest);
            }
            Self::Welcome { version, delivered } => {
                body.put_u8(WELCOME);
                body.put_u16(*version);
                body.put_u64(*delivered);
            }
            Self::Data { sequence, message } => {
                body.put_u8(DATA);
                body.put_u64(*sequence);
                body.put_slice(message);
            }
            Self::Ack { delivered } => {
                body.put_u8(ACK);
                body.put_u64(*delivered);
            }
            Self::Ping => body.put_u8(PING),
        }
        let mut frame = BytesMut::with_capacity(LENGTH_BYTES.saturating_add(body.len()));
        put_length(&mut frame, body.len());
        frame.put(body);
        frame
    }

    fn parse(mut body: Bytes) -> Result<Self, FrameError> {
        let kind = body.try_get_u8().map_err(|_| FrameError::Empty)?;
        let length = body.len();
        let frame = Self::parse_body(kind, &mut body)?;
        match frame {
            Some(frame) if body.is_empty() => Ok(frame),
            _ => Err(FrameError::BadLength { kind, length }),
        }
    }

    /// `None`: the body is too short.
    fn parse_body(kind: u8, body: &mut Bytes) -> Result<Option<Self>, FrameError> {
        let mut read = || -> Result<Result<Self, FrameError>, bytes::TryGetError> {
            Ok(Ok(match kind {
                HELLO => {
                    let version = body.try_get_u16()?;
                    let mut boot = BootId::default();
                    body.try_copy_to_slice(&mut boot)?;
                    Self::Hello { version, boot, oldest: body.try_get_u64()? }
                }
                WELCOME => Self::Welcome { version: body.try_get_u16()?, delivered: body.try_get_u64()? },
                DATA => Self::Data { sequence: body.try_get_u64()?, message: core::mem::take(body) },
                ACK => Self::Ack { delivered: body.try_get_u64()? },
                PING => Self::Ping,
                unknown => return Ok(Err(FrameError::UnknownKind(unknown))),
            }))
        };
        read().ok().transpose()
    }
}

/// Writes a data frame without its message.
pub(super) fn put_data_header(buffer: &mut BytesMut, sequence: u64, message_bytes: usize) {
    put_length(buffer, message_bytes.saturating_add(DATA_HEADER_BYTES - LENGTH_BYTES));
    buffer.put_u8(DATA);
    buffer.put_u64(sequence);
}

fn put_length(buffer: &mut BytesMut, length: usize) {
    // Limits are checked when a mesh starts; the other side would refuse a length that does not fit.
    buffer.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
}

/// Takes the next whole frame out of the received bytes, without copying it.
///
/// `None`: more bytes are needed, and `received` has room for them. `limit` bounds the length field.
pub(super) fn take(received: &mut BytesMut, limit: usize) -> Result<Option<Frame>, FrameError> {
    let Some(prefix) = received.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let length = usize::try_from(u32::from_be_bytes(*prefix)).unwrap_or(usize::MAX);
    if length > limit {
        return Err(FrameError::TooLong { length, limit });
    }
    let total = length.saturating_add(LENGTH_BYTES);
    if received.len() < total {
        received.reserve(total.saturating_sub(received.len()));
        return Ok(None);
    }
    received.advance(LENGTH_BYTES);
    Frame::parse(received.split_to(length).freeze()).map(Some)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> Vec<Frame> {
        vec![
            Frame::Hello { version: VERSION, boot: [7; 16], oldest: 3 },
            Frame::Welcome { version: VERSION, delivered: 2 },
            Frame::Data { sequence: 3, message: Bytes::from_static(b"message") },
            Frame::Data { sequence: 4, message: Bytes::new() },
            Frame::Ack { delivered: u64::MAX },
            Frame::Ping,
        ]
    }

    #[test]
    fn frames_survive_any_fragmentation() {
        let stream: Vec<u8> = frames().iter().flat_map(|frame| frame.encode().to_vec()).collect();
        for step in 1..stream.len() {
            let (mut received, mut taken) = (BytesMut::new(), Vec::new());
            for piece in stream.chunks(step) {
                received.extend_from_slice(piece);
                while let Some(frame) = take(&mut received, 64).unwrap() {
                    taken.push(frame);
                }
            }
            assert_eq!(taken, frames(), "in steps of {step}");
        }
    }

    #[test]
    fn a_data_header_and_its_message_are_a_data_frame() {
        let mut buffer = BytesMut::new();
        put_data_header(&mut buffer, 9, 2);
        assert_eq!(buffer.len(), DATA_HEADER_BYTES);
        buffer.extend_from_slice(b"ab");
        let expected = Frame::Data { sequence: 9, message: Bytes::from_static(b"ab") };
        assert_eq!(take(&mut buffer, 64), Ok(Some(expected)));
    }

    #[test]
    fn malformed_frames_are_named() {
        let take = |bytes: &[u8]| take(&mut BytesMut::from(bytes), 64);
        assert_eq!(take(&[0, 0, 0, 65]), Err(FrameError::TooLong { length: 65, limit: 64 }));
        assert_eq!(take(&[0, 0, 0, 0]), Err(FrameError::Empty));
        assert_eq!(take(&[0, 0, 0, 1, 99]), Err(FrameError::UnknownKind(99)));
        assert_eq!(take(&[0, 0, 0, 2, ACK, 0]), Err(FrameError::BadLength { kind: ACK, length: 1 }));
        assert_eq!(take(&[0, 0, 0, 2, PING, 0]), Err(FrameError::BadLength { kind: PING, length: 1 }));
    }

    proptest! {
        #[test]
        fn no_input_panics_or_overruns(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut received = BytesMut::from(bytes.as_slice());
            while let Ok(Some(_)) = take(&mut received, 128) {}
            prop_assert!(received.capacity() <= 1024);
        }
    }
}

//! The frames of a mesh connection. The module that reads them is private to its crate and depends on nothing else, so its
//! source is included here.

#[allow(dead_code, reason = "the mesh uses all of it")]
#[path = "../../crates/network/src/mesh/frame.rs"]
mod frame;

use bytes::{Bytes, BytesMut};

use frame::{Frame, take};

/// The longest frame in this target, in bytes.
const LIMIT: usize = 4096;

/// All complete frames at the front of a stream that arrives in pieces, encoded again, and whether an error ended it.
pub fn frames(stream: &[u8], piece: usize) -> (Vec<u8>, bool) {
    let (mut received, mut encoded) = (BytesMut::new(), Vec::new());
    for piece in stream.chunks(piece) {
        received.extend_from_slice(piece);
        loop {
            match take(&mut received, LIMIT) {
                Ok(Some(frame)) => encoded.extend_from_slice(&frame.encode()),
                Ok(None) => break,
                Err(_) => return (encoded, true),
            }
        }
        assert!(received.len() <= LIMIT + 4, "more is kept than a frame can have");
    }
    (encoded, false)
}

/// One frame of each kind.
pub fn samples() -> Vec<Vec<u8>> {
    let message = Bytes::from_static(b"message");
    let frames = [
        Frame::Hello { version: 1, boot: [7; 16], oldest: 3 },
        Frame::Welcome { version: 1, delivered: 2 },
        Frame::Data { sequence: 3, message },
        Frame::Ack { delivered: u64::MAX },
        Frame::Ping,
    ];
    frames.iter().map(|frame| frame.encode().to_vec()).collect()
}

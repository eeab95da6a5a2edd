//! The frames that a carrier carries, in the clear around what is sealed (`spec/carriers.md`). Big-endian.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::Fingerprint;

/// The version of the format.
const VERSION: u8 = 1;
const HELLO: u8 = 1;
const ANSWER: u8 = 2;
const FINISH: u8 = 3;
const SEALED: u8 = 4;

/// The first bytes of the fingerprint of a node's key: they say whose frame it is before anything is checked, and prove nothing.
pub(super) type Tag = [u8; 8];

/// The bytes before what is sealed: version, kind, two tags, session, number.
pub(super) const SEALED_HEADER_BYTES: usize = 2 + 8 + 8 + 8 + 8;
/// The bytes that sealing adds.
pub(super) const TAG_BYTES: usize = 16;
/// What a sealed frame has beside its items.
pub(super) const SEALED_COSTS: usize = SEALED_HEADER_BYTES + TAG_BYTES;
/// The longest public key or signature that a handshake carries: an RSA key of 8192 bits has 1058 bytes.
const MOST_SHOWN: usize = 1200;

/// The tag of a key.
pub(super) fn tag(of: &Fingerprint) -> Tag {
    of.as_bytes().first_chunk().copied().unwrap_or_default()
}

/// From whom to whom a frame claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) to: Tag,
    pub(super) from: Tag,
}

/// How an initiator opens: which attempt it is, and its half of the key agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) attempt: [u8; 16],
    pub(super) share: [u8; 32],
}

/// A public key with a signature by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signed {
    pub(super) key: Bytes,
    pub(super) scheme: u16,
    pub(super) signature: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Hello(Opening),
    Answer { attempt: [u8; 16], share: [u8; 32], signed: Signed },
    Finish { opening: Opening, sealed: Bytes },
    Sealed { session: [u8; 8], number: u64, header: [u8; SEALED_HEADER_BYTES], sealed: Bytes },
}

/// Reads the route alone. `None`: no frame of this version.
pub(super) fn route(frame: &[u8]) -> Option<Route> {
    let (version, rest) = frame.split_first()?;
    let (_kind, rest) = rest.split_first()?;
    let (to, rest) = rest.split_first_chunk()?;
    let (from, _) = rest.split_first_chunk()?;
    (*version == VERSION).then_some(Route { to: *to, from: *from })
}

impl Frame {
    /// Reads a frame. `None`: it is none.
    pub(super) fn parse(mut frame: Bytes) -> Option<(Route, Self)> {
        let route = route(&frame)?;
        let header = frame.first_chunk::<SEALED_HEADER_BYTES>().copied();
        let kind = *frame.get(1)?;
        frame.advance(2 + 8 + 8);
        let parsed = match kind {
            HELLO => Self::Hello(take_opening(&mut frame)?),
            ANSWER => Self::Answer {
                attempt: take_array(&mut frame)?,
                share: take_array(&mut frame)?,
                signed: Signed::take(&mut frame)?,
            },
            FINISH => Self::Finish { opening: take_opening(&mut frame)?, sealed: core::mem::take(&mut frame) },
            SEALED => Self::Sealed {
                session: take_array(&mut frame)?,
                number: frame.try_get_u64().ok()?,
                header: header?,
                sealed: core::mem::take(&mut frame),
            },
            _ => return None,
        };
        frame.is_empty().then_some((route, parsed))
    }

    /// Writes a frame of a handshake.
    pub(super) fn encode(&self, route: Route) -> Bytes {
        let mut frame = BytesMut::new();
        match self {
            Self::Hello(opening) => {
                put_start(&mut frame, HELLO, route);
                put_opening(&mut frame, opening);
            }
            Self::Answer { attempt, share, signed } => {
                put_start(&mut frame, ANSWER, route);
                frame.put_slice(attempt);
                frame.put_slice(share);
                signed.put(&mut frame);
            }
            Self::Finish { opening, sealed } => {
                put_start(&mut frame, FINISH, route);
                put_opening(&mut frame, opening);
                frame.put_slice(sealed);
            }
            Self::Sealed { header, sealed, .. } => {
                frame.put_slice(header);
                frame.put_slice(sealed);
            }
        }
        frame.freeze()
    }
}

/// Begins a sealed frame.
pub(super) fn put_sealed_header(frame: &mut BytesMut, route: Route, session: [u8; 8], number: u64) {
    put_start(frame, SEALED, route);
    frame.put_slice(&session);
    frame.put_u64(number);
}

fn put_start(frame: &mut BytesMut, kind: u8, route: Route) {
    frame.put_u8(VERSION);
    frame.put_u8(kind);
    frame.put_slice(&route.to);
    frame.put_slice(&route.from);
}

fn put_opening(frame: &mut BytesMut, opening: &Opening) {
    frame.put_slice(&opening.attempt);
    frame.put_slice(&opening.share);
}

fn take_opening(frame: &mut Bytes) -> Option<Opening> {
    Some(Opening { attempt: take_array(frame)?, share: take_array(frame)? })
}

pub(super) fn take_array<const N: usize>(from: &mut Bytes) -> Option<[u8; N]> {
    let mut array = [0; N];
    from.try_copy_to_slice(&mut array).ok()?;
    Some(array)
}

/// Takes bytes behind their length in two bytes.
fn take_short(from: &mut Bytes) -> Option<Bytes> {
    let length = usize::from(from.try_get_u16().ok()?);
    (length <= MOST_SHOWN && length <= from.len()).then(|| from.split_to(length))
}

fn put_short(to: &mut BytesMut, bytes: &[u8]) {
    // What this node shows is its own key and signature. A longer one would be refused by the peer.
    to.put_u16(u16::try_from(bytes.len()).unwrap_or(u16::MAX));
    to.put_slice(bytes);
}

impl Signed {
    pub(super) fn take(from: &mut Bytes) -> Option<Self> {
        Some(Self { key: take_short(from)?, scheme: from.try_get_u16().ok()?, signature: take_short(from)? })
    }

    pub(super) fn put(&self, to: &mut BytesMut) {
        put_short(to, &self.key);
        to.put_u16(self.scheme);
        put_short(to, &self.signature);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROUTE: Route = Route { to: [1; 8], from: [2; 8] };

    fn frames() -> Vec<Frame> {
        let opening = Opening { attempt: [3; 16], share: [4; 32] };
        let signed = Signed { key: Bytes::from_static(b"key"), scheme: 0x0403, signature: Bytes::from_static(b"sig") };
        let mut header = BytesMut::new();
        put_sealed_header(&mut header, ROUTE, [5; 8], 9);
        let header: [u8; SEALED_HEADER_BYTES] = header.as_ref().try_into().unwrap();
        vec![
            Frame::Hello(opening),
            Frame::Answer { attempt: [3; 16], share: [7; 32], signed },
            Frame::Finish { opening, sealed: Bytes::from_static(b"sealed") },
            Frame::Sealed { session: [5; 8], number: 9, header, sealed: Bytes::from_static(b"items") },
        ]
    }

    #[test]
    fn frames_read_as_they_were_written() {
        for frame in frames() {
            let written = frame.encode(ROUTE);
            assert_eq!(route(&written), Some(ROUTE));
            assert_eq!(Frame::parse(written.clone()), Some((ROUTE, frame.clone())));
            if !matches!(frame, Frame::Finish { .. } | Frame::Sealed { .. }) {
                let longer = [&written[..], &[0]].concat();
                assert_eq!(Frame::parse(longer.into()), None, "bytes behind {frame:?}");
            }
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for frame in frames() {
            let mut other = frame.encode(ROUTE).to_vec();
            other[0] = 2;
            assert_eq!(Frame::parse(other.clone().into()), None, "another version");
            other[..2].copy_from_slice(&[VERSION, 99]);
            assert_eq!(Frame::parse(other.into()), None, "an unknown kind");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0_u8..6) {
            let _ = Frame::parse(bytes.clone().into());
            let framed = [&[VERSION, kind][..], &bytes].concat();
            let _ = Frame::parse(framed.into());
        }
    }
}

//! What stands in a sealed frame: items, one after the other. Big-endian.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::super::{frame::take_array, session::RECENT_WORDS};

const PIECE: u8 = 1;
const PING: u8 = 2;
const ACK: u8 = 3;

/// The bytes of a piece beside the message's.
pub(in crate::carrier) const PIECE_HEADER_BYTES: usize = 1 + 8 + 1 + 4;
/// The bytes of an acknowledgement.
pub(in crate::carrier) const ACK_BYTES: usize = 1 + 8 + 1 + 8 + 8 * RECENT_WORDS + 4 + 8 + 8;

/// Which frames of a session have come, and how far the pieces in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::carrier) struct Ack {
    /// Which session's frames.
    pub(in crate::carrier) session: [u8; 8],
    /// The greatest number of a frame that came; `None`: none has.
    pub(in crate::carrier) greatest: Option<u64>,
    /// As in [`super::super::session::Window::recent`].
    pub(in crate::carrier) recent: [u64; RECENT_WORDS],
    /// How long that frame waited for this, in microseconds.
    pub(in crate::carrier) waited: u32,
    /// All pieces with lower numbers have come.
    pub(in crate::carrier) next: u64,
    /// No piece of this number or a higher one may be sent yet.
    pub(in crate::carrier) limit: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::carrier) enum Item {
    /// A piece of a message, and whether it is the message's last.
    Piece {
        number: u64,
        last: bool,
        bytes: Bytes,
    },
    /// Asks for an acknowledgement.
    Ping,
    Ack(Ack),
}

impl Ack {
    pub(in crate::carrier) fn put(&self, to: &mut BytesMut) {
        to.put_u8(ACK);
        to.put_slice(&self.session);
        to.put_u8(u8::from(self.greatest.is_some()));
        to.put_u64(self.greatest.unwrap_or(0));
        self.recent.iter().for_each(|word| to.put_u64(*word));
        to.put_u32(self.waited);
        to.put_u64(self.next);
        to.put_u64(self.limit);
    }

    fn take(from: &mut Bytes) -> Option<Self> {
        let session = take_array(from)?;
        let came = match from.try_get_u8().ok()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let greatest = from.try_get_u64().ok()?;
        let mut recent = [0; RECENT_WORDS];
        for word in &mut recent {
            *word = from.try_get_u64().ok()?;
        }
        let waited = from.try_get_u32().ok()?;
        let (next, limit) = (from.try_get_u64().ok()?, from.try_get_u64().ok()?);
        Some(Self { session, greatest: came.then_some(greatest), recent, waited, next, limit })
    }
}

/// Writes a piece.
pub(in crate::carrier) fn put_piece(to: &mut BytesMut, number: u64, last: bool, bytes: &[u8]) {
    to.put_u8(PIECE);
    to.put_u64(number);
    to.put_u8(u8::from(last));
    // Pieces are smaller than frames.
    to.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    to.put_slice(bytes);
}

/// Writes a ping.
pub(in crate::carrier) fn put_ping(to: &mut BytesMut) {
    to.put_u8(PING);
}

/// Takes the next item. `Err`: there is none that could be read.
pub(in crate::carrier) fn take(from: &mut Bytes) -> Result<Option<Item>, Malformed> {
    if from.is_empty() { Ok(None) } else { take_one(from).map(Some).ok_or(Malformed) }
}

/// The peer, who has sealed it, does not follow the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::carrier) struct Malformed;

fn take_one(from: &mut Bytes) -> Option<Item> {
    Some(match from.try_get_u8().ok()? {
        PIECE => {
            let number = from.try_get_u64().ok()?;
            let last = match from.try_get_u8().ok()? {
                0 => false,
                1 => true,
                _ => return None,
            };
            let length = usize::try_from(from.try_get_u32().ok()?).ok().filter(|length| *length <= from.len())?;
            Item::Piece { number, last, bytes: from.split_to(length) }
        }
        PING => Item::Ping,
        ACK => Item::Ack(Ack::take(from)?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn items_read_as_they_were_written() {
        let ack =
            Ack { session: [9; 8], greatest: Some(77), recent: [u64::MAX; RECENT_WORDS], waited: 5, next: 3, limit: 4 };
        let none = Ack { greatest: None, recent: [0; RECENT_WORDS], ..ack };
        let mut written = BytesMut::new();
        ack.put(&mut written);
        assert_eq!(written.len(), ACK_BYTES);
        put_piece(&mut written, 8, true, b"piece");
        put_ping(&mut written);
        put_piece(&mut written, 9, false, b"");
        none.put(&mut written);
        let (mut left, mut items) = (written.freeze(), Vec::new());
        while let Some(item) = take(&mut left).unwrap() {
            items.push(item);
        }
        let piece = |number, last, bytes: &'static [u8]| Item::Piece { number, last, bytes: Bytes::from_static(bytes) };
        assert_eq!(
            items,
            [Item::Ack(ack), piece(8, true, b"piece"), Item::Ping, piece(9, false, b""), Item::Ack(none)]
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 0_u8..5) {
            let mut left = Bytes::from([&[kind][..], &bytes].concat());
            while let Ok(Some(_)) = take(&mut left) {}
        }
    }
}

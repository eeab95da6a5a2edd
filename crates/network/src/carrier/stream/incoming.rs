//! The messages of a peer, put together from pieces that come in any order and more than once.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};

use super::super::handshake::Beginning;

/// How far ahead pieces may come, by their numbers.
const MOST_AHEAD: u64 = 4096;
/// The bytes of pieces that come before their turn.
const MOST_EARLY_BYTES: usize = 8 << 20;
/// What a piece takes beside its bytes.
const PIECE_COSTS: usize = 256;
/// Whole messages that wait for the application: no frame is taken at this number, and no new pieces are asked for at half of it.
const MOST_READY: usize = 256;

/// The bytes of such messages: no frame is taken at this number, and no new pieces are asked for at half of it.
const MOST_READY_BYTES: usize = 8 << 20;

/// What became of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::carrier) enum Fate {
    /// It is here, now or since before.
    Taken,
    /// There is no room for it: it has to come again.
    NoRoom,
}

/// The peer sends what no honest one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::carrier) enum Lie {
    #[error("a message longer than {0} bytes")]
    TooLong(usize),
    #[error("frames that cannot be read")]
    Malformed,
    #[error("an acknowledgement of what was never sent")]
    Acknowledgement,
}

#[derive(Debug)]
pub(in crate::carrier) struct Incoming {
    message_bytes: usize,
    boot: Option<[u8; 16]>,
    /// The number of the piece that is due.
    next: u64,
    early: BTreeMap<u64, (Bytes, bool)>,
    early_bytes: usize,
    /// The beginning of the message that is being put together.
    begun: BytesMut,
    ready: VecDeque<Bytes>,
    ready_bytes: usize,
    /// It has lied; nothing of this life of it is taken any more.
    broken: bool,
}

impl Incoming {
    pub(in crate::carrier) fn new(message_bytes: usize) -> Self {
        Self {
            message_bytes,
            boot: None,
            next: 1,
            early: BTreeMap::new(),
            early_bytes: 0,
            begun: BytesMut::new(),
            ready: VecDeque::new(),
            ready_bytes: 0,
            broken: false,
        }
    }

    /// The peer begins a session. Says whether it is another life of it than before.
    pub(in crate::carrier) fn begin(&mut self, beginning: Beginning) -> bool {
        let new = self.boot != Some(beginning.boot);
        if new || beginning.oldest > self.next {
            let (ready, ready_bytes) = (core::mem::take(&mut self.ready), self.ready_bytes);
            let boot = Some(beginning.boot);
            *self = Self { boot, next: beginning.oldest, ready, ready_bytes, ..Self::new(self.message_bytes) };
        }
        new
    }

    /// The number of the piece that is due; all lower ones have come.
    pub(in crate::carrier) const fn next(&self) -> u64 {
        self.next
    }

    /// No piece of this number or a higher one is wanted yet.
    pub(in crate::carrier) fn limit(&self) -> u64 {
        let ahead = if self.is_pressed() { 0 } else { MOST_AHEAD };
        self.next.saturating_add(ahead)
    }

    /// Whether so much waits for the application that the peer should wait.
    fn is_pressed(&self) -> bool {
        self.ready.len() >= MOST_READY / 2 || self.ready_bytes >= MOST_READY_BYTES / 2
    }

    /// Whether a frame with pieces may be looked at now.
    pub(in crate::carrier) fn has_room(&self) -> bool {
        self.ready.len() < MOST_READY && self.ready_bytes < MOST_READY_BYTES
    }

    /// The next message for the application. Says whether the peer, which was told to wait, may go on with this.
    pub(in crate::carrier) fn take(&mut self) -> Option<(Bytes, bool)> {
        let pressed = self.is_pressed();
        let message = self.ready.pop_front()?;
        self.ready_bytes = self.ready_bytes.saturating_sub(message.len());
        Some((message, pressed && !self.is_pressed()))
    }

    /// A piece comes, in a buffer of `whole` bytes.
    pub(in crate::carrier) fn put(
        &mut self,
        number: u64,
        last: bool,
        (bytes, whole): (Bytes, usize),
    ) -> Result<Fate, Lie> {
        if self.broken || number < self.next {
            return Ok(Fate::Taken);
        }
        if number - self.next >= MOST_AHEAD {
            return Ok(Fate::NoRoom);
        }
        if number > self.next {
            return Ok(self.put_early(number, last, &bytes));
        }
        self.append(last, (bytes, whole))?;
        while let Some((bytes, last)) = self.early.remove(&self.next) {
            self.early_bytes = self.early_bytes.saturating_sub(bytes.len().saturating_add(PIECE_COSTS));
            let whole = bytes.len();
            self.append(last, (bytes, whole))?;
        }
        Ok(Fate::Taken)
    }

    fn put_early(&mut self, number: u64, last: bool, bytes: &Bytes) -> Fate {
        let size = self.early_bytes.saturating_add(bytes.len()).saturating_add(PIECE_COSTS);
        if self.early.contains_key(&number) {
            return Fate::Taken;
        }
        if size > MOST_EARLY_BYTES {
            return Fate::NoRoom;
        }
        self.early_bytes = size;
        // A view would keep the whole frame, of which this may be the smallest part.
        self.early.insert(number, (Bytes::copy_from_slice(bytes), last));
        Fate::Taken
    }

    fn append(&mut self, last: bool, (bytes, whole): (Bytes, usize)) -> Result<(), Lie> {
        if self.begun.len().saturating_add(bytes.len()) > self.message_bytes {
            (self.broken, self.early, self.begun) = (true, BTreeMap::new(), BytesMut::new());
            return Err(Lie::TooLong(self.message_bytes));
        }
        self.next = self.next.saturating_add(1);
        let message = match (last, self.begun.is_empty()) {
            // A view keeps all of its buffer for as long as the application has the message, which may be the smallest part of it.
            (true, true) if bytes.len() < whole / 2 => Bytes::copy_from_slice(&bytes),
            (true, true) => bytes,
            (true, false) => {
                self.begun.extend_from_slice(&bytes);
                self.begun.split().freeze()
            }
            (false, _) => {
                self.begun.extend_from_slice(&bytes);
                return Ok(());
            }
        };
        self.ready_bytes = self.ready_bytes.saturating_add(message.len());
        self.ready.push_back(message);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(message_bytes: usize) -> Incoming {
        let mut incoming = Incoming::new(message_bytes);
        assert!(incoming.begin(Beginning { boot: [1; 16], oldest: 1 }));
        incoming
    }

    fn taken(incoming: &mut Incoming) -> Vec<Bytes> {
        core::iter::from_fn(|| incoming.take().map(|(message, _)| message)).collect()
    }

    /// A piece in a buffer of its own.
    fn put(incoming: &mut Incoming, number: u64, last: bool, bytes: Bytes) -> Result<Fate, Lie> {
        let whole = bytes.len();
        incoming.put(number, last, (bytes, whole))
    }

    /// A buffer of a frame would stay as long as its smallest message.
    #[test]
    fn small_messages_do_not_keep_the_buffers_that_they_came_in() {
        let mut incoming = begun(1_000);
        let frame = Bytes::from(vec![7; 1_000]);
        for (number, length, is_view) in [(1, 499, false), (2, 500, true), (3, 1_000, true), (4, 1, false)] {
            incoming.put(number, true, (frame.slice(..length), frame.len())).unwrap();
            let (message, _) = incoming.take().unwrap();
            assert_eq!(message, frame[..length]);
            assert_eq!(frame.as_ptr_range().contains(&message.as_ptr()), is_view, "{length} bytes");
        }
    }

    #[test]
    fn pieces_in_any_order_and_twice_make_each_message_once() {
        let mut incoming = begun(100);
        for number in [3, 2, 3, 5, 1, 1, 4, 2] {
            let bytes = Bytes::from(vec![u8::try_from(number).unwrap(); 2]);
            assert_eq!(put(&mut incoming, number, number % 2 == 1, bytes), Ok(Fate::Taken));
        }
        assert_eq!(taken(&mut incoming), [&[1, 1][..], &[2, 2, 3, 3], &[4, 4, 5, 5]]);
        assert_eq!((incoming.next(), incoming.early_bytes), (6, 0));
    }

    #[test]
    fn another_life_begins_anew_and_the_same_goes_on() {
        let mut incoming = begun(100);
        put(&mut incoming, 1, false, Bytes::from_static(b"half a ")).unwrap();
        assert!(!incoming.begin(Beginning { boot: [1; 16], oldest: 1 }));
        put(&mut incoming, 2, true, Bytes::from_static(b"message")).unwrap();
        assert_eq!(taken(&mut incoming), [&b"half a message"[..]]);
        put(&mut incoming, 3, false, Bytes::from_static(b"never ended")).unwrap();
        assert!(incoming.begin(Beginning { boot: [2; 16], oldest: 1 }));
        put(&mut incoming, 1, true, Bytes::from_static(b"new")).unwrap();
        assert_eq!(taken(&mut incoming), [&b"new"[..]]);
    }

    #[test]
    fn what_comes_early_or_endlessly_is_bounded() {
        let mut incoming = begun(1 << 20);
        let piece = Bytes::from(vec![0; 64 << 10]);
        let mut fates = (2..4096).map(|number| put(&mut incoming, number, true, piece.clone()).unwrap());
        assert!(fates.any(|fate| fate == Fate::NoRoom));
        assert!(incoming.early_bytes <= MOST_EARLY_BYTES && incoming.early.len() < 128);
        assert_eq!(put(&mut incoming, MOST_AHEAD + 1, true, Bytes::new()), Ok(Fate::NoRoom), "too far ahead");
        let mut incoming = begun(1 << 20);
        let lie = (1..100).find_map(|number| put(&mut incoming, number, false, piece.clone()).err());
        assert_eq!(lie, Some(Lie::TooLong(1 << 20)));
        assert_eq!(
            put(&mut incoming, 50, true, piece),
            Ok(Fate::Taken),
            "it is heard no more, and not asked to repeat it"
        );
        assert!(incoming.ready.is_empty());
    }

    #[test]
    fn an_application_that_does_not_read_stops_the_peer() {
        let mut incoming = begun(100);
        let mut number = 0;
        while incoming.has_room() {
            number += 1;
            put(&mut incoming, number, true, Bytes::from_static(b"x")).unwrap();
        }
        assert_eq!((number, incoming.limit()), (256, 257));
        let resumed = core::iter::from_fn(|| incoming.take()).position(|(_, goes_on)| goes_on);
        assert_eq!(resumed, Some(128), "once, when half is taken");
        assert_eq!(incoming.limit(), 257 + MOST_AHEAD);
    }

    /// Few messages are as much memory as many, if they are long.
    #[test]
    fn an_application_that_does_not_read_long_messages_stops_the_peer_before_memory_is_full() {
        let mut incoming = Incoming::new(16 << 20);
        assert!(incoming.begin(Beginning { boot: [1; 16], oldest: 1 }));
        let piece = Bytes::from(vec![0; 32 << 10]);
        let (mut number, mut bytes) = (0_u64, 0);
        while incoming.has_room() && number < 100_000 {
            number += 1;
            bytes += piece.len();
            put(&mut incoming, number, number % 64 == 0, piece.clone()).unwrap();
        }
        assert!(bytes <= MOST_READY_BYTES + (16 << 20), "{bytes} bytes wait for the application");
        assert_eq!(incoming.limit(), incoming.next(), "the peer is told to wait");
        let resumed = core::iter::from_fn(|| incoming.take()).filter(|(_, goes_on)| *goes_on).count();
        assert_eq!(resumed, 1);
        assert_eq!(incoming.limit(), incoming.next() + MOST_AHEAD);
    }
}

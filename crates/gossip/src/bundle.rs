//! What goes over gossip: frames of one author for some readers, in one message with its signature.

use std::collections::BTreeSet;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use sha2::{Digest, Sha256};
use theta_names::NodeId;
use theta_network::{Identity, carrier::Carried, carrier::Vouched};

/// The version of the format.
const VERSION: u8 = 1;
/// The bytes before the frames.
const HEADER_BYTES: usize = 1 + 8;
/// The bytes before each frame.
const FRAME_HEADER_BYTES: usize = 2 + 4;
/// Both, for a bundle of one frame.
pub(crate) const HEADERS_BYTES: usize = HEADER_BYTES + FRAME_HEADER_BYTES;
/// More than any key and signature have, with their lengths.
pub(crate) const SIGNED_BYTES: usize = 2 + 1_200 + 2 + 2 + 1_200;

/// What signatures of this group's messages are over, before the message.
pub(crate) fn context(group: &str) -> Vec<u8> {
    let group: [u8; 32] = Sha256::digest(group.as_bytes()).into();
    [&b"theta-gossip/1 bundle\0"[..], &group].concat()
}

/// Frames that leave together.
#[derive(Debug)]
pub(crate) struct Outgoing(BytesMut);

impl Outgoing {
    /// `number`: no other message of this author has it.
    pub(crate) fn new(number: u64) -> Self {
        let mut body = BytesMut::with_capacity(2_048);
        body.put_u8(VERSION);
        body.put_u64(number);
        Self(body)
    }

    /// Whether a frame fits as well. The first always does.
    pub(crate) fn fits(&self, frame: &Bytes, most: usize) -> bool {
        self.is_empty() || self.0.len().saturating_add(FRAME_HEADER_BYTES).saturating_add(frame.len()) <= most
    }

    pub(crate) fn put(&mut self, Carried { node, frame }: &Carried) {
        // A frame has at most 1 MiB.
        let Ok(length) = u32::try_from(frame.len()) else { return };
        self.0.put_u16(node.get());
        self.0.put_u32(length);
        self.0.put_slice(frame);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.len() == HEADER_BYTES
    }

    pub(crate) fn sign(self, identity: &Identity, context: &[u8]) -> Option<Bytes> {
        Vouched::sign(identity, context, &self.0)
    }
}

/// The number of a message. `None`: it is none of this version.
pub(crate) fn number(body: &[u8]) -> Option<u64> {
    let (version, rest) = body.split_first()?;
    let (number, _) = rest.split_first_chunk()?;
    (*version == VERSION).then_some(u64::from_be_bytes(*number))
}

/// Whether a message has another format than this node knows.
pub(crate) fn is_of_another_version(body: &[u8]) -> bool {
    body.first().is_some_and(|version| *version != VERSION)
}

/// The most frames for one node in a message; the rest is left out, and sent again by its author.
const MOST_FRAMES: usize = 1_024;

/// The frames for one node in a message, each a copy, so that no small frame keeps a whole message. `None`: it is no message.
pub(crate) fn frames_for(node: NodeId, mut body: Bytes) -> Option<Vec<Bytes>> {
    number(&body)?;
    body.advance(HEADER_BYTES);
    let mut frames = Vec::new();
    while !body.is_empty() {
        let to = body.try_get_u16().ok()?;
        let length = usize::try_from(body.try_get_u32().ok()?).ok()?;
        if length > body.len() {
            return None;
        }
        let frame = body.split_to(length);
        if to == node.get() && frames.len() < MOST_FRAMES {
            frames.push(Bytes::copy_from_slice(&frame));
        }
    }
    Some(frames)
}

/// How many numbers of an author are remembered.
const REMEMBERED: usize = 4_096;

/// The numbers of an author's messages: each is taken once, and none that is older than all that are remembered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    came: BTreeSet<u64>,
    /// None up to this one is taken any more.
    floor: u64,
}

impl Numbers {
    pub(crate) fn is_new(&self, number: u64) -> bool {
        number > self.floor && !self.came.contains(&number)
    }

    pub(crate) fn take(&mut self, number: u64) {
        self.came.insert(number);
        // An author counts by one, and begins each life far above the one before. So one message of the present puts an end to all of
        // the past, which somebody may have kept to say it again to a node that has just begun.
        let window = u64::try_from(REMEMBERED).unwrap_or(u64::MAX);
        self.floor = self.floor.max(number.saturating_sub(window));
        self.came = self.came.split_off(&self.floor.saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u16) -> NodeId {
        NodeId::try_from(number).unwrap()
    }

    fn carried(to: u16, frame: &'static [u8]) -> Carried {
        Carried { node: node(to), frame: Bytes::from_static(frame) }
    }

    #[test]
    fn each_reader_finds_its_own_frames() {
        let mut outgoing = Outgoing::new(77);
        assert!(outgoing.is_empty());
        for (to, frame) in [(2, &b"one"[..]), (3, b"other"), (2, b""), (2, b"two")] {
            outgoing.put(&carried(to, frame));
        }
        let body = outgoing.0.freeze();
        assert_eq!(number(&body), Some(77));
        assert_eq!(frames_for(node(2), body.clone()).unwrap(), [&b"one"[..], b"", b"two"]);
        assert_eq!(frames_for(node(3), body.clone()).unwrap(), [&b"other"[..]]);
        assert!(frames_for(node(4), body.clone()).unwrap().is_empty());
        for end in 0..body.len() {
            // A message that ends early is none, unless it ends between two frames.
            let whole = [9, 18, 29, 35].contains(&end);
            assert_eq!(frames_for(node(2), body.slice(..end)).is_some(), whole, "{end}");
        }
        let mut other = body.to_vec();
        other[0] = 2;
        assert!(is_of_another_version(&other) && !is_of_another_version(&body) && !is_of_another_version(&[]));
        assert_eq!((number(&other), frames_for(node(2), other.into())), (None, None));
    }

    #[test]
    fn a_bundle_has_room_for_one_frame_of_any_length() {
        let mut outgoing = Outgoing::new(1);
        let long = carried(2, &[0; 2_000]);
        assert!(outgoing.fits(&long.frame, 1_200));
        outgoing.put(&long);
        assert!(!outgoing.fits(&Bytes::from_static(b"x"), 1_200));
        let mut outgoing = Outgoing::new(2);
        outgoing.put(&carried(2, &[0; 500]));
        assert!(outgoing.fits(&Bytes::from_static(&[0; 679]), 1_200));
        assert!(!outgoing.fits(&Bytes::from_static(&[0; 680]), 1_200));
    }

    #[test]
    fn numbers_are_taken_once_in_any_order() {
        let mut numbers = Numbers::default();
        for number in [5, 3, 9] {
            assert!(numbers.is_new(number));
            numbers.take(number);
            assert!(!numbers.is_new(number));
        }
        assert!(numbers.is_new(4));
        let window = u64::try_from(REMEMBERED).unwrap();
        for number in 100..=100 + window {
            numbers.take(number);
        }
        assert!([3, 4, 5, 8, 9, 99, 100].iter().all(|old| !numbers.is_new(*old)), "what is forgotten counts as come");
        assert!(!numbers.is_new(101) && numbers.is_new(101 + window));
        // The first message of a new life.
        numbers.take(1_000_000);
        assert!((0..1_000_000 - window).all(|old| !numbers.is_new(old)), "nothing of the life before comes again");
        assert!(numbers.is_new(999_999), "what was overtaken is taken");
        assert!(numbers.came.len() <= REMEMBERED);
    }
}

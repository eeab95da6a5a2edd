//! The messages to a peer, cut into pieces that are sent until they are acknowledged.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Instant,
};

use bytes::{Bytes, BytesMut};
use core::time::Duration;

use super::{
    incoming::Lie,
    item::{self, Ack, PIECE_HEADER_BYTES},
    outbox::Outbox,
    recovery::Recovery,
};

/// The most frames under way: an acknowledgement tells of as many.
const MOST_FRAMES: usize = 512;

#[derive(Debug)]
struct Piece {
    bytes: Bytes,
    last: bool,
    acknowledged: bool,
}

/// A frame under way.
#[derive(Debug)]
struct Sent {
    at: Instant,
    bytes: usize,
    pieces: Vec<u64>,
}

#[derive(Debug)]
pub(in crate::carrier) struct Outgoing {
    outbox: Arc<Outbox>,
    /// Which of those who empty the outbox one after the other this is.
    turn: u64,
    /// The most bytes of a piece.
    piece_bytes: usize,
    /// The number of the first of `pieces`, or of the next one if there is none.
    oldest: u64,
    pieces: VecDeque<Piece>,
    /// The first number that was never sent.
    unsent: u64,
    lost: BTreeSet<u64>,
    under_way: BTreeMap<u64, Sent>,
    bytes_under_way: usize,
    /// The peer takes no piece of this number or a higher one yet.
    limit: u64,
    /// The greatest frame that the peer has acknowledged in this session.
    greatest: Option<u64>,
    recovery: Recovery,
    /// When something was last sent that asks for an acknowledgement.
    asked: Option<Instant>,
    /// Nothing was acknowledged in this session yet.
    fresh: bool,
    /// The peer waits for pieces that a life of it before this one has had.
    behind: bool,
}

/// What a frame was filled with.
#[derive(Debug, Default)]
pub(in crate::carrier) struct Filled {
    pub(in crate::carrier) pieces: Vec<u64>,
    /// How many of them were sent before.
    pub(in crate::carrier) again: usize,
}

impl Outgoing {
    pub(in crate::carrier) fn new(outbox: Arc<Outbox>, piece_bytes: usize, frame_bytes: usize) -> Self {
        Self {
            turn: outbox.reopen(),
            outbox,
            piece_bytes,
            oldest: 1,
            pieces: VecDeque::new(),
            unsent: 1,
            lost: BTreeSet::new(),
            under_way: BTreeMap::new(),
            bytes_under_way: 0,
            limit: u64::MAX,
            greatest: None,
            recovery: Recovery::new(frame_bytes),
            asked: None,
            fresh: false,
            behind: false,
        }
    }

    /// The lowest number of a piece that may still be sent. A message begins with it.
    pub(in crate::carrier) const fn oldest(&self) -> u64 {
        self.oldest
    }

    /// A new session begins: nothing of what is under way is known to arrive.
    pub(in crate::carrier) fn restart(&mut self) {
        self.under_way.clear();
        (self.bytes_under_way, self.greatest, self.limit, self.asked) = (0, None, u64::MAX, None);
        (self.fresh, self.behind) = (true, false);
        // Another life of the peer has none of what the one before has acknowledged; the same one drops what it has.
        self.pieces.iter_mut().for_each(|piece| piece.acknowledged = false);
        self.lost = (self.oldest..self.unsent).collect();
        self.outbox.restarted();
    }

    /// Whether there is something that may be sent now.
    pub(in crate::carrier) fn has_work(&self) -> bool {
        self.may_send() && !self.behind && (!self.lost.is_empty() || (self.unsent < self.limit && self.has_unsent()))
    }

    /// Whether the peer waits for what cannot be sent any more, and has to be told anew where this node goes on.
    pub(in crate::carrier) const fn is_behind(&self) -> bool {
        self.behind
    }

    fn has_unsent(&self) -> bool {
        self.place(self.unsent).is_some_and(|place| place < self.pieces.len()) || !self.outbox.is_drained()
    }

    fn may_send(&self) -> bool {
        self.under_way.len() < MOST_FRAMES && self.bytes_under_way < self.recovery.window()
    }

    /// Puts pieces into a frame that has room for so many bytes more.
    pub(in crate::carrier) fn fill(&mut self, frame: &mut BytesMut, mut room: usize) -> Filled {
        let mut filled = Filled::default();
        while room > PIECE_HEADER_BYTES {
            let again = self.lost.first().copied();
            let number = match again {
                Some(number) => number,
                None if self.unsent < self.limit && self.provide() => self.unsent,
                None => break,
            };
            let Some(piece) = self.place(number).and_then(|place| self.pieces.get(place)) else {
                // It has been acknowledged meanwhile.
                self.lost.remove(&number);
                continue;
            };
            let size = piece.bytes.len().saturating_add(PIECE_HEADER_BYTES);
            let Some(left) = room.checked_sub(size) else { break };
            if !piece.acknowledged {
                item::put_piece(frame, number, piece.last, &piece.bytes);
                filled.pieces.push(number);
                room = left;
            }
            match again {
                Some(_) => {
                    filled.again = filled.again.saturating_add(1);
                    self.lost.remove(&number);
                }
                None => self.unsent = number.saturating_add(1),
            }
        }
        filled
    }

    /// Cuts the next message into pieces, if all before it have been sent.
    fn provide(&mut self) -> bool {
        if self.place(self.unsent).is_some_and(|place| place < self.pieces.len()) {
            return true;
        }
        let Some(mut message) = self.outbox.take(self.turn) else { return false };
        loop {
            let bytes = message.split_to(message.len().min(self.piece_bytes));
            let last = message.is_empty();
            self.pieces.push_back(Piece { bytes, last, acknowledged: false });
            if last {
                return true;
            }
        }
    }

    /// A frame of this number and size was sent that asks for an acknowledgement.
    pub(in crate::carrier) fn sent(&mut self, number: u64, bytes: usize, pieces: Vec<u64>, now: Instant) {
        self.bytes_under_way = self.bytes_under_way.saturating_add(bytes);
        self.under_way.insert(number, Sent { at: now, bytes, pieces });
        self.asked = Some(now);
    }

    /// The peer acknowledges frames; `next` is the number of the next frame.
    pub(in crate::carrier) fn acknowledged(&mut self, ack: &Ack, next: u64, now: Instant) -> Result<(), Lie> {
        if ack.greatest.is_some_and(|greatest| greatest >= next) || ack.next > self.unsent {
            return Err(Lie::Acknowledgement);
        }
        if core::mem::take(&mut self.fresh) {
            // The peer goes on where it was told at the end of the handshake, or further on. What a life of it before this one has acknowledged
            // since then it does not have, and it cannot be sent any more.
            self.behind = ack.next < self.oldest;
        }
        if let Some(greatest) = ack.greatest {
            self.take_frames(ack, greatest, now);
            // An old acknowledgement does not take a newer one's word back.
            if self.greatest.is_none_or(|known| known <= greatest) {
                (self.greatest, self.limit) = (Some(greatest), ack.limit);
            }
        } else if self.greatest.is_none() {
            self.limit = ack.limit;
        }
        self.drop_done(ack.next);
        self.find_lost(now);
        Ok(())
    }

    fn take_frames(&mut self, ack: &Ack, greatest: u64, now: Instant) {
        let lowest = greatest.saturating_sub(64 * 8 - 1);
        let came = |number: &u64| {
            let below = greatest.saturating_sub(*number);
            let word = usize::try_from(below / 64).ok().and_then(|word| ack.recent.get(word));
            word.is_some_and(|word| word >> (below % 64) & 1 == 1)
        };
        let numbers: Vec<u64> =
            self.under_way.range(lowest..=greatest).map(|(number, _)| *number).filter(came).collect();
        for number in numbers {
            let Some(sent) = self.under_way.remove(&number) else { continue };
            self.bytes_under_way = self.bytes_under_way.saturating_sub(sent.bytes);
            self.recovery.acknowledged(sent.bytes);
            if number == greatest {
                let waited = Duration::from_micros(ack.waited.into());
                self.recovery.measured(now.saturating_duration_since(sent.at), waited);
            }
            for piece in sent.pieces {
                if let Some(piece) = self.place(piece).and_then(|place| self.pieces.get_mut(place)) {
                    piece.acknowledged = true;
                }
            }
        }
    }

    /// Drops the messages that the peer has: their pieces are before `next`, which was sent, or acknowledged one by one. A message of which the
    /// peer has a part stays as a whole: another life of the peer has none of it, and would take what is left for a message.
    fn drop_done(&mut self, next: u64) {
        let before = usize::try_from(next.saturating_sub(self.oldest)).unwrap_or(usize::MAX);
        self.pieces.iter_mut().take(before).for_each(|piece| piece.acknowledged = true);
        let whole = |pieces: &VecDeque<Piece>| {
            let last = pieces.iter().position(|piece| piece.last || !piece.acknowledged)?;
            pieces.get(last).filter(|piece| piece.acknowledged)?;
            Some(last.saturating_add(1))
        };
        while let Some(pieces) = whole(&self.pieces) {
            self.pieces.drain(..pieces);
            self.oldest = self.oldest.saturating_add(u64::try_from(pieces).unwrap_or(u64::MAX));
            self.outbox.done(self.turn);
        }
        self.lost = self.lost.split_off(&self.oldest.max(next));
    }

    /// Sends again what has been under way for too long.
    pub(in crate::carrier) fn find_lost(&mut self, now: Instant) {
        let overtaken = self.recovery.patience();
        let unanswered = self.recovery.long_patience();
        let greatest = self.greatest;
        let is_lost = |(number, sent): &(&u64, &Sent)| {
            let patience = if greatest.is_some_and(|greatest| **number < greatest) { overtaken } else { unanswered };
            now.saturating_duration_since(sent.at) >= patience
        };
        let least = overtaken.min(unanswered);
        let old = self.under_way.iter().take_while(|(_, sent)| now.saturating_duration_since(sent.at) >= least);
        let lost: Vec<u64> = old.filter(is_lost).map(|(number, _)| *number).collect();
        if lost.is_empty() {
            return;
        }
        let mut latest = None;
        let mut waited = false;
        for number in lost {
            let Some(sent) = self.under_way.remove(&number) else { continue };
            self.bytes_under_way = self.bytes_under_way.saturating_sub(sent.bytes);
            waited |= greatest.is_none_or(|greatest| number > greatest);
            latest = latest.max(Some(sent.at));
            let known = sent.pieces.into_iter().filter(|piece| *piece >= self.oldest);
            self.lost.extend(known);
        }
        if waited {
            self.recovery.waited();
        }
        if let Some(latest) = latest {
            self.recovery.lost(latest, now);
        }
    }

    /// When [`find_lost`](Self::find_lost) may find something.
    pub(in crate::carrier) fn due(&self) -> Option<Instant> {
        let (_, first) = self.under_way.first_key_value()?;
        let (number, last) = self.under_way.last_key_value()?;
        let overtaken =
            self.greatest.filter(|greatest| self.under_way.first_key_value().is_some_and(|(it, _)| it < greatest));
        let patience = if overtaken.is_some() { self.recovery.patience() } else { self.recovery.long_patience() };
        let first = first.at + patience;
        let beyond = self.greatest.is_none_or(|greatest| *number > greatest);
        Some(if beyond { first.min(last.at + self.recovery.long_patience()) } else { first })
    }

    /// When something that asks for an acknowledgement was last sent in this session.
    pub(in crate::carrier) const fn asked(&self) -> Option<Instant> {
        self.asked
    }

    /// How long to wait before asking a peer again that has told this node to wait.
    pub(in crate::carrier) fn long_patience(&self) -> Duration {
        self.recovery.long_patience()
    }

    /// Whether the peer has told this node to wait with what there is.
    pub(in crate::carrier) fn is_held(&self) -> bool {
        self.under_way.is_empty() && self.lost.is_empty() && self.unsent >= self.limit && self.has_unsent()
    }

    fn place(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.oldest)?).ok()
    }
}

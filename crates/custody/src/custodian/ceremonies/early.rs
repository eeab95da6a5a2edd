//! Early messages: those of ceremonies that this node has not begun. They are kept for a while, since it usually begins
//! soon.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use theta_names::NodeId;

use crate::custodian::message::{Id, Part};

/// The most messages of one peer.
const MOST_MESSAGES: usize = 64;
const MOST_BYTES: usize = 4 << 20;
/// For how many ticks a message is kept.
const TICKS: u64 = 240;

pub(in crate::custodian) struct Kept {
    pub(in crate::custodian) id: Id,
    pub(in crate::custodian) part: Part,
    pub(in crate::custodian) payload: Bytes,
    since: u64,
}

/// Early messages by peer, the oldest first.
#[derive(Default)]
pub(in crate::custodian) struct Early(BTreeMap<NodeId, VecDeque<Kept>>);

impl Early {
    /// Keeps a message, and drops the oldest of that peer to make room.
    pub(in crate::custodian) fn keep(&mut self, from: NodeId, (id, part, payload): (Id, Part, Bytes), since: u64) {
        if payload.len() > MOST_BYTES {
            return;
        }
        let queue = self.0.entry(from).or_default();
        // A copy does not keep a whole buffer of the network alive.
        let payload = Bytes::copy_from_slice(&payload);
        queue.push_back(Kept { id, part, payload, since });
        let mut bytes: usize = queue.iter().map(|kept| kept.payload.len()).sum();
        while queue.len() > MOST_MESSAGES || bytes > MOST_BYTES {
            bytes -= queue.pop_front().map_or(0, |kept| kept.payload.len());
        }
    }

    /// Takes all messages of a ceremony, in the order of each peer.
    pub(in crate::custodian) fn take(&mut self, id: &Id) -> Vec<(NodeId, Kept)> {
        let mut taken = Vec::new();
        for (peer, queue) in &mut self.0 {
            let (wanted, rest): (VecDeque<_>, VecDeque<_>) =
                core::mem::take(queue).into_iter().partition(|kept| kept.id == *id);
            *queue = rest;
            taken.extend(wanted.into_iter().map(|kept| (*peer, kept)));
        }
        taken
    }

    pub(in crate::custodian) fn forget_old(&mut self, now: u64) {
        for queue in self.0.values_mut() {
            queue.retain(|kept| now.saturating_sub(kept.since) < TICKS);
        }
        self.0.retain(|_, queue| !queue.is_empty());
    }

    #[cfg(test)]
    fn len(&self) -> (usize, usize) {
        let all = || self.0.values().flatten();
        (all().count(), all().map(|kept| kept.payload.len()).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(number: u16) -> NodeId {
        NodeId::try_from(number).unwrap()
    }

    #[test]
    fn each_peer_has_so_much_room_and_no_more() {
        let mut early = Early::default();
        for number in 0..300_u16 {
            let id = [u8::try_from(number % 7).unwrap(); 32];
            early.keep(party(1 + number % 2), (id, Part::Items, Bytes::from_static(b"x")), 1);
        }
        assert_eq!(early.len(), (2 * MOST_MESSAGES, 2 * MOST_MESSAGES));
        for _ in 0..10 {
            early.keep(party(3), ([9; 32], Part::Items, vec![0; MOST_BYTES / 2].into()), 1);
        }
        early.keep(party(3), ([9; 32], Part::Items, vec![0; MOST_BYTES + 1].into()), 1);
        assert_eq!(early.len(), (2 * MOST_MESSAGES + 2, 2 * MOST_MESSAGES + MOST_BYTES));
        assert_eq!(early.take(&[9; 32]).len(), 2);
        let of_one = early.take(&[3; 32]);
        assert!(!of_one.is_empty() && of_one.iter().all(|(_, kept)| kept.id == [3; 32]));
        early.forget_old(TICKS);
        assert!(early.len().0 > 0);
        early.forget_old(TICKS + 1);
        assert_eq!(early.len(), (0, 0));
    }
}

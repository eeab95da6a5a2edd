//! How much a node computes for handshakes, since anybody who carries frames can invent them.
//!
//! Each peer's handshakes have a share of their own; half of all is for whoever needs more. A flood in the name of one peer takes that peer's share and
//! what nobody else needs, and keeps no other out. Within a name, what waits is drawn by lot ([`Slot`]): the honest frame among m false ones is
//! checked with the same chance, however they are timed, and it comes again.

use core::time::Duration;
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use bytes::Bytes;
use rustls::crypto::SecureRandom;

/// A bucket of tokens that fills with time. In millionths of a token.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    millionths: u64,
    most: u64,
    per_second: u64,
    filled: Option<Instant>,
}

const MILLION: u64 = 1_000_000;

impl Bucket {
    /// Full, with room for `burst`.
    fn new(per_second: u64, burst: u64) -> Self {
        let most = burst.max(1).saturating_mul(MILLION);
        Self { millionths: most, most, per_second: per_second.max(1), filled: None }
    }

    fn fill(&mut self, now: Instant) {
        let passed = self.filled.map_or(Duration::ZERO, |filled| now.saturating_duration_since(filled));
        let passed = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX);
        self.millionths = self.millionths.saturating_add(passed.saturating_mul(self.per_second)).min(self.most);
        self.filled = Some(self.filled.map_or(now, |filled| filled.max(now)));
    }

    fn take(&mut self, now: Instant) -> bool {
        self.fill(now);
        match self.millionths.checked_sub(MILLION) {
            Some(left) => self.millionths = left,
            None => return false,
        }
        true
    }

    fn pause(&self) -> Duration {
        Duration::from_micros(MILLION.saturating_sub(self.millionths).div_ceil(self.per_second))
    }
}

/// What all peers share.
#[derive(Debug)]
pub struct Budget {
    per_second: u64,
    /// Among how many peers half of it is shared.
    peers: AtomicU64,
    spare: Mutex<Bucket>,
}

/// What one peer has for itself.
#[derive(Debug)]
pub(super) struct Share(Bucket);

impl Budget {
    /// At most so many steps of handshakes in a second, each of which takes a tenth of a millisecond with keys on P-256.
    #[must_use]
    pub fn new(per_second: u32) -> Self {
        let per_second = u64::from(per_second).max(2);
        Self { per_second, peers: AtomicU64::new(1), spare: Mutex::new(Bucket::new(per_second / 2, 64)) }
    }

    /// From now on there are so many peers, all of which have the same share: those that were there before, too.
    pub fn among(&self, peers: usize) {
        self.peers.store(u64::try_from(peers).unwrap_or(u64::MAX), Relaxed);
    }

    /// The share of one peer.
    pub(super) fn share(&self) -> Share {
        Share(Bucket::new(self.of_one(), 4))
    }

    fn of_one(&self) -> u64 {
        (self.per_second / 2).checked_div(self.peers.load(Relaxed)).unwrap_or(self.per_second).max(1)
    }

    /// Whether a step may be computed now; if not, when to ask again.
    pub(super) fn take(&self, share: &mut Share, now: Instant) -> Result<(), Duration> {
        share.0.per_second = self.of_one();
        if share.0.take(now) {
            return Ok(());
        }
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.take(now) { Ok(()) } else { Err(share.0.pause().min(spare.pause())) }
    }
}

/// One frame that waits to be checked, drawn by lot from all that came while it waited.
#[derive(Debug, Default)]
pub(super) struct Slot {
    frame: Option<Bytes>,
    came: u32,
}

impl Slot {
    /// Another frame comes. Each of those that came since the last was taken is the one that waits with equal chance.
    pub(super) fn put(&mut self, frame: Bytes, random: &dyn SecureRandom) {
        self.came = self.came.saturating_add(1);
        let mut lot = [0; 8];
        // Without randomness the newest waits.
        let _ = random.fill(&mut lot);
        if u64::from_be_bytes(lot) % u64::from(self.came) == 0 {
            self.frame = Some(frame);
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.frame.is_none()
    }

    pub(super) fn take(&mut self) -> Option<Bytes> {
        self.came = 0;
        self.frame.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_in_one_name_leaves_the_others_their_share() {
        let (budget, begin) = (Budget::new(100), Instant::now());
        budget.among(10);
        let (mut flooded, mut quiet) = (budget.share(), budget.share());
        let mut taken = 0;
        for millis in 0..10_000 {
            let now = begin + Duration::from_millis(millis);
            while budget.take(&mut flooded, now).is_ok() {
                taken += 1;
            }
            if millis % 250 == 0 {
                assert!(budget.take(&mut quiet, now).is_ok(), "at {millis} ms");
            }
        }
        // Its tenth of a half, the other half, and both bursts.
        assert!((550..=640).contains(&taken), "{taken} in ten seconds");
        let end = begin + Duration::from_secs(10);
        let pause = (0..100).find_map(|_| budget.take(&mut flooded, end).err()).unwrap();
        assert!(pause <= Duration::from_millis(20), "{pause:?}");
    }

    /// A group that grows does not leave those who were there first with the shares of a small one, and one that shrinks not with those of a large one.
    #[test]
    fn shares_follow_the_number_of_peers() {
        let (budget, begin) = (Budget::new(100), Instant::now());
        let mut share = budget.share();
        let mut taken = |from: u64| {
            let times = (from * 1_000..(from + 10) * 1_000).map(|millis| begin + Duration::from_millis(millis));
            times.map(|now| core::iter::from_fn(|| budget.take(&mut share, now).ok()).count()).sum::<usize>()
        };
        taken(0);
        let alone = taken(10);
        budget.among(10);
        let crowded = taken(20);
        // Its part of a half, and the other half, which nobody else needs.
        assert!((990..=1_010).contains(&alone), "{alone} in ten seconds");
        assert!((540..=560).contains(&crowded), "{crowded} in ten seconds");
    }

    #[test]
    fn the_lot_decides_who_waits() {
        let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
        let mut honest = 0;
        for _ in 0..2_000 {
            let mut slot = Slot::default();
            slot.put(Bytes::from_static(b"honest"), random);
            (0..9).for_each(|_| slot.put(Bytes::from_static(b"false"), random));
            honest += u32::from(slot.take().as_deref() == Some(b"honest"));
            assert!(slot.is_empty());
        }
        // A tenth of 2000 has a standard deviation of 13.
        assert!((120..280).contains(&honest), "{honest} of 2000");
    }
}

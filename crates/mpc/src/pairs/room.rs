//! How many set-ups a node keeps, over all of its keys.

use core::fmt;
use std::sync::{
    Arc, Mutex, PoisonError, Weak,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// The room for the set-ups of all keys of a node: it is counted in partners, since a set-up of k holders has transfers with k - 1. Where there is none
/// for a new one, those go that nobody has used for longest, whatever key they are of. Clones are the same room.
#[derive(Clone)]
pub struct SetUpRoom(Arc<Inner>);

struct Inner {
    most: usize,
    /// Counts uses.
    uses: AtomicU64,
    held: Mutex<Vec<Weak<dyn Held>>>,
}

/// A set-up in a room. Its methods take no lock of a shelf or of a room.
pub(super) trait Held: Send + Sync {
    /// When it was used last, as the room counts, and how many partners it is with; `None` if it takes up no room any more.
    fn weight(&self) -> Option<(u64, usize)>;
    /// No program begins on it any more. It is wiped as soon as nobody uses it.
    fn let_go(&self);
}

impl Default for SetUpRoom {
    fn default() -> Self {
        Self::new(Self::MOST_PAIRS)
    }
}

impl fmt::Debug for SetUpRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetUpRoom").field("most", &self.0.most).finish_non_exhaustive()
    }
}

impl SetUpRoom {
    /// For so many partners there is room, unless somebody says otherwise: 16 KiB each, 64 MiB in all.
    pub const MOST_PAIRS: usize = 4_096;

    /// Room for set-ups with so many partners, all together.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Inner { most, uses: AtomicU64::new(0), held: Mutex::default() }))
    }

    /// The number of a use: each is higher than those before.
    pub(super) fn next_use(&self) -> u64 {
        self.0.uses.fetch_add(1, Relaxed).saturating_add(1)
    }

    /// Whether both are the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Counts a set-up. What was used least lately makes room for it.
    pub(super) fn add(&self, set_up: Weak<dyn Held>) {
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.push(set_up);
        let (mut there, mut pairs) = (Vec::with_capacity(held.len()), 0_usize);
        held.retain(|held| {
            let found = held.upgrade().and_then(|held| Some((held.weight()?, held)));
            let is_there = found.is_some();
            if let Some(((_, weight), _)) = &found {
                pairs = pairs.saturating_add(*weight);
            }
            there.extend(found);
            is_there
        });
        if pairs <= self.0.most {
            return;
        }
        there.sort_by_key(|((used, _), _)| *used);
        for ((_, weight), oldest) in there {
            if pairs <= self.0.most {
                return;
            }
            oldest.let_go();
            pairs = pairs.saturating_sub(weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A set-up with two partners.
    struct Fake(Mutex<Option<u64>>);

    impl Held for Fake {
        fn weight(&self) -> Option<(u64, usize)> {
            self.0.lock().unwrap().map(|used| (used, 2))
        }

        fn let_go(&self) {
            *self.0.lock().unwrap() = None;
        }
    }

    #[test]
    fn what_was_used_least_lately_makes_room() {
        let room = SetUpRoom::new(6);
        let fakes: Vec<Arc<Fake>> = [4, 2, 3, 1].map(|used| Arc::new(Fake(Mutex::new(Some(used))))).into();
        let add = |fake: &Arc<Fake>| {
            let weak: Weak<Fake> = Arc::downgrade(fake);
            room.add(weak);
        };
        let there = || fakes.iter().map(|fake| fake.weight().is_some()).collect::<Vec<_>>();
        fakes[..3].iter().for_each(add);
        assert_eq!(there(), [true; 4], "there is room for three, and the fourth is not in it");
        *fakes[3].0.lock().unwrap() = Some(5);
        add(&fakes[3]);
        assert_eq!(there(), [true, false, true, true]);
        // What is gone takes up no room, and nor does what nobody has any more.
        fakes[0].let_go();
        add(&Arc::new(Fake(Mutex::new(Some(6)))));
        add(&Arc::new(Fake(Mutex::new(Some(7)))));
        assert_eq!(there(), [false, false, true, true]);
        assert_eq!(room.0.held.lock().unwrap().len(), 3);
    }

    #[test]
    fn without_room_nothing_stays() {
        let (room, fake) = (SetUpRoom::new(1), Arc::new(Fake(Mutex::new(Some(1)))));
        let weak: Weak<Fake> = Arc::downgrade(&fake);
        room.add(weak);
        assert!(fake.weight().is_none());
    }
}

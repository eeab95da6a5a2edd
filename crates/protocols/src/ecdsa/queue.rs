//! Requests that wait for presignatures which are being made: first come, first served.

use std::sync::{Arc, Weak};

/// So many wait at most. Nobody waits longer than until the other holders take its node for silent, in which programs make some hundreds.
const MOST: usize = 1_024;

/// A place among those that wait, until it is dropped.
#[derive(Debug)]
pub struct Place(Arc<()>);

/// The places, in the order in which they were taken, on whatever threads.
#[derive(Debug, Default)]
pub(super) struct Queue(Vec<Weak<()>>);

impl Queue {
    /// How many have waited for longer than this one; all that wait if it has no place.
    pub(super) fn before(&mut self, place: Option<&Place>) -> usize {
        self.0.retain(|taken| taken.strong_count() > 0);
        let is_it = |taken: &Weak<()>| place.is_some_and(|Place(place)| taken.as_ptr() == Arc::as_ptr(place));
        self.0.iter().position(is_it).unwrap_or(self.0.len())
    }

    /// The last place, if there is room.
    pub(super) fn join(&mut self) -> Option<Place> {
        if self.0.len() >= MOST {
            return None;
        }
        let place = Arc::new(());
        self.0.push(Arc::downgrade(&place));
        Some(Place(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_order_and_end_with_who_has_them() {
        let mut queue = Queue::default();
        let mut places: Vec<Place> = (0..4).map(|_| queue.join().unwrap()).collect();
        assert_eq!(queue.before(None), 4);
        let mut orders = |places: &[Place]| places.iter().map(|place| queue.before(Some(place))).collect::<Vec<_>>();
        assert_eq!(orders(&places), [0, 1, 2, 3]);
        drop(places.remove(1));
        assert_eq!(orders(&places), [0, 1, 2]);
        places.clear();
        assert_eq!(queue.before(None), 0);
    }

    #[test]
    fn there_are_few_places() {
        let mut queue = Queue::default();
        let places: Vec<Place> = (0..MOST).map(|_| queue.join().unwrap()).collect();
        assert!(queue.join().is_none());
        drop(places);
        assert_eq!(queue.before(None), 0);
        assert!(queue.join().is_some());
    }
}

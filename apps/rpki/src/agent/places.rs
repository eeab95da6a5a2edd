//! Places of those who ask: so many requests are decided or wait, and none of the clients has them all.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How many requests of each client are decided or wait. Clients without any are not there.
#[derive(Debug, Default)]
struct Held(HashMap<String, usize>);

/// The places of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    held: Arc<Mutex<Held>>,
    most: usize,
}

/// A place, which is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    held: Arc<Mutex<Held>>,
    client: String,
}

/// No code panics while it holds the lock.
fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Places {
    pub(crate) fn new(most: usize) -> Self {
        Self { held: Arc::default(), most }
    }

    /// A place for a client's request, if there is one: each client has fewer than an even share, where one share is for whoever comes next. So one that asks
    /// too much has half of the places at most, and others find room.
    pub(crate) fn take(&self, client: &str) -> Option<Place> {
        let mut held = lock(&self.held);
        let own = held.0.get(client).copied().unwrap_or_default();
        let others = held.0.len().saturating_sub(usize::from(own > 0));
        let even = self.most.checked_div(others.saturating_add(2)).unwrap_or_default().max(1);
        if own >= even || held.0.values().sum::<usize>() >= self.most {
            return None;
        }
        held.0.insert(client.to_owned(), own.saturating_add(1));
        Some(Place { held: Arc::clone(&self.held), client: client.to_owned() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = lock(&self.held);
        match held.0.get_mut(&self.client) {
            Some(own) if *own > 1 => *own = own.saturating_sub(1),
            _ => {
                held.0.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(places: &Places, client: &str, count: usize) -> Vec<Place> {
        (0..count).filter_map(|_| places.take(client)).collect()
    }

    /// One asks 64 times at once, and the next one is heard all the same; so is a third one.
    #[test]
    fn one_client_leaves_room_for_others() {
        let places = Places::new(32);
        let greedy = take(&places, "a", 64);
        assert_eq!(greedy.len(), 16);
        let others = [take(&places, "b", 64), take(&places, "c", 64)];
        assert_eq!(others.each_ref().map(Vec::len), [10, 6]);
        drop(greedy);
        assert_eq!(take(&places, "a", 64).len(), 8, "three share the places with whoever comes next");
        drop(others);
        assert_eq!(take(&places, "a", 64).len(), 16);
        assert!(lock(&places.held).0.is_empty(), "all are given back");
    }

    #[test]
    fn where_there_are_few_places_one_at_a_time_has_one() {
        let places = Places::new(1);
        let one = take(&places, "a", 2);
        assert_eq!((one.len(), take(&places, "b", 1).len()), (1, 0));
        drop(one);
        assert_eq!(take(&places, "b", 2).len(), 1);
        assert!(Places::new(0).take("a").is_none());
    }
}

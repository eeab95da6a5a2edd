//! What was said just now, and is not said again.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// For how long one thing is said once.
const PAUSE: Duration = Duration::from_secs(60);
/// The most things that are said in that time: who makes them up has no more lines.
pub(super) const MOST: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Rare(Mutex<HashMap<String, Instant>>);

impl Rare {
    /// Whether something may be said of this now. Then it is.
    pub(super) fn is_time(&self, about: &str, now: Instant) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.get(about).is_none() && said.len() >= MOST {
            said.retain(|_, at| now.saturating_duration_since(*at) < PAUSE);
        }
        let is_time = match said.get(about) {
            Some(at) => now.saturating_duration_since(*at) >= PAUSE,
            None => said.len() < MOST,
        };
        if is_time {
            said.insert(about.to_owned(), now);
        }
        is_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_said_once_a_minute_and_no_more_than_so_many() {
        let (rare, now) = (Rare::default(), Instant::now());
        assert!(rare.is_time("one", now) && !rare.is_time("one", now + PAUSE / 2));
        assert!(rare.is_time("one", now + PAUSE));
        let later = now + PAUSE;
        assert_eq!((0..2 * MOST).filter(|number| rare.is_time(&number.to_string(), later)).count(), MOST - 1);
        assert!(rare.is_time("two", later + PAUSE), "what is old makes room");
    }
}

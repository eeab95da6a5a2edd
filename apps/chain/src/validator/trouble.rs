//! What goes wrong four times a second for as long as a node is down is said when it is new, and once a minute.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use theta_names::Seldom;
use tonic::Status;

/// How often the same reason is said.
const AGAIN: Duration = Duration::from_secs(60);
/// The reasons that are remembered: what fails in two ways in turns has no news in either.
const MOST_REASONS: usize = 8;

/// The reasons for which one thing did not work lately.
#[derive(Debug, Default)]
pub(super) struct Trouble(Mutex<VecDeque<(String, Seldom)>>);

impl Trouble {
    /// Says what does not work now, and why, unless that was said lately.
    pub(super) fn warn(&self, what: &str, status: &Status) {
        let reason = format!("{:?}: {}", status.code(), status.message());
        if let Some(left_out) = self.may_speak(&reason, Instant::now()) {
            tracing::warn!(reason, left_out, "{what}");
        }
    }

    /// How often the reason was left out since it was said last; `None` if it must be left out again.
    fn may_speak(&self, reason: &str, now: Instant) -> Option<u64> {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, seldom)) = said.iter_mut().find(|(before, _)| before == reason) {
            return seldom.is_time(now);
        }
        if said.len() >= MOST_REASONS {
            said.pop_front();
        }
        let mut seldom = Seldom::every(AGAIN);
        let left_out = seldom.is_time(now);
        said.push_back((reason.to_owned(), seldom));
        left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_said_when_it_is_new_and_once_a_minute() {
        let (trouble, start) = (Trouble::default(), Instant::now());
        let mut said = Vec::new();
        // Two minutes in which a node is down, and its validator asks it four times a second.
        for quarter in 0..480 {
            let reason = if quarter % 3 == 0 { "connection refused" } else { "no answer" };
            let left_out = trouble.may_speak(reason, start + Duration::from_millis(250) * quarter);
            said.extend(left_out.map(|left_out| (quarter, left_out)));
        }
        assert_eq!(said, [(0, 0), (1, 0), (240, 79), (241, 159)]);
        for number in 0..1_000 {
            assert_eq!(trouble.may_speak(&number.to_string(), start), Some(0), "it is new");
        }
        assert_eq!(trouble.0.lock().unwrap().len(), MOST_REASONS);
    }
}

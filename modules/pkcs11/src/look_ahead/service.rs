//! Who is asked what will be signed, and what is said of it in the log.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::event::Counts;
use crate::log::Log;

#[derive(Debug)]
pub(super) struct Service {
    pub(super) socket: PathBuf,
    /// How long a call of the nodes may take.
    pub(super) timeout: Duration,
    pub(super) log: Log,
    /// What was said last of what went wrong.
    said: Mutex<String>,
}

impl Service {
    pub(super) fn new(socket: PathBuf, timeout: Duration, log: Log) -> Self {
        Self { socket, timeout, log, said: Mutex::default() }
    }

    /// Says what goes wrong, unless that is what was said last.
    pub(super) fn say_once(&self, words: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if *said != words {
            words.clone_into(&mut said);
            drop(said);
            self.log.say(words);
        }
    }

    /// Says what came of an event that is over. What goes wrong next time is said again.
    pub(super) fn report(&self, key: &str, Counts { ahead, asked, left }: Counts) {
        let all = ahead.saturating_add(asked);
        self.log.say(format_args!(
            "of {all} signatures with {key} {ahead} were made ahead, and {left} more for nothing so far"
        ));
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

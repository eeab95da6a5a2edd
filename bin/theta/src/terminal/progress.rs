//! Progress bars on standard error for long work.

use std::{collections::BTreeMap, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// Below this many bytes no bar is shown, because the work is too short.
const WORTH_SHOWING: u64 = 10_000_000;

/// Shows the progress in a file: on a terminal, for files over 10 MB.
pub(crate) struct Progress {
    bar: ProgressBar,
    hidden: bool,
}

impl Progress {
    /// A bar for `total` bytes; `None` if the number is unknown.
    pub(crate) fn new(verb: &'static str, total: Option<u64>) -> Self {
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        bar.set_draw_target(ProgressDrawTarget::hidden());
        let template = match total {
            Some(_) => "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
            None => "{msg} {spinner} {bytes}, {bytes_per_sec}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(verb);
        let hopeless = !output::stderr_is_terminal() || total.is_some_and(|total| total < WORTH_SHOWING);
        Self { bar, hidden: !hopeless }
    }

    /// Shows that `done` bytes are done in all.
    pub(crate) fn reached(&mut self, done: u64) {
        if self.hidden && (self.bar.length().is_some() || done > WORTH_SHOWING) {
            self.hidden = false;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Shows on a terminal the search for an RSA key's primes, whose end is unknown.
pub(crate) struct PrimeSearch {
    bar: ProgressBar,
    key: String,
}

impl PrimeSearch {
    /// A display for a key of this name and size.
    pub(crate) fn new(key: &str, bits: u32) -> Self {
        let bar = spinner(key);
        let search = Self { bar, key: format!("{key}: looking for two safe primes of {} bits", bits / 2) };
        search.reached(0, 0);
        search
    }

    /// Shows the number of candidates tested and of primes found.
    pub(crate) fn reached(&self, tested: u64, found: usize) {
        self.bar.set_message(format!("{}, {tested} candidates tried, {found} found", self.key));
    }
}

impl Drop for PrimeSearch {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A spinner with the time that has passed.
fn spinner(what: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// Shows on a terminal the progress of a ceremony at each node.
pub(crate) struct CeremonyBar {
    bar: ProgressBar,
    what: String,
    done: BTreeMap<u16, (u32, u32)>,
}

impl CeremonyBar {
    /// A bar for a ceremony; `what` describes it.
    pub(crate) fn new(what: &str) -> Self {
        let bar = spinner(what);
        Self { bar, what: what.to_owned(), done: BTreeMap::new() }
    }

    /// Shows that a node has done `done` of `of` steps.
    pub(crate) fn reached(&mut self, node: u16, done: u32, of: u32) {
        self.done.insert(node, (done, of));
        let nodes: Vec<String> =
            self.done.iter().map(|(node, (done, of))| format!("node {node} {done}/{of}")).collect();
        self.bar.set_message(format!("{}: {}", self.what, nodes.join(", ")));
    }
}

impl Drop for CeremonyBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Shows on a terminal, or line by line, for whom a change waits.
pub(crate) struct WaitBar {
    bar: ProgressBar,
    what: String,
    said: Option<String>,
}

impl WaitBar {
    /// A display of what is waited for.
    pub(crate) fn new(what: &str) -> Self {
        let bar = spinner(what);
        Self { bar, what: what.to_owned(), said: None }
    }

    /// Says how it stands. The same is not said twice.
    pub(crate) fn stands(&mut self, how: String) {
        if self.said.as_ref() == Some(&how) {
            return;
        }
        self.bar.set_message(format!("{}: {how}", self.what));
        if !output::stderr_is_terminal() && !output::is_json() {
            output::note(format_args!("{}: {how}", self.what));
        }
        self.said = Some(how);
    }
}

impl Drop for WaitBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

//! A bar on standard error for long work, and a way to stop it.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::{
    runtime::Handle,
    signal::unix::{Signal, SignalKind, signal},
};

use crate::{exit::Failure, output};

/// Below this many bytes nobody waits long enough to look.
const WORTH_SHOWING: u64 = 10_000_000;

/// Shows how far a file is: on a terminal, for files over 10 MB.
pub(crate) struct Progress {
    bar: ProgressBar,
    hidden: bool,
}

impl Progress {
    /// For `total` bytes; `None` if nobody knows.
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

    /// `done` bytes are done in all.
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

/// Shows, on a terminal, how far the search for an RSA key's primes is. Nobody knows when it ends.
pub(crate) struct PrimeSearch {
    bar: ProgressBar,
    key: String,
}

impl PrimeSearch {
    /// For a key of this name and size.
    pub(crate) fn new(key: &str, bits: u32) -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {elapsed}") {
            bar.set_style(style);
        }
        let search = Self { bar, key: format!("{key}: looking for two safe primes of {} bits", bits / 2) };
        search.reached(0, 0);
        search.bar.enable_steady_tick(Duration::from_millis(120));
        search
    }

    /// So many candidates were tested and so many primes found.
    pub(crate) fn reached(&self, tested: u64, found: usize) {
        self.bar.set_message(format!("{}, {tested} candidates tried, {found} found", self.key));
    }
}

impl Drop for PrimeSearch {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Shows, on a terminal, how far a ceremony is at each node.
pub(crate) struct CeremonyBar {
    bar: ProgressBar,
    what: String,
    done: BTreeMap<u16, (u32, u32)>,
}

impl CeremonyBar {
    /// For a ceremony in words.
    pub(crate) fn new(what: &str) -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar, what: what.to_owned(), done: BTreeMap::new() }
    }

    /// A node has done so many steps of so many.
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

/// How long work has to notice that it is interrupted; it cannot while it waits for a pipe.
const NOTICE: Duration = Duration::from_millis(300);

/// Set when the user pressed Ctrl-C during work that must clean up after itself.
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    happened: Arc<AtomicBool>,
    draft: Arc<Mutex<Option<PathBuf>>>,
}

impl Interrupt {
    /// From now on Ctrl-C sets the flag, and ends the process only if nobody looks at the flag soon.
    pub(crate) fn watch(runtime: &Handle) -> Result<Self, Failure> {
        let interrupt = Self::default();
        let _inside = runtime.enter();
        let mut pressed = ctrl_c()?;
        let watching = interrupt.clone();
        runtime.spawn(async move {
            pressed.recv().await;
            watching.happened.store(true, Ordering::Relaxed);
            tokio::time::sleep(NOTICE).await;
            watching.exit();
        });
        Ok(interrupt)
    }

    /// Names the unfinished file, to be removed when the process is ended.
    pub(crate) fn unfinished(&self, draft: &Path) {
        *self.draft.lock().unwrap_or_else(PoisonError::into_inner) = Some(draft.to_owned());
    }

    fn exit(&self) -> ! {
        if let Some(draft) = self.draft.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Gone already if the work was finished meanwhile.
            let _ = std::fs::remove_file(draft);
        }
        std::process::exit(Failure::Interrupted.code().into())
    }

    /// Whether it happened.
    pub(crate) fn happened(&self) -> bool {
        self.happened.load(Ordering::Relaxed)
    }

    /// A reader that fails once it happened, so that whatever streams from it stops.
    pub(crate) fn guard<R: Read>(&self, inner: R) -> Guarded<R> {
        Guarded { inner, interrupt: self.clone() }
    }
}

/// Every Ctrl-C from this call on. Call it within a runtime.
pub fn ctrl_c() -> Result<Signal, Failure> {
    signal(SignalKind::interrupt()).map_err(|error| Failure::Internal(format!("cannot watch for Ctrl-C: {error}")))
}

/// See [`Interrupt::guard`].
pub(crate) struct Guarded<R> {
    inner: R,
    interrupt: Interrupt,
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = if self.interrupt.happened() { Ok(0) } else { self.inner.read(buffer) };
        // An interrupted input that ends is not a short input.
        if self.interrupt.happened() { Err(io::Error::other("interrupted")) } else { read }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guarded_reader_stops() {
        let interrupt = Interrupt::default();
        let mut reader = interrupt.guard(&[1_u8, 2, 3][..]);
        let mut byte = [0];
        assert_eq!(reader.read(&mut byte).unwrap(), 1);
        interrupt.happened.store(true, Ordering::Relaxed);
        assert!(reader.read(&mut byte).is_err());
    }
}

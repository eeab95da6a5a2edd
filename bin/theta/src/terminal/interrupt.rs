//! What happens when a signal ends the process: unfinished files are removed, finished ones stay.

use std::{
    collections::BTreeSet,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Failure;

/// How long work has to notice a signal; it cannot while it waits for a pipe.
const NOTICE: Duration = Duration::from_millis(300);

/// A signal that ends a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    /// SIGHUP: the terminal was closed.
    Hangup,
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: `kill`, or the system that shuts down.
    Terminate,
}

impl EndSignal {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Hangup, Self::Interrupt, Self::Terminate];

    /// Its number by POSIX.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Hangup => 1,
            Self::Interrupt => 2,
            Self::Terminate => 15,
        }
    }

    fn watch(self) -> Result<Signal, Failure> {
        let watched = signal(SignalKind::from_raw(self.number().into()));
        watched.map_err(|error| Failure::Internal(format!("cannot watch for signals: {error}")))
    }

    /// Whether the process was started with this signal ignored, as under `nohup`; it continues to ignore it. Where the
    /// system does not say so (Linux does), no signal counts as ignored.
    fn is_ignored(self) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (self.number() - 1) & 1 == 1)
    }
}

/// Resolves to the first signal that ends the process. Signals are watched from this call on. Must be called within a
/// runtime.
pub fn told_to_end() -> Result<impl Future<Output = EndSignal>, Failure> {
    let watched = |signal: EndSignal| if signal.is_ignored() { Ok(None) } else { signal.watch().map(Some) };
    let [mut hangup, mut interrupt, mut terminate] = {
        let [hangup, interrupt, terminate] = EndSignal::ALL.map(watched);
        [hangup?, interrupt?, terminate?]
    };
    Ok(async move {
        tokio::select! {
            () = received(&mut hangup) => EndSignal::Hangup,
            () = received(&mut interrupt) => EndSignal::Interrupt,
            () = received(&mut terminate) => EndSignal::Terminate,
        }
    })
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// The unfinished work of the whole process.
struct InTheMaking {
    /// Files and directories to remove if the process ends now.
    unfinished: BTreeSet<PathBuf>,
    /// The number of threads that are finishing something that must be done as a whole.
    finishing: usize,
    told: Option<EndSignal>,
}

static IN_THE_MAKING: Mutex<InTheMaking> =
    Mutex::new(InTheMaking { unfinished: BTreeSet::new(), finishing: 0, told: None });
static NOBODY_FINISHING: Condvar = Condvar::new();
/// The signal has come; a copy of `told` that is cheap to read.
static TOLD: AtomicBool = AtomicBool::new(false);

fn in_the_making() -> MutexGuard<'static, InTheMaking> {
    IN_THE_MAKING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches for signals from now on, in a thread of its own, because work that waits for a pipe notices nothing.
fn watch() -> Result<(), Failure> {
    static WATCHING: OnceLock<Result<(), Failure>> = OnceLock::new();
    let start = || {
        let (ready, started) = mpsc::channel();
        thread::spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return ready.send(Err(Failure::internal(error))),
            };
            let told = {
                let _inside = runtime.enter();
                match told_to_end() {
                    Ok(told) => told,
                    Err(failure) => return ready.send(Err(failure)),
                }
            };
            let _ = ready.send(Ok(()));
            end(runtime.block_on(told))
        });
        started.recv().map_err(Failure::internal)?
    };
    WATCHING.get_or_init(start).clone()
}

/// Lets work that checks the flag end the process in order, or else ends it.
fn end(signal: EndSignal) -> ! {
    in_the_making().told = Some(signal);
    TOLD.store(true, Ordering::Relaxed);
    thread::sleep(NOTICE);
    let mut making = in_the_making();
    while making.finishing > 0 {
        making = NOBODY_FINISHING.wait(making).unwrap_or_else(PoisonError::into_inner);
    }
    for path in &making.unfinished {
        // An error means that the work was finished in the meantime.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    // This thread holds the lock, so nothing new begins.
    std::process::exit(Failure::Interrupted(signal).code().into())
}

/// A file or directory that is removed when a signal ends the process. Dropped when it is finished, or removed already.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// Watches it from now on.
    pub fn watch(path: &Path) -> Result<Self, Failure> {
        watch()?;
        in_the_making().unfinished.insert(path.to_owned());
        Ok(Self(path.to_owned()))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        in_the_making().unfinished.remove(&self.0);
    }
}

/// While this is held, no signal ends the process: for short work that must be done as a whole.
#[derive(Debug)]
pub(crate) struct Whole(());

impl Whole {
    /// Holds signals back from now on.
    pub(crate) fn begin() -> Result<Self, Failure> {
        watch()?;
        in_the_making().finishing += 1;
        Ok(Self(()))
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        in_the_making().finishing -= 1;
        NOBODY_FINISHING.notify_all();
    }
}

/// Watches for signals during work that streams from a reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupt(());

impl Interrupt {
    /// From now on a signal sets the flag, and ends the process only if nothing checks the flag soon.
    pub(crate) fn watch() -> Result<Self, Failure> {
        watch().map(|()| Self(()))
    }

    /// The signal, if there was one.
    pub(crate) fn happened(self) -> Option<Failure> {
        in_the_making().told.map(Failure::Interrupted)
    }

    /// A reader that fails once there was a signal, so that work that reads from it stops.
    pub(crate) const fn guard<R: Read>(self, inner: R) -> Guarded<R> {
        Guarded { inner, told: &TOLD }
    }
}

/// See [`Interrupt::guard`].
pub(crate) struct Guarded<R> {
    inner: R,
    told: &'static AtomicBool,
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let told = || self.told.load(Ordering::Relaxed);
        let read = if told() { Ok(0) } else { self.inner.read(buffer) };
        // An end of input after a signal must not pass for the true end.
        if self.told.load(Ordering::Relaxed) { Err(io::Error::other("interrupted")) } else { read }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guarded_reader_stops() {
        static PRESSED: AtomicBool = AtomicBool::new(false);
        let mut reader = Guarded { inner: &[1_u8, 2, 3][..], told: &PRESSED };
        let mut byte = [0];
        assert_eq!(reader.read(&mut byte).unwrap(), 1);
        PRESSED.store(true, Ordering::Relaxed);
        assert!(reader.read(&mut byte).is_err());
    }

    #[test]
    fn what_is_finished_is_watched_no_longer() {
        let (one, other) = (Path::new("/nowhere/one"), Path::new("/nowhere/other"));
        let watched = Unfinished::watch(one).unwrap();
        let _other = Unfinished::watch(other).unwrap();
        drop(watched);
        assert!(!in_the_making().unfinished.contains(one) && in_the_making().unfinished.contains(other));
    }
}

//! What happens when the process is told to end: unfinished files are removed, finished ones stay.

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

/// How long work has to notice that it is interrupted; it cannot while it waits for a pipe.
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

    /// Whether whoever started the process made it ignore the signal, as `nohup` does: then it goes on ignoring it. Where the
    /// system does not tell (it does on Linux), no signal counts as ignored.
    fn is_ignored(self) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (self.number() - 1) & 1 == 1)
    }
}

/// Ends with the first signal that tells the process to end. They are watched from this call on; call it within a runtime.
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

/// What there is in the making, in the whole process.
struct InTheMaking {
    /// Files and directories to remove if the process ends now.
    unfinished: BTreeSet<PathBuf>,
    /// How many threads are about to finish something that must be done as a whole.
    finishing: usize,
    told: Option<EndSignal>,
}

static IN_THE_MAKING: Mutex<InTheMaking> =
    Mutex::new(InTheMaking { unfinished: BTreeSet::new(), finishing: 0, told: None });
static NOBODY_FINISHING: Condvar = Condvar::new();
/// The same as `told`, to be looked at often.
static TOLD: AtomicBool = AtomicBool::new(false);

fn in_the_making() -> MutexGuard<'static, InTheMaking> {
    IN_THE_MAKING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches for signals from now on, in a thread of its own: what reads a pipe that never ends notices nothing.
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

/// Lets whoever looks at the flag end the process in good order, else ends it.
fn end(signal: EndSignal) -> ! {
    in_the_making().told = Some(signal);
    TOLD.store(true, Ordering::Relaxed);
    thread::sleep(NOTICE);
    let mut making = in_the_making();
    while making.finishing > 0 {
        making = NOBODY_FINISHING.wait(making).unwrap_or_else(PoisonError::into_inner);
    }
    for path in &making.unfinished {
        // Gone already if the work was finished meanwhile.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    // The lock is held: nothing new begins.
    std::process::exit(Failure::Interrupted(signal).code().into())
}

/// A file or directory that is removed when the process is told to end. Dropped when it is finished, or removed already.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// From now on.
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

/// While this is held, the process is not ended by a signal: for what must be done as a whole, and is done in a moment.
#[derive(Debug)]
pub(crate) struct Whole(());

impl Whole {
    /// From now on.
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
    /// From now on a signal sets the flag, and ends the process only if nobody looks at the flag soon.
    pub(crate) fn watch() -> Result<Self, Failure> {
        watch().map(|()| Self(()))
    }

    /// The signal, if there was one.
    pub(crate) fn happened(self) -> Option<Failure> {
        in_the_making().told.map(Failure::Interrupted)
    }

    /// A reader that fails once it happened, so that whatever streams from it stops.
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
        // An interrupted input that ends is not a short input.
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

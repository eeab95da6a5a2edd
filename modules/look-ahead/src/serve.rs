//! Answers, with a thread for each connection, of which there are few.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::{
    frames::{Answer, Question},
    timed::Timed,
};

/// The most connections at one time; others are closed unheard.
const MOST_CONNECTIONS: usize = 16;
/// How long whoever asks may take to do so, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long is waited where the system has no connections left.
const BREATH: Duration = Duration::from_millis(100);
/// Who may ask: the owner, and the group.
const MODE: u32 = 0o660;

/// Whoever knows what will be signed.
pub trait Listing: Send + Sync + 'static {
    /// The digests that will be signed with this one.
    ///
    /// # Errors
    /// Why it knows none, in words for a log.
    fn list(&self, question: &Question) -> Answer;
}

/// Nobody can ask there.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve on {}: {reason}", socket.display())]
pub struct ServeError {
    /// The socket.
    pub socket: PathBuf,
    /// The system's reason.
    pub reason: io::Error,
}

/// A service. It ends when this is dropped.
#[derive(Debug)]
pub struct Service {
    socket: PathBuf,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Serves on a socket, which must not be there.
///
/// # Errors
/// [`ServeError`].
pub fn serve(socket: &Path, listing: impl Listing) -> Result<Service, ServeError> {
    let failed = |reason| ServeError { socket: socket.to_owned(), reason };
    let listener = UnixListener::bind(socket).map_err(failed)?;
    // Before that nobody but the owner can connect, unless the owner's mask lets everybody.
    fs::set_permissions(socket, Permissions::from_mode(MODE)).map_err(failed)?;
    let ended = Arc::new(AtomicBool::new(false));
    let (listing, seen): (Arc<dyn Listing>, _) = (Arc::new(listing), Arc::clone(&ended));
    let thread = thread::Builder::new().name("theta-look-ahead".to_owned());
    let thread = thread.spawn(move || accept(&listener, &listing, &seen)).map_err(failed)?;
    Ok(Service { socket: socket.to_owned(), ended, thread: Some(thread) })
}

impl Service {
    /// Waits, in a program that does nothing else.
    pub fn wait(mut self) {
        // A service whose thread has ended by a mistake serves no more.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take().filter(|thread| !thread.is_finished()) {
            // It waits for a connection; where there cannot be one, its thread is left to itself.
            if Timed::connect(&self.socket, BREATH).is_ok() {
                let _ = thread.join();
            }
        }
        // Somebody else may have taken it away.
        let _ = fs::remove_file(&self.socket);
    }
}

/// One of the connections that there may be.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(places: &Arc<AtomicUsize>) -> Option<Self> {
        let place = Self(Arc::clone(places));
        (places.fetch_add(1, Ordering::Relaxed) < MOST_CONNECTIONS).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn accept(listener: &UnixListener, listing: &Arc<dyn Listing>, ended: &AtomicBool) {
    let places = Arc::default();
    while !ended.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(BREATH);
            continue;
        };
        let Some(place) = Place::take(&places) else { continue };
        let listing = Arc::clone(listing);
        // Where the system has no thread, nobody is answered.
        let _ = thread::Builder::new().name("theta-look-ahead".to_owned()).spawn(move || {
            let _place = place;
            // Whoever asks hears of it by the end of the connection.
            let _ = answer(stream, &*listing);
        });
    }
}

fn answer(stream: UnixStream, listing: &dyn Listing) -> io::Result<()> {
    let question = Question::read(&mut Timed::new(stream.try_clone()?, PATIENCE))?;
    let answer = if question.most == 0 { Ok(Vec::new()) } else { listing.list(&question) };
    // The time that it took is not whose who asks.
    question.write_answer(&answer, &mut Timed::new(stream, PATIENCE))
}

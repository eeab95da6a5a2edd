//! Bounds the requests, and the bytes of requests and answers, that a node holds at one time for each caller.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use theta_statements::Name;
use tokio::sync::oneshot;
use tonic::Status;

use super::{
    super::refusal,
    book::{Book, Bounds, Owner, Refused},
    connections::Connection,
};

/// Counts the requests in flight against their bounds.
#[derive(Debug)]
pub(crate) struct Admission {
    book: Mutex<Book>,
    bounds: Bounds,
}

/// An admitted request; dropping it releases its place and its bytes.
#[derive(Debug)]
pub(crate) struct Place {
    admission: Arc<Admission>,
    number: u64,
    since: Instant,
    /// Microseconds from `since` to the last byte of the body that has arrived.
    received: AtomicU64,
}

impl Admission {
    pub(crate) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { book: Mutex::new(Book::new(bounds)), bounds })
    }

    /// Takes a place for a request of this client or of a stranger; the error says why there is none. The receiver fires
    /// when the place is taken away.
    pub(crate) fn admit(
        self: &Arc<Self>,
        client: Option<&Name>,
        connection: &Arc<Connection>,
    ) -> Result<(Place, oneshot::Receiver<()>), Status> {
        let now = Instant::now();
        let owner = client.map_or(Owner::Stranger, |name| Owner::Client(name.clone()));
        let (number, shed) =
            self.book().enter(owner, connection, now).map_err(|refused| refused.status(&self.bounds))?;
        let place = Place { admission: Arc::clone(self), number, since: now, received: AtomicU64::new(0) };
        Ok((place, shed))
    }

    /// Ends requests without progress.
    pub(super) fn patrol(&self, now: Instant) {
        self.book().patrol(now);
    }

    /// The number of requests being answered.
    pub(crate) fn requests(&self) -> usize {
        self.book().requests()
    }

    /// The bytes of these requests and of their answers.
    pub(crate) fn bytes(&self) -> usize {
        self.book().bytes()
    }

    /// The number of requests that were ended to make room for others, or for lack of progress.
    pub(crate) fn shed(&self) -> u64 {
        self.book().shed()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The time at which the request's headers had arrived.
    pub(crate) const fn since(&self) -> Instant {
        self.since
    }

    /// How long its body took to arrive.
    pub(crate) fn receiving(&self) -> Duration {
        Duration::from_micros(self.received.load(Ordering::Relaxed))
    }

    /// Counts the request as this client's, which the connection did not identify.
    ///
    /// # Errors
    /// The client has no room for the request.
    pub(crate) fn recognised(&self, name: &Name) -> Result<(), Status> {
        self.book().recognise(self.number, name).map_err(|refused| self.status(refused))
    }

    /// Counts the request as so many: it is a batch of them.
    ///
    /// # Errors
    /// Its client has no room for them, or it has no client.
    pub(crate) fn counts_as(&self, requests: usize) -> Result<(), Status> {
        let most = self.admission.bounds.client_requests;
        if requests > most {
            // Whoever waited for room would wait for ever.
            return Err(Status::resource_exhausted(format!(
                "this node answers {most} requests of this caller at one time, and the batch has {requests}: send smaller ones"
            )));
        }
        self.book().widen(self.number, requests).map_err(|refused| self.status(refused))
    }

    pub(super) fn receive(&self, bytes: usize) -> Result<(), Status> {
        let elapsed = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.received.store(elapsed, Ordering::Relaxed);
        self.book().receive(self.number, bytes).map_err(|refused| self.status(refused))
    }

    pub(super) fn body_due(&self) -> Option<Instant> {
        self.book().body_due(self.number)
    }

    /// The body is complete.
    ///
    /// # Errors
    /// The place had been taken away.
    pub(super) fn arrived(&self) -> Result<(), Status> {
        if self.book().arrived(self.number) { Ok(()) } else { Err(self.shed()) }
    }

    pub(super) fn answered(&self) {
        self.book().answered(self.number, Instant::now());
    }

    /// Holds bytes until [`Place::release`], besides those of the answer.
    ///
    /// # Errors
    /// The client has no room for them.
    pub(super) fn hold(&self, bytes: usize) -> Result<(), Status> {
        self.book().hold(self.number, bytes).map_err(|refused| self.status(refused))
    }

    /// Gives back bytes that were held.
    pub(super) fn release(&self, bytes: usize) {
        self.book().release(self.number, bytes);
    }

    pub(super) fn offered(&self) {
        self.book().offered(self.number, Instant::now());
    }

    pub(super) fn taken(&self) {
        self.book().taken(self.number, Instant::now());
    }

    /// The answer to a caller whose place was taken away.
    pub(super) fn shed(&self) -> Status {
        self.status(Refused::Shed)
    }

    /// The answer to a caller whose body did not arrive in time.
    pub(super) fn late(&self) -> Status {
        Status::deadline_exceeded(format!(
            "the request did not arrive: a body has {:?}, and longer while it brings {} bytes a second",
            self.admission.bounds.body, self.admission.bounds.body_rate
        ))
    }

    fn status(&self, refused: Refused) -> Status {
        refused.status(&self.admission.bounds)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.admission.book()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.book().leave(self.number, Instant::now());
    }
}

impl Refused {
    fn status(self, bounds: &Bounds) -> Status {
        const THEN: &str = "try again in a moment or ask another node";
        let words = match self {
            Self::Requests => format!("this node is answering {} requests, its limit: {THEN}", bounds.requests),
            Self::OwnRequests => format!("this node is answering as many requests of this caller as it will: {THEN}"),
            Self::Bytes => {
                format!("this node holds {} bytes of requests and answers, its limit: {THEN}", bounds.bytes)
            }
            Self::OwnBytes => {
                format!("this node holds as many bytes of this caller's requests and answers as it will: {THEN}")
            }
            Self::Shed => format!("the request was late, and made room for others: {THEN}"),
        };
        // One that was late is not told to come again by itself: it may be what keeps the node busy.
        if self == Self::Shed { Status::resource_exhausted(words) } else { refusal::busy(words) }
    }
}

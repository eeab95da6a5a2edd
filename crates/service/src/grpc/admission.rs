//! How many requests, and how many of their bytes, a node holds at one time.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tonic::Status;

/// Counts what is in flight, against its bounds.
#[derive(Debug)]
pub(crate) struct Admission {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    max_requests: usize,
    max_bytes: usize,
}

/// One admitted request; dropping it gives its place and bytes back.
#[derive(Debug)]
pub(crate) struct Admitted {
    admission: Arc<Admission>,
    bytes: AtomicUsize,
    since: Instant,
    /// Microseconds from `since` to the body's last byte so far.
    received: AtomicU64,
}

impl Admission {
    pub(crate) fn new(max_requests: usize, max_bytes: usize) -> Arc<Self> {
        Arc::new(Self { requests: AtomicUsize::new(0), bytes: AtomicUsize::new(0), max_requests, max_bytes })
    }

    /// Takes a place, or says why there is none.
    pub(crate) fn admit(self: &Arc<Self>) -> Result<Admitted, Status> {
        let admitted = Admitted {
            admission: Arc::clone(self),
            bytes: AtomicUsize::new(0),
            since: Instant::now(),
            received: AtomicU64::new(0),
        };
        if self.requests.fetch_add(1, Ordering::Relaxed) >= self.max_requests {
            return Err(Status::resource_exhausted(format!(
                "this node is answering {} requests, its limit: try again in a moment or ask another node",
                self.max_requests
            )));
        }
        Ok(admitted)
    }

    /// Requests being answered.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Their bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Admitted {
    /// When the request's headers were there.
    pub(crate) const fn since(&self) -> Instant {
        self.since
    }

    /// How long its body took to arrive.
    pub(crate) fn receiving(&self) -> Duration {
        Duration::from_micros(self.received.load(Ordering::Relaxed))
    }

    fn add(&self, bytes: usize) -> Result<(), Status> {
        let elapsed = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.received.store(elapsed, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.admission.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > self.admission.max_bytes {
            return Err(Status::resource_exhausted(format!(
                "this node holds {} bytes of requests, its limit: try again in a moment or ask another node",
                self.admission.max_bytes
            )));
        }
        Ok(())
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.admission.requests.fetch_sub(1, Ordering::Relaxed);
        self.admission.bytes.fetch_sub(self.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// A request's body whose bytes count from the moment they arrive, before anything decodes them.
pub(crate) struct CountedBody {
    body: tonic::body::Body,
    admitted: Arc<Admitted>,
}

impl CountedBody {
    pub(crate) fn new(body: tonic::body::Body, admitted: Arc<Admitted>) -> Self {
        Self { body, admitted }
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
            && let Err(refusal) = self.admitted.add(data.len())
        {
            return Poll::Ready(Some(Err(refusal)));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back() {
        let admission = Admission::new(2, 100);
        let first = admission.admit().unwrap();
        let second = admission.admit().unwrap();
        assert_eq!(admission.admit().unwrap_err().code(), tonic::Code::ResourceExhausted);
        assert_eq!(admission.requests(), 2, "a refused request leaves no trace");
        first.add(60).unwrap();
        assert_eq!(second.add(41).unwrap_err().code(), tonic::Code::ResourceExhausted);
        drop(second);
        first.add(40).unwrap();
        drop(first);
        assert_eq!((admission.requests(), admission.bytes()), (0, 0));
    }
}

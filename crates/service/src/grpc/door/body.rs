//! Bodies whose bytes count: a request's from their arrival, an answer's until they have left.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hyper::{
    HeaderMap,
    body::{Body as HttpBody, Frame, SizeHint},
};
use tokio::{
    sync::oneshot,
    time::{Instant, Sleep, sleep_until},
};
use tonic::{Status, body::Body};

use super::admission::Place;

/// Answers leave in pieces of this size, so that their progress can be observed.
const PIECE: usize = 64 << 10;

/// A request's body. Its bytes count before anything decodes them, and it must arrive in time.
pub(crate) struct RequestBody {
    body: Body,
    place: Arc<Place>,
    shed: oneshot::Receiver<()>,
    /// Fires when the body is late; `None` once the body is complete.
    alarm: Option<Pin<Box<Sleep>>>,
    is_over: bool,
}

impl RequestBody {
    pub(crate) fn new(body: Body, place: Arc<Place>, shed: oneshot::Receiver<()>) -> Self {
        let alarm = place.body_due().map(|due| Box::pin(sleep_until(Instant::from_std(due))));
        Self { body, place, shed, alarm, is_over: false }
    }

    fn complete(&mut self) -> Result<(), Status> {
        self.alarm = None;
        self.place.arrived()
    }

    /// Whether the body is late. Each byte that arrives extends its time.
    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        let Some(alarm) = &mut self.alarm else { return false };
        while alarm.as_mut().poll(context).is_ready() {
            match self.place.body_due().map(Instant::from_std) {
                Some(due) if due > Instant::now() => alarm.as_mut().reset(due),
                Some(_) => return true,
                None => {
                    self.alarm = None;
                    return false;
                }
            }
        }
        false
    }

    fn refuse(&mut self, status: Status) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.is_over = true;
        self.body = Body::empty();
        Poll::Ready(Some(Err(status)))
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if self.alarm.is_some() && Pin::new(&mut self.shed).poll(context).is_ready() {
            let status = self.place.shed();
            return self.refuse(status);
        }
        let frame = match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => frame,
            Poll::Pending if self.is_late(context) => {
                let status = self.place.late();
                return self.refuse(status);
            }
            Poll::Pending => return Poll::Pending,
        };
        let counted = match &frame {
            Some(Ok(frame)) => {
                let is_last = self.body.is_end_stream() || frame.is_trailers();
                let received = self.place.receive(frame.data_ref().map_or(0, Bytes::len));
                received.and_then(|()| if is_last { self.complete() } else { Ok(()) })
            }
            None if self.alarm.is_some() => self.complete(),
            Some(Err(_)) | None => Ok(()),
        };
        match counted {
            Ok(()) => Poll::Ready(frame),
            Err(refusal) => self.refuse(refusal),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        // The reader has stopped early, as it may; whether the place was taken away no longer matters.
        let _ = self.place.arrived();
    }
}

/// An answer's body. The request keeps its place until the last byte has left this process, even from HTTP/2's buffers:
/// each piece holds the place, and dropping the last piece releases it.
pub(crate) struct ResponseBody {
    body: Body,
    place: Arc<Place>,
    /// The rest of a frame.
    rest: Option<(Bytes, Arc<Held>)>,
    is_over: bool,
}

/// The bytes of a frame, which stay in memory together until the last piece is dropped.
struct Held {
    place: Arc<Place>,
    bytes: usize,
}

/// A piece of an answer that is leaving.
struct Piece {
    bytes: Bytes,
    held: Arc<Held>,
}

impl ResponseBody {
    pub(crate) fn new(body: Body, place: Arc<Place>) -> Self {
        place.answered();
        Self { body, place, rest: None, is_over: false }
    }

    fn next_piece(&mut self) -> Option<Bytes> {
        let (rest, held) = self.rest.as_mut()?;
        let bytes = rest.split_to(rest.len().min(PIECE));
        let piece = Bytes::from_owner(Piece::new(bytes, Arc::clone(held)));
        if rest.is_empty() {
            self.rest = None;
        }
        Some(piece)
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(piece) = self.next_piece() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if self.is_over {
            return Poll::Ready(None);
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
        let bytes = match frame.into_data() {
            Ok(bytes) if !bytes.is_empty() => bytes,
            Ok(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
        };
        let length = bytes.len();
        if let Err(refusal) = self.place.hold(length) {
            (self.is_over, self.body) = (true, Body::empty());
            let mut trailers = HeaderMap::new();
            // Fails only for messages that do not fit into headers; ours do.
            let _ = refusal.add_header(&mut trailers);
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        self.rest = Some((bytes, Arc::new(Held { place: Arc::clone(&self.place), bytes: length })));
        Poll::Ready(self.next_piece().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_none() && (self.is_over || self.body.is_end_stream())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.place.release(self.bytes);
    }
}

impl Piece {
    fn new(bytes: Bytes, held: Arc<Held>) -> Self {
        held.place.offered();
        Self { bytes, held }
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.held.place.taken();
    }
}

//! Several streams over one connection, by yamux. libp2p's own wrapper does not let its caller bound the windows of streams.

use core::{
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};
use std::collections::VecDeque;

use futures::io::{AsyncRead, AsyncWrite};
use libp2p_core::muxing::{StreamMuxer, StreamMuxerEvent};
use yamux::{Config, Connection, ConnectionError, Mode, Stream};

/// Streams of a connection, both ways: gossipsub has one each way, and opens another when one breaks.
const STREAMS: usize = 16;
/// What all streams of a connection may keep unread, in bytes.
const WINDOW: usize = 8 << 20;

pub(super) struct Muxer<C> {
    connection: Connection<C>,
    /// Streams that the other side has opened and libp2p has not taken yet.
    opened: VecDeque<Stream>,
    waiting: Option<Waker>,
}

impl<C: AsyncRead + AsyncWrite + Unpin> Muxer<C> {
    pub(super) fn new(connection: C, mode: Mode) -> Self {
        let mut config = Config::default();
        config.set_max_num_streams(STREAMS).set_max_connection_receive_window(Some(WINDOW));
        Self { connection: Connection::new(connection, config, mode), opened: VecDeque::new(), waiting: None }
    }

    fn poll_opened(&mut self, cx: &mut Context<'_>) -> Poll<Result<Stream, ConnectionError>> {
        self.connection.poll_next_inbound(cx).map(|next| next.unwrap_or(Err(ConnectionError::Closed)))
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin + 'static> StreamMuxer for Muxer<C> {
    type Substream = Stream;
    type Error = ConnectionError;

    fn poll_inbound(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Stream, ConnectionError>> {
        if let Some(stream) = self.opened.pop_front() {
            return Poll::Ready(Ok(stream));
        }
        let polled = self.poll_opened(cx);
        if polled.is_pending() {
            self.waiting = Some(cx.waker().clone());
        }
        polled
    }

    fn poll_outbound(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Stream, ConnectionError>> {
        self.connection.poll_new_outbound(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        self.connection.poll_close(cx)
    }

    /// The connection advances by this alone: yamux reads while it looks for new streams.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<StreamMuxerEvent, ConnectionError>> {
        let stream = ready!(self.poll_opened(cx))?;
        // A stream for which there is no place is dropped, which resets it.
        if self.opened.len() < STREAMS {
            self.opened.push_back(stream);
        }
        if let Some(waiting) = self.waiting.take() {
            waiting.wake();
        }
        // There may be more, and others have a turn first.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

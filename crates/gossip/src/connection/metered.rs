//! A connection as libp2p takes it: counted, and read no faster than a neighbour may speak.

use core::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use futures::io::{AsyncRead, AsyncWrite};
use tokio::{
    io::{AsyncRead as TokioRead, AsyncWrite as TokioWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

use crate::rate::{Rate, Spent};

/// Bytes that all connections have carried, within TLS.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Traffic {
    /// Sent and received.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.sent.load(Relaxed), self.received.load(Relaxed))
    }
}

pub(super) struct Metered<S> {
    stream: S,
    traffic: Arc<Traffic>,
    rate: Rate,
    spent: Spent,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S, traffic: Arc<Traffic>, rate: Rate) -> Self {
        Self { stream, traffic, rate, spent: Spent::new(std::time::Instant::now()), pause: None }
    }
}

fn count(counter: &AtomicU64, bytes: usize) {
    counter.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Relaxed);
}

impl<S: TokioRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        loop {
            if let Some(pause) = &mut this.pause {
                ready!(pause.as_mut().poll(cx));
                this.pause = None;
            }
            if this.spent.may(&this.rate, std::time::Instant::now()) {
                break;
            }
            this.pause = Some(Box::pin(sleep_until(Instant::from_std(this.spent.next(&this.rate)))));
        }
        let mut read = ReadBuf::new(buffer);
        ready!(Pin::new(&mut this.stream).poll_read(cx, &mut read))?;
        let bytes = read.filled().len();
        count(&this.traffic.received, bytes);
        this.spent.take(&this.rate, bytes, std::time::Instant::now());
        Poll::Ready(Ok(bytes))
    }
}

impl<S: TokioWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let bytes = ready!(Pin::new(&mut self.stream).poll_write(cx, buffer))?;
        count(&self.traffic.sent, bytes);
        Poll::Ready(Ok(bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use futures::AsyncReadExt as _;
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn a_neighbour_is_read_no_faster_than_it_may_speak() {
        let (here, mut there) = tokio::io::duplex(64 << 10);
        let traffic = Arc::new(Traffic::default());
        let rate = Rate::shared(1_000_000, 1 << 20, 1, Duration::from_millis(100));
        let mut metered = Metered::new(here, Arc::clone(&traffic), rate);
        tokio::spawn(async move {
            loop {
                if there.write_all(&[7; 64 << 10]).await.is_err() {
                    return;
                }
            }
        });
        let start = std::time::Instant::now();
        let mut buffer = vec![0; 64 << 10];
        // One MiB a second, and a tenth of that at once.
        while traffic.bytes().1 < 512 << 10 {
            metered.read_exact(&mut buffer).await.unwrap();
        }
        assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
        assert_eq!(traffic.bytes().0, 0);
    }
}

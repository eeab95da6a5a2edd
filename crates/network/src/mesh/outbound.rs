//! The connection that this node dials to a peer: messages go out on it, acknowledgements come back.

use core::time::Duration;
use std::{io, sync::Arc};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split},
    net::TcpStream,
    sync::watch,
    time::{Instant, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{
    frame::{self, CONTROL_FRAME_BYTES, Frame, FrameError, VERSION},
    link::{Backoff, Link, in_words},
    queue::BadAcknowledgement,
    stopped,
};
use crate::{
    places,
    tls::{self, UnpinnedCertificate},
};

/// How many bytes TLS may hold before they are written: one batch leaves in one write.
pub(super) const TLS_BUFFER_BYTES: usize = 512 * 1024;

/// Why a dialled connection did not come up or ended.
#[derive(Debug, thiserror::Error)]
enum OutboundError {
    #[error("cannot connect: {}", in_words(.0))]
    Connect(io::Error),
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    #[error("TLS handshake failed: {0}")]
    Handshake(io::Error),
    #[error("another node answers at its address: {0}; give all nodes the same group file")]
    WrongPeer(UnpinnedCertificate),
    #[error(
        "it closed the connection before greeting ({}); it may not have this node's certificate in its group file",
        in_words(.0)
    )]
    NotWelcome(io::Error),
    #[error("it speaks version {0} of the peer protocol, this node {VERSION}; run the same release on both")]
    Version(u16),
    #[error("it broke the protocol: {0}")]
    Frame(#[from] FrameError),
    #[error("it broke the protocol: {0}")]
    Acknowledgement(#[from] BadAcknowledgement),
    #[error("it broke the protocol: unexpected frame")]
    Unexpected,
    #[error("connection lost: {}", in_words(.0))]
    Lost(#[from] io::Error),
    #[error("no sign of life for {0:?}")]
    Silent(Duration),
}

struct Connection {
    reader: ReadHalf<TlsStream<TcpStream>>,
    writer: WriteHalf<TlsStream<TcpStream>>,
    /// Received and not yet parsed.
    received: BytesMut,
}

/// Keeps a connection to the peer until the mesh stops, or the peer is one no more.
pub(super) async fn run(link: Arc<Link>, mut stop: watch::Receiver<bool>) {
    let mut target = link.target.subscribe();
    loop {
        let Some(now) = target.borrow_and_update().clone() else { return };
        let tls = TlsConnector::from(now.tls);
        tokio::select! {
            () = stopped(&mut stop) => return,
            changed = target.changed() => match changed {
                Ok(()) => link.disconnected("the group has changed what it knows of the peer".to_owned()),
                Err(_) => return,
            },
            () = keep_connected(&link, &tls) => {}
        }
    }
}

async fn keep_connected(link: &Link, tls: &TlsConnector) {
    let mut backoff = Backoff::new(&link.limits);
    loop {
        let attempt = timeout(link.limits.handshake_timeout, connect(link, tls)).await;
        let error = match attempt.unwrap_or(Err(OutboundError::Timeout(link.limits.handshake_timeout))) {
            Ok(connection) => {
                link.connected();
                let since = Instant::now();
                let ended = exchange(link, connection).await;
                backoff.stood(since.elapsed(), &link.came);
                ended
            }
            Err(error) => {
                link.counters.connect_failures.increment();
                error
            }
        };
        link.disconnected(error.to_string());
        backoff.wait(&link.came).await;
    }
}

async fn connect(link: &Link, tls: &TlsConnector) -> Result<Connection, OutboundError> {
    let addresses = link.resolve().await.map_err(OutboundError::Connect)?;
    let tcp = places::connect(&addresses).await.map_err(OutboundError::Connect)?;
    tcp.set_nodelay(true).map_err(OutboundError::Connect)?;
    let mut stream = tls.connect(tls::server_name(), tcp).await.map_err(explain)?;
    stream.get_mut().1.set_buffer_limit(Some(TLS_BUFFER_BYTES));
    let (reader, writer) = split(stream);
    let mut connection = Connection { reader, writer, received: BytesMut::new() };
    let hello = Frame::Hello { version: VERSION, boot: link.boot, oldest: link.queue.oldest() };
    write(&mut connection.writer, &hello.encode()).await.map_err(OutboundError::NotWelcome)?;
    match read_frame(&mut connection.reader, &mut connection.received).await {
        Ok(Frame::Welcome { version: VERSION, delivered }) => link.queue.resume(delivered)?,
        Ok(Frame::Welcome { version, .. }) => return Err(OutboundError::Version(version)),
        Ok(_) => return Err(OutboundError::Unexpected),
        Err(OutboundError::Lost(error)) => return Err(OutboundError::NotWelcome(error)),
        Err(error) => return Err(error),
    }
    Ok(connection)
}

fn explain(error: io::Error) -> OutboundError {
    UnpinnedCertificate::cause(&error).map_or(OutboundError::Handshake(error), OutboundError::WrongPeer)
}

/// Runs both directions at once, so that a peer that reads slowly can still show that it is alive.
async fn exchange(link: &Link, connection: Connection) -> OutboundError {
    let Connection { mut reader, mut writer, mut received } = connection;
    let ended = tokio::select! {
        ended = write_messages(link, &mut writer) => ended,
        ended = read_acknowledgements(link, &mut reader, &mut received) => ended,
    };
    match ended {
        Err(error) => error,
        Ok(never) => match never {},
    }
}

async fn write_messages(
    link: &Link,
    writer: &mut WriteHalf<TlsStream<TcpStream>>,
) -> Result<core::convert::Infallible, OutboundError> {
    let mut buffer = BytesMut::new();
    loop {
        buffer.clear();
        if let Some(batch) = link.queue.fill(&mut buffer) {
            link.counters.frames_sent.add(batch.fresh);
            link.counters.bytes_sent.add(batch.fresh_bytes);
            link.counters.frames_resent.add(batch.resent);
            if let Some(large) = &batch.large {
                writer.write_all(&buffer).await?;
                write(writer, large).await?;
            } else {
                write(writer, &buffer).await?;
            }
        } else if timeout(link.silence.keepalive(), link.queue.pushed()).await.is_err() {
            write(writer, &Frame::Ping.encode()).await?;
        } else {
            // Other tasks that are ready push their messages first, which then leave in the same write.
            tokio::task::yield_now().await;
        }
    }
}

async fn read_acknowledgements(
    link: &Link,
    reader: &mut ReadHalf<TlsStream<TcpStream>>,
    received: &mut BytesMut,
) -> Result<core::convert::Infallible, OutboundError> {
    let silence = link.silence.dead_after();
    loop {
        let frame = timeout(silence, read_frame(reader, received)).await.map_err(|_| OutboundError::Silent(silence))?;
        match frame? {
            Frame::Ack { delivered } => link.queue.acknowledge(delivered)?,
            _ => return Err(OutboundError::Unexpected),
        }
    }
}

async fn read_frame(
    reader: &mut ReadHalf<TlsStream<TcpStream>>,
    received: &mut BytesMut,
) -> Result<Frame, OutboundError> {
    loop {
        if let Some(frame) = frame::take(received, CONTROL_FRAME_BYTES)? {
            return Ok(frame);
        }
        received.reserve(CONTROL_FRAME_BYTES);
        if reader.read_buf(received).await? == 0 {
            return Err(OutboundError::Lost(io::ErrorKind::UnexpectedEof.into()));
        }
    }
}

async fn write(writer: &mut WriteHalf<TlsStream<TcpStream>>, bytes: &[u8]) -> io::Result<()> {
    writer.write_all(bytes).await?;
    writer.flush().await
}

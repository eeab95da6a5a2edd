//! The connection that a peer dialled to this node: messages come in on it, acknowledgements go back.

use core::{pin::pin, time::Duration};
use std::{io, sync::Arc};

use bytes::{Bytes, BytesMut};
use theta_names::Channel;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf},
    net::TcpStream,
    sync::{OwnedSemaphorePermit, mpsc},
    time::{Instant, timeout},
};
use tokio_rustls::server::TlsStream;
use tracing::debug;

use super::{
    frame::{self, BootId, CONTROL_FRAME_BYTES, DATA_HEADER_BYTES, Frame, FrameError, VERSION},
    link::{Link, Received},
};
use crate::{Inbound, doorway::Occasionally};

/// An acknowledgement is due after this many messages.
const ACK_MESSAGES: u64 = 64;
/// An acknowledgement is due after this many bytes.
const ACK_BYTES: usize = 1024 * 1024;
/// An acknowledgement is due when nothing has come for this long.
const ACK_IDLE: Duration = Duration::from_millis(5);

/// The room made for each read, in bytes. Messages are views into it.
const READ_BYTES: usize = 64 * 1024;

/// Messages above this size, in bytes, take room of the peer's for large messages.
const LARGE_BYTES: usize = 64 * 1024;

/// Why an accepted connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum InboundError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("the first frame is not a greeting")]
    NoGreeting,
    #[error("it speaks version {0} of the peer protocol, this node {VERSION}; run the same release on both")]
    Version(u16),
    #[error("it resumes at message {oldest}, but only {delivered} were delivered")]
    Gap { oldest: u64, delivered: u64 },
    #[error("message {got} came where {expected} was due")]
    OutOfOrder { expected: u64, got: u64 },
    #[error("unexpected frame")]
    Unexpected,
    #[error("no sign of life for {0:?}")]
    Silent(Duration),
    #[error("a newer connection from the same node took over, or its certificate is not the node's any more")]
    Replaced,
    #[error("the application has stopped reading")]
    Stopped,
}

impl InboundError {
    /// Whether the peer's program is to blame, not the network.
    pub(super) const fn is_violation(&self) -> bool {
        use InboundError::{Frame, Gap, Io, NoGreeting, OutOfOrder, Replaced, Silent, Stopped, Unexpected, Version};
        match self {
            Frame(_) | NoGreeting | Version(_) | Gap { .. } | OutOfOrder { .. } | Unexpected => true,
            Io(_) | Silent(_) | Replaced | Stopped => false,
        }
    }
}

/// A peer's connection whose greeting was read.
pub(super) struct Greeted {
    pub(super) reader: ReadHalf<TlsStream<TcpStream>>,
    pub(super) writer: WriteHalf<TlsStream<TcpStream>>,
    received: BytesMut,
    boot: BootId,
    oldest: u64,
}

/// Reads the greeting.
pub(super) async fn greet(
    mut reader: ReadHalf<TlsStream<TcpStream>>,
    mut writer: WriteHalf<TlsStream<TcpStream>>,
) -> Result<Greeted, InboundError> {
    let mut received = BytesMut::new();
    let frame = loop {
        if let Some(frame) = frame::take(&mut received, CONTROL_FRAME_BYTES)? {
            break frame;
        }
        read(&mut reader, &mut received).await?;
    };
    match frame {
        Frame::Hello { version: VERSION, boot, oldest } => Ok(Greeted { reader, writer, received, boot, oldest }),
        Frame::Hello { version, .. } => {
            // The answer lets the other side say which versions do not fit.
            let _ = write(&mut writer, &Frame::Welcome { version: VERSION, delivered: 0 }).await;
            Err(InboundError::Version(version))
        }
        _ => Err(InboundError::NoGreeting),
    }
}

/// Delivers the connection's messages until it ends or a newer one takes over.
///
/// Whether the connection's certificate is still the peer's, `is_pinned` says: it is asked after this connection has its number, so that a
/// change of pins is either seen here or ends it.
pub(super) async fn receive(
    link: &Link,
    greeted: Greeted,
    inbox: &mpsc::Sender<Inbound>,
    is_pinned: impl FnOnce() -> bool,
) -> InboundError {
    let mut number = 0;
    link.newest.send_modify(|newest| {
        *newest = newest.saturating_add(1);
        number = *newest;
    });
    let mut newest = link.newest.subscribe();
    if !is_pinned() {
        return InboundError::Replaced;
    }
    tokio::select! {
        _ = newest.wait_for(|newest| *newest != number) => InboundError::Replaced,
        ended = receive_alone(link, greeted, inbox) => match ended {
            Err(error) => error,
            Ok(never) => match never {},
        },
    }
}

async fn receive_alone(
    link: &Link,
    greeted: Greeted,
    inbox: &mpsc::Sender<Inbound>,
) -> Result<core::convert::Infallible, InboundError> {
    let Greeted { mut reader, writer, received: mut unparsed, boot, oldest } = greeted;
    // Waits for the connection that this one replaces: only one delivers at a time, so no message is delivered twice.
    let mut received = link.received.lock().await;
    resume(&mut received, boot, oldest)?;
    let welcome = Frame::Welcome { version: VERSION, delivered: received.delivered };
    let mut delivery = Delivery {
        link,
        inbox,
        received: &mut received,
        writer,
        since_ack: 0,
        bytes_since_ack: 0,
        last_written: Instant::now(),
    };
    delivery.write(&welcome).await?;
    link.arrivals.info(format_args!("peer {} connected", link.id));
    let limit = link.limits.message_bytes.saturating_add(DATA_HEADER_BYTES);
    let mut silence = Duration::ZERO;
    loop {
        while let Some(frame) = frame::take(&mut unparsed, limit)? {
            match frame {
                Frame::Data { sequence, message } => delivery.deliver(sequence, message).await?,
                Frame::Ping => {}
                _ => return Err(InboundError::Unexpected),
            }
        }
        delivery.acknowledge_if_due().await?;
        let patience = if delivery.since_ack > 0 { ACK_IDLE } else { link.silence.keepalive() };
        if let Ok(result) = timeout(patience, read(&mut reader, &mut unparsed)).await {
            result?;
            silence = Duration::ZERO;
        } else {
            delivery.acknowledge().await?;
            // Only time spent on reading counts: a peer is not silent while this node is busy.
            silence = silence.saturating_add(patience);
            if silence > link.silence.dead_after() {
                return Err(InboundError::Silent(link.silence.dead_after()));
            }
        }
    }
}

/// Decides where the peer continues: after what was delivered from this boot id, or where a new one begins.
fn resume(received: &mut Received, boot: BootId, oldest: u64) -> Result<(), InboundError> {
    let before = oldest.checked_sub(1).ok_or(InboundError::Gap { oldest, delivered: 0 })?;
    if received.boot != boot {
        *received = Received { boot, delivered: before };
    }
    if before > received.delivered {
        return Err(InboundError::Gap { oldest, delivered: received.delivered });
    }
    Ok(())
}

struct Delivery<'a> {
    link: &'a Link,
    inbox: &'a mpsc::Sender<Inbound>,
    received: &'a mut Received,
    writer: WriteHalf<TlsStream<TcpStream>>,
    /// Messages delivered and not yet acknowledged.
    since_ack: u64,
    bytes_since_ack: usize,
    last_written: Instant,
}

impl Delivery<'_> {
    async fn deliver(&mut self, sequence: u64, message: Bytes) -> Result<(), InboundError> {
        let expected = self.received.delivered.saturating_add(1);
        if sequence != expected {
            return Err(InboundError::OutOfOrder { expected, got: sequence });
        }
        let length = message.len();
        let bytes = if length > LARGE_BYTES { self.charge(message).await? } else { message };
        let inbox = self.inbox;
        let place = match inbox.try_reserve() {
            Ok(place) => place,
            Err(mpsc::error::TrySendError::Full(())) => {
                self.patiently(inbox.reserve()).await?.map_err(|_| InboundError::Stopped)?
            }
            Err(mpsc::error::TrySendError::Closed(())) => return Err(InboundError::Stopped),
        };
        // From here to the end nothing waits, so a connection that is replaced has counted all that it delivered.
        place.send(Inbound { from: self.link.id, channel: Channel::Private, bytes });
        self.received.delivered = sequence;
        self.since_ack = self.since_ack.saturating_add(1);
        self.bytes_since_ack = self.bytes_since_ack.saturating_add(length);
        self.link.counters.frames_received.increment();
        self.link.counters.bytes_received.add(length);
        Ok(())
    }

    /// Takes room for a large message; it is given back when the application drops the message.
    async fn charge(&mut self, message: Bytes) -> Result<Bytes, InboundError> {
        let room = message.len().min(self.link.limits.inbound_large_bytes);
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.link.large_bytes).acquire_many_owned(room);
        let permit = self.patiently(permit).await?.map_err(|_| InboundError::Stopped)?;
        Ok(Bytes::from_owner(Charged { message, _permit: permit }))
    }

    /// Waits for the application, and meanwhile shows the peer that this node is alive.
    async fn patiently<F: Future>(&mut self, event: F) -> Result<F::Output, InboundError> {
        let mut event = pin!(event);
        loop {
            let patience = if self.since_ack > 0 { ACK_IDLE } else { self.link.silence.keepalive() };
            match timeout(patience, &mut event).await {
                Ok(output) => return Ok(output),
                Err(_) => self.acknowledge().await?,
            }
        }
    }

    async fn acknowledge_if_due(&mut self) -> Result<(), InboundError> {
        let is_due = self.since_ack >= ACK_MESSAGES
            || self.bytes_since_ack >= ACK_BYTES
            || self.last_written.elapsed() >= self.link.silence.keepalive();
        if is_due { self.acknowledge().await } else { Ok(()) }
    }

    async fn acknowledge(&mut self) -> Result<(), InboundError> {
        self.since_ack = 0;
        self.bytes_since_ack = 0;
        let delivered = self.received.delivered;
        self.write(&Frame::Ack { delivered }).await
    }

    async fn write(&mut self, frame: &Frame) -> Result<(), InboundError> {
        self.last_written = Instant::now();
        Ok(write(&mut self.writer, frame).await?)
    }
}

/// A large message and the room that it takes.
struct Charged {
    message: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

async fn read(reader: &mut ReadHalf<TlsStream<TcpStream>>, received: &mut BytesMut) -> io::Result<()> {
    // A new buffer is begun when the old one is nearly full, but not within a large frame, which has its room already.
    if received.capacity().saturating_sub(received.len()) < READ_BYTES / 4 && received.len() < READ_BYTES {
        received.reserve(READ_BYTES);
    }
    match reader.read_buf(received).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

async fn write(writer: &mut WriteHalf<TlsStream<TcpStream>>, frame: &Frame) -> io::Result<()> {
    writer.write_all(&frame.encode()).await?;
    writer.flush().await
}

/// Logs the end of a connection if it is worth a line. Repeated violations of a peer do not fill the log.
pub(super) fn log_end(link: &Link, reason: &InboundError, warnings: &Occasionally) {
    if reason.is_violation() {
        link.counters.protocol_errors.increment();
        warnings.warn(format_args!("peer {} broke the protocol; its connection is closed: {reason}", link.id));
    } else {
        debug!(peer = %link.id, %reason, "connection from peer ended");
    }
}

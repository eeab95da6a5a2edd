//! Connections from clients: mutually authenticated before anything else is read.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use theta_network::{
    Fingerprint,
    tls::{Admits, UnpinnedCertificate, peer_fingerprint},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tonic::transport::server::Connected;

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The certificate that it proved to own; `None` if it showed none, and its requests must say who asks.
    pub(crate) certificate: Option<Fingerprint>,
}

/// An authenticated connection; its place among the connections is free again when it is dropped.
pub(crate) struct ApiStream {
    tls: TlsStream<TcpStream>,
    caller: Caller,
    _place: OwnedSemaphorePermit,
}

/// The bounds on connections.
pub(crate) struct ConnectionLimits {
    pub(crate) connections: usize,
    pub(crate) handshake: Duration,
}

/// Accepts connections until `listener` fails for good or the receiver is dropped. Each handshake has its own task, so a
/// slow client delays nobody.
pub(crate) async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    door: Arc<dyn Admits>,
    limits: ConnectionLimits,
    accepted: mpsc::Sender<io::Result<ApiStream>>,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let connection = tokio::select! {
            connection = listener.accept() => connection,
            () = accepted.closed() => return,
        };
        let (tcp, address) = match connection {
            Ok(connection) => connection,
            Err(error) => {
                // Out of file descriptors, most likely: existing connections go on, new ones wait for one to end.
                tracing::warn!(%error, "cannot accept an API connection");
                time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tracing::warn!(%address, limit = limits.connections, "API connection refused: the limit is reached");
            continue;
        };
        let (acceptor, door, accepted) = (acceptor.clone(), Arc::clone(&door), accepted.clone());
        let patience = limits.handshake;
        tokio::spawn(async move {
            match time::timeout(patience, handshake(tcp, &acceptor, &*door)).await {
                Ok(Ok((tls, caller))) => {
                    tracing::debug!(%address, certificate = ?caller.certificate, "API connection");
                    // Fails only when the server has stopped; then the connection is dropped.
                    let _ = accepted.send(Ok(ApiStream { tls, caller, _place: place })).await;
                }
                Ok(Err(error)) => tracing::info!(%address, reason = in_words(&error), "API connection refused"),
                Err(_) => tracing::info!(%address, "API connection refused: no TLS handshake in time"),
            }
        });
    }
}

/// Why a handshake failed: a certificate that is not pinned is told by its fingerprint.
fn in_words(error: &io::Error) -> String {
    UnpinnedCertificate::cause(error).map_or_else(|| error.to_string(), |unpinned| unpinned.to_string())
}

async fn handshake(
    tcp: TcpStream,
    acceptor: &TlsAcceptor,
    door: &dyn Admits,
) -> io::Result<(TlsStream<TcpStream>, Caller)> {
    tcp.set_nodelay(true)?;
    let tls = acceptor.accept(tcp).await?;
    let certificate = peer_fingerprint(tls.get_ref().1);
    // The handshake has already refused whom the door does not admit; this is its second lock.
    if certificate.as_ref().map_or_else(|| door.admits_anonymous(), |certificate| door.admits(certificate)) {
        Ok((tls, Caller { certificate }))
    } else {
        Err(io::Error::other("the certificate is not that of a client"))
    }
}

impl Connected for ApiStream {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller.clone()
    }
}

impl AsyncRead for ApiStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_read(context, buffer)
    }
}

impl AsyncWrite for ApiStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tls).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tls).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.tls.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_shutdown(context)
    }
}

//! Accepts connections from clients; nothing else is read before TLS has authenticated them.

use std::{
    future::Future,
    io,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use theta_network::{
    Fingerprint,
    doorway::{self, Doorway, Handshake, Occasionally},
    tls::{Admits, UnpinnedCertificate, peer_fingerprint},
};
use theta_statements::Name;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tonic::transport::server::Connected;

use super::{
    connections::{Connection, Connections, Listed},
    proofs::Proofs,
};

/// The caller at the other end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The certificate whose key it has proven to own; `None` if it showed none, so that its requests have to identify it.
    pub(crate) certificate: Option<Fingerprint>,
    pub(crate) connection: Arc<Connection>,
    pub(super) proofs: Arc<Proofs>,
}

/// An authenticated connection. Dropping it releases its place among the connections.
pub(crate) struct ApiStream {
    tls: TlsStream<TcpStream>,
    caller: Caller,
    listed: Listed,
    /// Whether the connection has to end.
    is_over: bool,
}

/// Decides which certificates are accepted, and which clients these belong to.
pub(crate) trait Entrance: Admits {
    /// The client that the policy knows by this certificate.
    fn client(&self, certificate: &Fingerprint) -> Option<Name>;
}

/// The bounds on connections.
pub(crate) struct ConnectionLimits {
    pub(crate) doorway: Arc<Doorway>,
    pub(crate) connections: Arc<Connections>,
}

/// What every handshake needs.
struct Reception {
    acceptor: TlsAcceptor,
    door: Arc<dyn Entrance>,
    limits: ConnectionLimits,
    accepted: mpsc::Sender<io::Result<ApiStream>>,
    warnings: Occasionally,
}

/// Accepts connections until `listener` fails for good or the receiver is dropped. Each handshake has its own task, so a
/// slow client delays nobody.
pub(crate) async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    door: Arc<dyn Entrance>,
    limits: ConnectionLimits,
    accepted: mpsc::Sender<io::Result<ApiStream>>,
) {
    let reception = Arc::new(Reception { acceptor, door, limits, accepted, warnings: Occasionally::default() });
    let full = Occasionally::every(Duration::from_secs(60));
    loop {
        let connection = tokio::select! {
            connection = listener.accept() => connection,
            () = reception.accepted.closed() => return,
        };
        match connection {
            Ok((tcp, from)) => {
                let address = from.ip().to_canonical();
                // In the order of their arrival, because the oldest is closed first. Clients may come from any address.
                let handshake = reception.limits.doorway.enter(address, false);
                tokio::spawn(receive(Arc::clone(&reception), handshake, tcp, address));
            }
            Err(error) => {
                // Those who wait to come in wait in the system: one whose handshake is not done makes room, or a stranger's connection, or
                // an idle one.
                let limits = &reception.limits;
                let gave_way = doorway::is_out_of_descriptors(&error)
                    && (limits.doorway.give_way() || limits.connections.give_way());
                full.warn(format_args!("cannot accept an API connection: {error}"));
                time::sleep(doorway::pause(gave_way)).await;
            }
        }
    }
}

async fn receive(reception: Arc<Reception>, handshake: Handshake, tcp: TcpStream, address: IpAddr) {
    match admit(&reception, handshake, tcp, address).await {
        Ok(stream) => {
            tracing::debug!(%address, certificate = ?stream.caller.certificate, "API connection");
            // Fails only when the server has stopped; then the connection is dropped.
            let _ = reception.accepted.send(Ok(stream)).await;
        }
        // All strangers together cause one line a second.
        Err(reason) => {
            reception.warnings.warn(format_args!("API connection refused from {address}: {reason}"));
        }
    }
}

async fn admit(
    reception: &Reception,
    handshake: Handshake,
    tcp: TcpStream,
    address: IpAddr,
) -> Result<ApiStream, String> {
    let door = &*reception.door;
    let secured = handshake.run(tcp, |tcp| secure(tcp, &reception.acceptor, door)).await;
    let (tls, certificate) = secured.map_err(|ended| ended.to_string())?.map_err(|error| in_words(&error))?;
    let client = certificate.as_ref().and_then(|certificate| door.client(certificate));
    let listed = reception.limits.connections.enter(client, address);
    let listed = listed.map_err(|_| "the node has as many connections as it will".to_owned())?;
    let caller = Caller { certificate, connection: Arc::clone(&listed.connection), proofs: Arc::default() };
    Ok(ApiStream { tls, caller, listed, is_over: false })
}

/// The reason of a failed handshake, with the fingerprint of a certificate that is not pinned.
fn in_words(error: &io::Error) -> String {
    UnpinnedCertificate::cause(error).map_or_else(|| error.to_string(), |unpinned| unpinned.to_string())
}

async fn secure(
    tcp: TcpStream,
    acceptor: &TlsAcceptor,
    door: &dyn Entrance,
) -> io::Result<(TlsStream<TcpStream>, Option<Fingerprint>)> {
    tcp.set_nodelay(true)?;
    let tls = acceptor.accept(tcp).await?;
    let certificate = peer_fingerprint(tls.get_ref().1);
    // The handshake has already refused unknown certificates; this checks a second time.
    if certificate.as_ref().map_or_else(|| door.admits_anonymous(), |certificate| door.admits(certificate)) {
        Ok((tls, certificate))
    } else {
        Err(io::Error::other("the certificate is not that of a client"))
    }
}

impl ApiStream {
    /// An error if the connection has to end.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        self.is_over = self.is_over || Pin::new(&mut self.listed.ended).poll(context).is_ready();
        if self.is_over { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
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
        self.check(context)?;
        Pin::new(&mut self.tls).poll_read(context, buffer)
    }
}

impl AsyncWrite for ApiStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.tls).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.tls).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.tls.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.tls).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.tls).poll_shutdown(context)
    }
}

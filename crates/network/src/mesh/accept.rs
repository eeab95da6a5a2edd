//! Takes connections from peers.

use core::time::Duration;
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::split,
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc, watch},
    time::{Instant, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tracing::warn;

use super::{
    counters::MeshCounters,
    inbound::{self, Greeted, InboundError},
    link::Link,
    stopped,
};
use crate::{
    Inbound,
    tls::{Pinned, Pins, UnpinnedCertificate},
};

/// What accepting needs to know.
pub(super) struct Reception {
    pub(super) tls: TlsAcceptor,
    pub(super) pins: Pins,
    /// Ascending by peer.
    pub(super) links: Vec<Arc<Link>>,
    pub(super) counters: Arc<MeshCounters>,
    pub(super) inbox: mpsc::Sender<Inbound>,
    pub(super) handshake_timeout: Duration,
    pub(super) handshakes: Semaphore,
    pub(super) warnings: Occasionally,
}

/// Why a connection is not a peer's.
#[derive(Debug, thiserror::Error)]
enum RefusedConnection {
    #[error("{0}; if it is a node of this group, give all nodes the same group file")]
    Unpinned(UnpinnedCertificate),
    #[error("TLS handshake failed: {0}")]
    Handshake(io::Error),
    #[error("its certificate is not a peer's")]
    NotAPeer,
    #[error("no greeting within {0:?}")]
    Timeout(Duration),
    #[error("too many connections are in the handshake")]
    Shed,
    #[error("TCP: {0}")]
    Tcp(io::Error),
}

/// Accepts connections until the mesh stops.
pub(super) async fn run(listener: TcpListener, reception: Arc<Reception>, mut stop: watch::Receiver<bool>) {
    loop {
        let accepted = tokio::select! {
            () = stopped(&mut stop) => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((tcp, from)) => {
                let (reception, mut stop) = (Arc::clone(&reception), stop.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = stopped(&mut stop) => {}
                        () = serve(&reception, tcp, from) => {}
                    }
                });
            }
            Err(error) => {
                // Typically out of file descriptors, which passes; without the pause this would spin.
                reception.warnings.warn(format_args!("cannot accept connections from peers: {error}"));
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve(reception: &Reception, tcp: TcpStream, from: SocketAddr) {
    let (link, greeted) = match admit(reception, tcp).await {
        Ok(admitted) => admitted,
        Err(refused) => {
            reception.counters.handshake_failures.increment();
            if matches!(refused, RefusedConnection::Shed) {
                reception.counters.handshakes_shed.increment();
            }
            reception.warnings.warn(format_args!("refused a connection from {from}: {refused}"));
            return;
        }
    };
    let ended = match greeted {
        Ok(greeted) => inbound::receive(link, greeted, &reception.inbox).await,
        Err(error) => error,
    };
    inbound::log_end(link, &ended);
}

/// Finds out who it is. The inner result is of a connection that is a peer's beyond doubt.
async fn admit(
    reception: &Reception,
    tcp: TcpStream,
) -> Result<(&Link, Result<Greeted, InboundError>), RefusedConnection> {
    let Ok(_place) = reception.handshakes.try_acquire() else { return Err(RefusedConnection::Shed) };
    timeout(reception.handshake_timeout, async {
        tcp.set_nodelay(true).map_err(RefusedConnection::Tcp)?;
        let stream = reception.tls.accept(tcp).await.map_err(explain)?;
        let Some(Pinned::Node(peer)) = reception.pins.peer(stream.get_ref().1) else {
            return Err(RefusedConnection::NotAPeer);
        };
        let link = reception.links.binary_search_by_key(peer, |link| link.peer.id).ok();
        let link = link.and_then(|position| reception.links.get(position)).ok_or(RefusedConnection::NotAPeer)?;
        let (reader, writer) = split(stream);
        Ok((&**link, inbound::greet(reader, writer).await))
    })
    .await
    .unwrap_or(Err(RefusedConnection::Timeout(reception.handshake_timeout)))
}

fn explain(error: io::Error) -> RefusedConnection {
    UnpinnedCertificate::cause(&error).map_or(RefusedConnection::Handshake(error), RefusedConnection::Unpinned)
}

/// Warnings that strangers can provoke: at most one a second, so that they cannot flood the log.
#[derive(Debug, Default)]
pub(super) struct Occasionally(Mutex<(Option<Instant>, u64)>);

impl Occasionally {
    fn warn(&self, message: core::fmt::Arguments<'_>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, suppressed) = &mut *state;
        if last.is_some_and(|last| last.elapsed() < Duration::from_secs(1)) {
            *suppressed = suppressed.saturating_add(1);
        } else {
            warn!(suppressed = *suppressed, "{message}");
            *state = (Some(Instant::now()), 0);
        }
    }
}

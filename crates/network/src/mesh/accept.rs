//! Accepts connections from peers.

use core::time::Duration;
use std::{io, net::SocketAddr, sync::Arc};

use tokio::{
    io::split,
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    time::sleep,
};
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use super::{
    counters::MeshCounters,
    inbound::{self, Greeted, InboundError},
    link::Link,
    links::Links,
    readers::Readers,
    stopped,
};
use crate::{
    Fingerprint, Inbound,
    archive::{self, Archive},
    doorway::{self, Doorway, Ended, Handshake, Occasionally},
    tls::{self, UnpinnedCertificate},
};

/// What accepting needs.
pub(super) struct Reception {
    pub(super) tls: TlsAcceptor,
    pub(super) links: Arc<Links>,
    pub(super) counters: Arc<MeshCounters>,
    pub(super) inbox: mpsc::Sender<Inbound>,
    pub(super) doorway: Arc<Doorway>,
    pub(super) warnings: Occasionally,
    /// What may be read at this address.
    pub(super) archive: Option<Arc<dyn Archive>>,
    pub(super) readers: Readers,
}

/// What a connection is that was let in.
enum Admitted {
    /// A peer's, who has greeted or failed to.
    Peer(Arc<Link>, Fingerprint, Result<Greeted, InboundError>),
    /// That of somebody who has read, or tried to.
    Reader(io::Result<()>),
}

/// Why a connection is not a peer's.
#[derive(Debug, thiserror::Error)]
enum RefusedConnection {
    #[error("{0}; if it is a node of this group, give all nodes the same group file")]
    Unpinned(UnpinnedCertificate),
    #[error("TLS handshake failed: {0}")]
    Handshake(io::Error),
    #[error("its certificate is not a peer's, or not any more")]
    NotAPeer,
    #[error("it reads already, or too many do at once")]
    Crowd,
    #[error("{0}")]
    Ended(#[from] Ended),
    #[error("TCP: {0}")]
    Tcp(io::Error),
}

/// Accepts connections until the mesh stops.
pub(super) async fn run(listener: TcpListener, reception: Arc<Reception>, mut stop: watch::Receiver<bool>) {
    let full = Occasionally::every(Duration::from_secs(60));
    loop {
        let accepted = tokio::select! {
            () = stopped(&mut stop) => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((tcp, from)) => {
                // In the order in which they came, since the oldest is ended first.
                let address = from.ip().to_canonical();
                let familiar = reception.links.present().links.iter().any(|link| link.is_at(address));
                let handshake = reception.doorway.enter(address, familiar);
                let (reception, mut stop) = (Arc::clone(&reception), stop.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = stopped(&mut stop) => {}
                        () = serve(&reception, handshake, tcp, from) => {}
                    }
                });
            }
            Err(error) => {
                // Those who wait to come in wait in the system: one of those who are not in yet makes room, as when all places are taken.
                let gave_way = doorway::is_out_of_descriptors(&error) && reception.doorway.give_way();
                full.warn(format_args!("cannot accept connections from peers: {error}"));
                sleep(doorway::pause(gave_way)).await;
            }
        }
    }
}

async fn serve(reception: &Reception, handshake: Handshake, tcp: TcpStream, from: SocketAddr) {
    let (link, certificate, greeted) = match admit(reception, handshake, tcp).await {
        Ok(Admitted::Peer(link, certificate, greeted)) => (link, certificate, greeted),
        Ok(Admitted::Reader(read)) => {
            debug!(%from, ok = read.is_ok(), "somebody read at the peer address");
            return;
        }
        Err(refused) => {
            reception.counters.handshake_failures.increment();
            if matches!(refused, RefusedConnection::Ended(Ended::Shed)) {
                reception.counters.handshakes_shed.increment();
            }
            reception.warnings.warn(format_args!("refused a connection from {from}: {refused}"));
            return;
        }
    };
    let ended = match greeted {
        Ok(greeted) => {
            link.came.notify_one();
            let is_pinned =
                || reception.links.present().link_of(&certificate).is_some_and(|now| Arc::ptr_eq(now, &link));
            inbound::receive(&link, greeted, &reception.inbox, is_pinned).await
        }
        Err(error) => error,
    };
    inbound::log_end(&link, &ended, &reception.warnings);
}

/// Runs the handshake. The inner result belongs to a connection that is proven to be a peer's.
async fn admit(reception: &Reception, handshake: Handshake, tcp: TcpStream) -> Result<Admitted, RefusedConnection> {
    let admission = |tcp: TcpStream| async {
        tcp.set_nodelay(true).map_err(RefusedConnection::Tcp)?;
        let stream = reception.tls.accept(tcp).await.map_err(explain)?;
        let certificate = tls::peer_fingerprint(stream.get_ref().1).ok_or(RefusedConnection::NotAPeer)?;
        let link = reception.links.present().link_of(&certificate).map(Arc::clone);
        if stream.get_ref().1.alpn_protocol() == Some(archive::ALPN) {
            let archive = reception.archive.clone().ok_or(RefusedConnection::NotAPeer)?;
            let turn = reception.readers.enter(certificate, link.is_some()).ok_or(RefusedConnection::Crowd)?;
            return Ok(Admitted::Reader(archive::answer(archive, stream, (certificate, link.is_some()), turn).await));
        }
        let link = link.ok_or(RefusedConnection::NotAPeer)?;
        let (reader, writer) = split(stream);
        Ok(Admitted::Peer(link, certificate, inbound::greet(reader, writer).await))
    };
    handshake.run(tcp, admission).await?
}

fn explain(error: io::Error) -> RefusedConnection {
    UnpinnedCertificate::cause(&error).map_or(RefusedConnection::Handshake(error), RefusedConnection::Unpinned)
}

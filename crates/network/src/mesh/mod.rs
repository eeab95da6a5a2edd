//! The default transport: a full mesh of mutually authenticated TLS 1.3 connections.
//!
//! # Connections
//! Every node dials every peer, and sends messages only on the connections that it dialled; on connections that it
//! accepted it only receives. So two connections join each pair of nodes, one for each direction. There is no dial race
//! to settle, and each direction fails and recovers by itself. Both ends pin the other's certificate ([`crate::tls`]).
//! The certificate, and nothing that the peer sends, determines [`Inbound::from`].
//!
//! # Delivery
//! The messages of each direction are numbered from 1. The receiver acknowledges what it has handed to the application.
//! The sender keeps everything else in a bounded queue, and after a reconnect sends it again from where the receiver
//! stopped. While both processes live, nothing is lost, doubled or reordered, however often connections break. When a
//! process restarts (it greets with another random boot id), messages queued by its predecessor are lost, and messages
//! that its predecessor had received without acknowledging them arrive again.
//!
//! # Bounds
//! A full queue refuses messages ([`SendError::QueueFull`]) and affects only its peer. If an application does not read
//! its [`Inbound`] messages, first the readers stop, then TCP, then the peers' queues fill. See [`MeshLimits`]. A
//! received message is a view into a receive buffer of about 64 KiB: copy a small one to keep it for long.

mod accept;
mod config;
mod counters;
mod frame;
mod inbound;
mod link;
mod outbound;
mod queue;

use std::{collections::HashSet, io, net::SocketAddr, num::NonZeroUsize, sync::Arc};

use bytes::Bytes;
use theta_names::NodeId;
use tokio::sync::{mpsc, watch};
use tokio_rustls::{TlsAcceptor, TlsConnector};

pub use config::{Listen, MeshConfig, MeshError, MeshLimits, MeshPeer};
pub use counters::{Counter, MeshCounters, PeerCounters};

use self::{accept::Reception, link::Link};
use crate::{
    Identity, Inbound, PeerStatus, SendError, Transport,
    doorway::{self, Doorway, DoorwayLimits, Occasionally},
    tls::{self, Pinned, Pins},
};

/// The application protocol that mesh connections agree on, so that no other TLS service is mistaken for a peer.
const ALPN: &[u8] = b"theta-mesh/1";

/// A running mesh. It stops when dropped.
#[derive(Debug)]
pub struct Mesh {
    local: NodeId,
    local_addr: SocketAddr,
    message_bytes: usize,
    /// Ascending by peer.
    links: Vec<Arc<Link>>,
    counters: Arc<MeshCounters>,
    /// Each task holds a receiver until it ends.
    stop: watch::Sender<bool>,
}

impl Mesh {
    /// Listens, starts to connect to all peers, and returns at once. Must be called inside a tokio runtime.
    ///
    /// The receiver yields the messages of all peers; it ends when the mesh is shut down.
    ///
    /// # Errors
    /// [`MeshError`]: nothing was started.
    pub fn start(config: MeshConfig) -> Result<(Arc<Self>, mpsc::Receiver<Inbound>), MeshError> {
        let MeshConfig { local, identity, listen, mut peers, limits } = config;
        tokio::runtime::Handle::try_current().map_err(|_| MeshError::NoRuntime)?;
        limits.check()?;
        peers.sort_unstable_by_key(|peer| peer.id);
        check_members(local, &identity, &peers)?;
        let pins: Pins = peers.iter().map(|peer| (peer.certificate, Pinned::Node(peer.id))).collect();
        let connectors = peers
            .iter()
            .map(|peer| tls::client_config(&identity, peer.certificate, &[ALPN]).map(TlsConnector::from))
            .collect::<Result<Vec<_>, _>>()?;
        let acceptor = TlsAcceptor::from(tls::server_config(&identity, pins.clone(), &[ALPN])?);
        let boot = random_boot_id()?;
        let (listener, local_addr) = bind(listen)?;

        let links: Vec<_> = peers.into_iter().map(|peer| Arc::new(Link::new(peer, boot, &limits))).collect();
        let counters = Arc::new(MeshCounters {
            handshake_failures: Counter::default(),
            handshakes_shed: Counter::default(),
            peers: links.iter().map(|link| Arc::clone(&link.counters)).collect(),
        });
        let handshakes = NonZeroUsize::new(limits.handshakes).unwrap_or(NonZeroUsize::MIN);
        let doorway = Doorway::new(DoorwayLimits::of(handshakes, limits.handshake_timeout));
        let (inbox, inbound) = mpsc::channel(limits.inbound_messages);
        let reception = Arc::new(Reception {
            tls: acceptor,
            pins,
            links: links.clone(),
            counters: Arc::clone(&counters),
            inbox,
            doorway,
            warnings: Occasionally::default(),
        });
        let (stop, stopping) = watch::channel(false);
        for (link, connector) in links.iter().zip(connectors) {
            tokio::spawn(outbound::run(Arc::clone(link), connector, stopping.clone()));
        }
        tokio::spawn(accept::run(listener, reception, stopping));
        let mesh = Self { local, local_addr, message_bytes: limits.message_bytes, links, counters, stop };
        Ok((Arc::new(mesh), inbound))
    }

    /// The address at which this node listens for peers.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The counters of this mesh.
    #[must_use]
    pub const fn counters(&self) -> &Arc<MeshCounters> {
        &self.counters
    }

    /// Closes all connections and the listener; queued messages are lost. Returns at once; may be called again.
    pub fn shutdown(&self) {
        self.stop.send_replace(true);
    }

    /// Waits, after [`Mesh::shutdown`], until the listener and every connection are closed.
    pub async fn stopped(&self) {
        self.stop.closed().await;
    }

    fn link(&self, peer: NodeId) -> Option<&Link> {
        let position = self.links.binary_search_by_key(&peer, |link| link.peer.id).ok()?;
        self.links.get(position).map(|link| &**link)
    }
}

impl Transport for Mesh {
    fn local(&self) -> NodeId {
        self.local
    }

    fn peers(&self) -> Vec<NodeId> {
        self.links.iter().map(|link| link.peer.id).collect()
    }

    fn send(&self, to: NodeId, message: Bytes) -> Result<(), SendError> {
        if message.len() > self.message_bytes {
            return Err(SendError::TooLarge(message.len()));
        }
        if *self.stop.borrow() {
            return Err(SendError::Closed);
        }
        let link = self.link(to).ok_or(SendError::UnknownPeer(to))?;
        link.queue.push(message).map_err(|queue::Full| {
            link.counters.frames_dropped.increment();
            SendError::QueueFull(to)
        })
    }

    fn status(&self) -> Vec<PeerStatus> {
        self.links.iter().map(|link| link.status()).collect()
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// Waits until the mesh stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the mesh was dropped, which also stops it.
    let _ = stop.wait_for(|stopping| *stopping).await;
}

fn check_members(local: NodeId, identity: &Identity, peers: &[MeshPeer]) -> Result<(), MeshError> {
    let (mut ids, mut certificates) = (HashSet::from([local]), HashSet::from([identity.fingerprint()]));
    for peer in peers {
        if !ids.insert(peer.id) {
            return Err(MeshError::DuplicatePeer(peer.id));
        }
        if !certificates.insert(peer.certificate) {
            return Err(MeshError::DuplicateCertificate(peer.id));
        }
    }
    Ok(())
}

fn bind(listen: Listen) -> Result<(tokio::net::TcpListener, SocketAddr), MeshError> {
    let failed = |address: String| move |source| MeshError::Listen { address, source };
    let listener = match listen {
        Listen::Bound(listener) => listener
            .set_nonblocking(true)
            .and_then(|()| tokio::net::TcpListener::from_std(listener))
            .map_err(failed("the given listener".to_owned()))?,
        Listen::Address(address) => doorway::listen(address).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => MeshError::AddressInUse(address),
            _ => failed(address.to_string())(source),
        })?,
    };
    let local = listener.local_addr().map_err(failed("the given listener".to_owned()))?;
    Ok((listener, local))
}

fn random_boot_id() -> Result<frame::BootId, MeshError> {
    let mut boot = frame::BootId::default();
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    random.fill(&mut boot).map_err(rustls::Error::from)?;
    Ok(boot)
}

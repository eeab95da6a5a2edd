//! The default transport: a full mesh of mutually authenticated TLS 1.3 connections.
//!
//! # Connections
//! Every node dials every peer, and sends messages only on the connections that it dialled; on connections that it
//! accepted it only receives. So two connections join each pair of nodes, one for each direction. There is no dial race
//! to settle, and each direction fails and recovers by itself. Both ends pin the other's certificate ([`crate::tls`]).
//! The certificate, and nothing that the peer sends, determines [`Inbound::from`]. A node that dialled a peer in vain tries again after
//! a pause, which grows until a connection has stood for a while, and at once when that peer has connected to it, though not again and again.
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
pub(crate) mod latency;
mod link;
mod links;
mod outbound;
mod queue;
mod readers;

use std::{
    collections::{BTreeMap, HashSet},
    io,
    net::SocketAddr,
    num::NonZeroUsize,
    sync::Arc,
};

use bytes::Bytes;
use theta_names::NodeId;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

pub(crate) use config::Silence;
pub use config::{LONGEST_SILENCE, Listen, MeshConfig, MeshError, MeshLimits, MeshPeer};
pub use counters::{Counter, MeshCounters, PeerCounters};

use self::{
    accept::Reception,
    frame::BootId,
    link::{Link, Target},
    links::Links,
    readers::Readers,
};
use crate::{
    Fingerprint, GroupTransport, Identity, Inbound, PeerState, PeerStatus, Refused, SendError, Stopping, Transport,
    archive::{self, Archive},
    doorway::{self, Doorway, DoorwayLimits, Occasionally},
    tls,
};

/// The application protocol that mesh connections agree on, so that no other TLS service is mistaken for a peer.
const ALPN: &[u8] = b"theta-mesh/1";

/// Whom a node lets in at its peer address: peers, and those who may read.
#[derive(Debug)]
struct Door {
    links: Arc<Links>,
    archive: Option<Arc<dyn Archive>>,
}

impl tls::Admits for Door {
    fn admits(&self, certificate: &Fingerprint) -> bool {
        self.links.admits(certificate) || self.archive.as_ref().is_some_and(|archive| archive.admits(certificate))
    }
}

/// A running mesh. It stops when dropped.
#[derive(Debug)]
pub struct Mesh {
    local: NodeId,
    local_addr: SocketAddr,
    identity: Identity,
    limits: MeshLimits,
    silence: Arc<Silence>,
    links: Arc<Links>,
    counters: Arc<MeshCounters>,
    doorway: Arc<Doorway>,
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
        Self::start_with(config, None)
    }

    /// The same, for a node that lets others read at its peer address, too.
    ///
    /// # Errors
    /// [`MeshError`]: nothing was started.
    pub fn start_with(
        config: MeshConfig,
        archive: Option<Arc<dyn Archive>>,
    ) -> Result<(Arc<Self>, mpsc::Receiver<Inbound>), MeshError> {
        let MeshConfig { local, identity, listen, peers, limits } = config;
        tokio::runtime::Handle::try_current().map_err(|_| MeshError::NoRuntime)?;
        limits.check()?;
        check_members(local, &identity, &peers)?;
        let links = Arc::new(Links::default());
        let admits = Arc::new(Door { links: Arc::clone(&links), archive: archive.clone() });
        let acceptor = TlsAcceptor::from(tls::server_config_admitting(&identity, admits, &[ALPN, archive::ALPN])?);
        let (listener, local_addr) = bind(listen)?;
        let counters = Arc::new(MeshCounters::new(Arc::clone(&links)));
        let handshakes = NonZeroUsize::new(limits.handshakes).unwrap_or(NonZeroUsize::MIN);
        let doorway = Doorway::new(DoorwayLimits::of(handshakes, limits.handshake_timeout));
        let (inbox, inbound) = mpsc::channel(limits.inbound_messages);
        let reception = Arc::new(Reception {
            tls: acceptor,
            links: Arc::clone(&links),
            counters: Arc::clone(&counters),
            inbox,
            doorway: Arc::clone(&doorway),
            warnings: Occasionally::default(),
            archive,
            readers: Readers::default(),
        });
        let (stop, stopping) = watch::channel(false);
        let silence = Arc::new(Silence::new(limits.keepalive, limits.dead_after));
        let mesh = Self { local, local_addr, identity, limits, silence, links, counters, doorway, stop };
        mesh.set_peers(peers)?;
        tokio::spawn(accept::run(listener, reception, stopping));
        Ok((Arc::new(mesh), inbound))
    }

    /// Puts these peers in the place of the present ones, while the mesh runs. Connections to and from all others go on undisturbed. A new
    /// peer is dialled and admitted from now on. One that is left out is neither, and its connections end. Of one whose address or
    /// certificate is another, those end that rest on the one before; messages that wait for it go on waiting, and go to whoever has the
    /// new certificate. A peer may be listed more than once, with another certificate each time: several machines may speak for it, all
    /// hear what it is told, and what any of them says comes from it. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`MeshError`]: nothing has changed.
    pub fn set_peers(&self, peers: Vec<MeshPeer>) -> Result<(), MeshError> {
        tokio::runtime::Handle::try_current().map_err(|_| MeshError::NoRuntime)?;
        check_members(self.local, &self.identity, &peers)?;
        let target = |peer: MeshPeer| {
            let tls = tls::client_config(&self.identity, peer.certificate, &[ALPN])?;
            // Numbers of messages begin anew with each link, and so does what stands for this node.
            Ok((Target { peer, tls }, random_boot_id()?))
        };
        let targets = peers.into_iter().map(target).collect::<Result<Vec<_>, MeshError>>()?;
        self.silence.among(targets.len());
        let boots: BTreeMap<NodeId, BootId> = targets.iter().map(|(target, boot)| (target.peer.id, *boot)).collect();
        let make = |target: Target| {
            let boot = boots.get(&target.peer.id).copied().unwrap_or_default();
            Arc::new(Link::new(target, boot, &self.limits, Arc::clone(&self.silence)))
        };
        for link in self.links.replace(targets.into_iter().map(|(target, _)| target).collect(), make) {
            tokio::spawn(outbound::run(link, self.stop.subscribe()));
        }
        Ok(())
    }

    /// The peers that this node has no connection to, by their machines.
    #[must_use]
    pub fn unreached(&self) -> Vec<MeshPeer> {
        let links = self.links.present();
        let unreached = links.links.iter().filter(|link| link.status().state != PeerState::Connected);
        unreached.filter_map(|link| Some(link.target.borrow().as_ref()?.peer.clone())).collect()
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
}

impl Transport for Mesh {
    fn local(&self) -> NodeId {
        self.local
    }

    fn peers(&self) -> Vec<NodeId> {
        let mut peers: Vec<NodeId> = self.links.present().links.iter().map(|link| link.id).collect();
        peers.dedup();
        peers
    }

    fn send(&self, to: NodeId, message: Bytes) -> Result<(), SendError> {
        if message.len() > self.limits.message_bytes {
            return Err(SendError::TooLarge(message.len()));
        }
        if *self.stop.borrow() {
            return Err(SendError::Closed);
        }
        let present = self.links.present();
        let links = present.links_to(to);
        // While several machines may speak for a peer, all of them hear what it is told.
        let mut refused =
            if links.is_empty() { Err(SendError::UnknownPeer(to)) } else { Err(SendError::QueueFull(to)) };
        for link in links {
            match link.queue.push(message.clone()) {
                Ok(()) => refused = Ok(()),
                Err(queue::Full) => link.counters.frames_dropped.increment(),
            }
        }
        refused
    }

    fn status(&self) -> Vec<PeerStatus> {
        let mut merged: Vec<PeerStatus> = Vec::new();
        for status in self.links.present().links.iter().map(|link| link.status()) {
            match merged.last_mut().filter(|last| last.peer == status.peer) {
                // One machine that is reached is enough.
                Some(last) if last.state == PeerState::Connected => {}
                Some(last) => *last = status,
                None => merged.push(status),
            }
        }
        merged
    }
}

impl GroupTransport for Mesh {
    fn set_peers(&self, peers: Vec<MeshPeer>) -> Result<(), MeshError> {
        Self::set_peers(self, peers)
    }

    fn unreached(&self) -> Vec<MeshPeer> {
        Self::unreached(self)
    }

    fn peer_counters(&self) -> Vec<Arc<PeerCounters>> {
        self.counters.peers()
    }

    fn refused(&self) -> Refused {
        Refused { strangers: self.counters.handshake_failures.get(), shed: self.counters.handshakes_shed.get() }
    }

    fn limit_handshakes(&self, most: NonZeroUsize) {
        self.doorway.resize(most);
    }

    fn shutdown(&self) {
        Self::shutdown(self);
    }

    fn stopped(&self) -> Stopping<'_> {
        Box::pin(Self::stopped(self))
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// Waits until the mesh stops.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the mesh was dropped, which also stops it.
    let _ = stop.wait_for(|stopping| *stopping).await;
}

pub(crate) fn check_members(local: NodeId, identity: &Identity, peers: &[MeshPeer]) -> Result<(), MeshError> {
    let mut certificates = HashSet::from([identity.fingerprint()]);
    for peer in peers {
        if peer.id == local {
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

pub(crate) fn random_boot_id() -> Result<frame::BootId, MeshError> {
    let mut boot = frame::BootId::default();
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    random.fill(&mut boot).map_err(rustls::Error::from)?;
    Ok(boot)
}

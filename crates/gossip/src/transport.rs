//! The transport: sessions with all peers, whose frames gossip carries.

use std::{
    io,
    net::SocketAddr,
    num::NonZeroUsize,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use libp2p_core::{Multiaddr, Transport as _};
use libp2p_swarm::Swarm;
use theta_names::NodeId;
use theta_network::{
    GroupTransport, HostStatus, Inbound, PeerStatus, Refused, SendError, Stopping, Transport,
    carrier::{Carrier, Relayed},
    doorway::{self, Doorway},
    mesh::{Listen, MeshError, MeshPeer, PeerCounters},
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
};

use crate::{
    bundle,
    config::{GossipConfig, GossipError},
    connection::{Socket, Strangers, Traffic},
    members::{Members, peer_id},
    mesh,
    neighbours::Dialer,
    tally::{GossipCounts, Tally},
    task::Task,
};

/// Frames that wait to leave, and frames that wait for their sessions: some for each peer of a large group.
const WAITING_FRAMES: usize = 2_048;

/// A node that gossips. It stops when dropped.
#[derive(Debug)]
pub struct Gossip {
    sessions: Arc<Relayed>,
    members: Arc<Members>,
    address: SocketAddr,
    traffic: Arc<Traffic>,
    strangers: Arc<Strangers>,
    doorway: Arc<Doorway>,
    tally: Arc<Tally>,
    /// The task holds a receiver until it ends.
    ended: watch::Sender<()>,
}

impl Gossip {
    /// Listens, starts to look for neighbours, and returns at once. Nothing is sent before the mesh is there. Must be called inside a tokio
    /// runtime. The receiver yields the messages of all peers.
    ///
    /// # Errors
    /// [`GossipError`]: nothing was started.
    pub fn start(config: GossipConfig) -> Result<(Arc<Self>, mpsc::Receiver<Inbound>), GossipError> {
        tokio::runtime::Handle::try_current().map_err(|_| MeshError::NoRuntime)?;
        let GossipConfig { group, local, identity, listen, peers, neighbours, carrier: sealed, limits } = config;
        limits.check()?;
        let unknown = |node: &&NodeId| !peers.iter().any(|peer| peer.id == **node);
        if let Some(unknown) = neighbours.iter().find(unknown) {
            return Err(GossipError::Neighbour(*unknown));
        }
        let (listener, address) = bind(listen)?;
        let members = Arc::new(Members::default());
        members.replace(peers.clone());
        let (traffic, strangers, tally) = (Arc::default(), Arc::default(), Arc::<Tally>::default());
        let sources = (&traffic, &strangers);
        let (socket, doorway) =
            Socket::new((listener, address), &identity, &members, sources, &limits).map_err(MeshError::Tls)?;
        let topic = mesh::topic(&group);
        let mesh = mesh::join(&topic, peers.len().saturating_add(1), &limits, sealed.frame_bytes)?;
        let longest = mesh::message_bytes(&limits, sealed.frame_bytes);
        let refused = |what: &str| GossipError::Gossipsub(what.to_owned());
        let own = peer_id(&identity.fingerprint()).ok_or_else(|| refused("this node's key gives no name"))?;
        let run = |future| drop(tokio::spawn(future));
        let settings = libp2p_swarm::Config::with_executor(run).with_idle_connection_timeout(limits.banned_for);
        let mut swarm = Swarm::new(socket.boxed(), mesh, own, settings);
        swarm.listen_on(Multiaddr::empty()).map_err(|error| refused(&error.to_string()))?;

        let (frames, outgoing) = mpsc::channel(WAITING_FRAMES);
        let (incoming, arrivals) = mpsc::channel(WAITING_FRAMES);
        let away = Some("it has no neighbour yet".to_owned());
        let (told, status) = watch::channel(HostStatus { address: "gossip".to_owned(), away, ..HostStatus::default() });
        let carrier = Carrier { frames, arrivals, status };
        let (relayed, inbound) = Relayed::start((local, identity.clone()), peers, carrier, sealed)?;
        let (ended, alive) = watch::channel(());
        let sessions = Arc::new(OnceLock::new());
        // It is empty, so that this succeeds.
        let _ = sessions.set(Arc::downgrade(&relayed));
        let task = Task {
            local,
            context: bundle::context(&group),
            longest,
            identity,
            topic,
            swarm,
            members: Arc::clone(&members),
            dialer: Dialer::new(neighbours.into_iter().collect(), limits.clone()),
            limits,
            frames: outgoing,
            arrivals: incoming,
            status: told,
            tally: Arc::clone(&tally),
            sessions,
        };
        tokio::spawn(async move {
            // Listener and connections are closed then.
            task.run().await;
            drop(alive);
        });
        let gossip = Self { sessions: relayed, members, address, traffic, strangers, doorway, tally, ended };
        Ok((Arc::new(gossip), inbound))
    }

    /// Where this node listens.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What this node has seen of gossip.
    #[must_use]
    pub fn counts(&self) -> GossipCounts {
        self.tally.counts(self.traffic.bytes())
    }
}

/// Listens now, so that an error is reported before anything starts.
fn bind(listen: Listen) -> Result<(TcpListener, SocketAddr), GossipError> {
    let failed = |address: Option<SocketAddr>, source: io::Error| match address {
        Some(address) if source.kind() == io::ErrorKind::AddrInUse => MeshError::AddressInUse(address),
        Some(address) => MeshError::Listen { address: address.to_string(), source },
        None => MeshError::Listen { address: "the listener that was given".to_owned(), source },
    };
    let (listener, asked) = match listen {
        Listen::Address(address) => (doorway::listen(address), Some(address)),
        Listen::Bound(listener) => {
            (listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener)), None)
        }
    };
    let listener = listener.map_err(|error| failed(asked, error))?;
    let address = listener.local_addr().map_err(|error| failed(asked, error))?;
    Ok((listener, address))
}

impl Transport for Gossip {
    fn local(&self) -> NodeId {
        self.sessions.local()
    }

    fn peers(&self) -> Vec<NodeId> {
        self.sessions.peers()
    }

    fn send(&self, to: NodeId, message: Bytes) -> Result<(), SendError> {
        self.sessions.send(to, message)
    }

    fn status(&self) -> Vec<PeerStatus> {
        self.sessions.status()
    }
}

impl GroupTransport for Gossip {
    fn set_peers(&self, peers: Vec<MeshPeer>) -> Result<(), MeshError> {
        self.sessions.set_peers(peers.clone())?;
        self.members.replace(peers);
        Ok(())
    }

    fn unreached(&self) -> Vec<MeshPeer> {
        self.sessions.unreached()
    }

    fn peer_counters(&self) -> Vec<Arc<PeerCounters>> {
        self.sessions.peer_counters()
    }

    fn refused(&self) -> Refused {
        let strangers = self.sessions.refused().strangers.saturating_add(self.strangers.count());
        Refused { strangers, shed: self.doorway.shed() }
    }

    fn limit_handshakes(&self, most: NonZeroUsize) {
        self.doorway.resize(most);
    }

    fn shutdown(&self) {
        self.sessions.shutdown();
    }

    fn stopped(&self) -> Stopping<'_> {
        Box::pin(async {
            self.sessions.stopped().await;
            self.ended.closed().await;
        })
    }
}

impl Drop for Gossip {
    fn drop(&mut self) {
        self.shutdown();
    }
}

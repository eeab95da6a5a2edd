//! Assembles a node from the crates below, and shuts it down.

mod archive;
mod certificate;
mod descriptors;
mod error;
mod forwarded;
mod founding;
mod host;
mod reach;
mod seats;

use std::{
    net::{SocketAddr, TcpListener as StdListener},
    num::NonZeroU16,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use prometheus_client::registry::Registry;
use theta_authority::{AuditKeeping, Authority, PolicyLoadError};
use theta_ceremonies::CeremonyMember;
use theta_custody::{Custodian, Roster};
use theta_names::NodeId;
use theta_network::{
    GroupTransport, HostStatus, Identity, Inbound, PeerState, Transport,
    doorway::{self, Doorway},
    group::{GroupFile, GroupNode},
    mesh::Listen,
};
use theta_orchestration::Orchestrator;
use theta_policy::Reload;
use tokio::{
    net::TcpListener,
    sync::mpsc,
    task::{self, JoinHandle},
    time,
};

use self::archive::LedgerArchive;
use self::certificate::CertificateCollector;
pub(crate) use self::certificate::CertificateKeeper;
pub use self::error::StartError;
pub(crate) use self::host::{Host, NotFirst, WANTED_HEIGHTS};
use self::{descriptors::Shares, reach::join, seats::Seats};
use crate::{
    agents::AgentSockets,
    config::{AuditConfig, LimitsConfig, NodeConfig},
    grpc::{Admission, ApiServer, Backups, Connections, NodeState, Serving},
    metrics::{self, ApiMetrics, DoorCollector, KeysCollector, PeersCollector, ProcessCollector, Readiness},
};

/// How long requests may still run when the node stops.
const GRACE: Duration = Duration::from_secs(5);

/// A transport, and the messages that arrive on it.
type Wires = (Arc<dyn Transport>, mpsc::Receiver<Inbound>);

/// A wrapper between a node and its transport.
type Wrap = dyn FnOnce(Arc<dyn Transport>, mpsc::Receiver<Inbound>) -> Wires + Send;

/// Sockets that are bound already. For the others the addresses of the configuration are used.
#[derive(Debug, Default)]
pub struct Listeners {
    /// For the other nodes.
    pub peer: Option<StdListener>,
    /// For clients.
    pub api: Option<StdListener>,
    /// For the monitoring system.
    pub metrics: Option<StdListener>,
}

/// A node about to start.
pub struct NodeBuilder {
    config: NodeConfig,
    listeners: Listeners,
    wrap: Box<Wrap>,
}

/// A running node. Dropping it stops it at once; [`Node::shutdown`] lets requests finish.
pub struct Node {
    id: NonZeroU16,
    addresses: Addresses,
    network: Arc<dyn GroupTransport>,
    orchestrator: Arc<Orchestrator>,
    authority: Arc<Authority>,
    serving: Option<Serving>,
    metrics: Option<JoinHandle<()>>,
    stopping: Arc<AtomicBool>,
}

struct Addresses {
    peer: SocketAddr,
    api: SocketAddr,
    metrics: Option<SocketAddr>,
}

impl Node {
    /// Starts a node: reads its files, connects to its peers and serves its clients. Returns when the node listens;
    /// `/readyz` tells whether enough peers are connected. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// [`StartError`] says which file, address or key is wrong, and what would be right. Nothing is left running.
    pub async fn start(config: NodeConfig) -> Result<Self, StartError> {
        Self::builder(config).start().await
    }

    /// Starts a node whose messages pass through another transport, for tests of nodes that lie.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub async fn start_with_transport(
        config: NodeConfig,
        wrap: impl FnOnce(Arc<dyn Transport>, mpsc::Receiver<Inbound>) -> Wires + Send + 'static,
    ) -> Result<Self, StartError> {
        Self::builder(config).transport(wrap).start().await
    }

    /// Builds a node with other sockets or another transport.
    #[must_use]
    pub fn builder(config: NodeConfig) -> NodeBuilder {
        NodeBuilder {
            config,
            listeners: Listeners::default(),
            wrap: Box::new(|transport, inbound| (transport, inbound)),
        }
    }

    /// This node's number.
    #[must_use]
    pub const fn id(&self) -> NonZeroU16 {
        self.id
    }

    /// Where peers connect. Nobody listens there if they are reached through a host.
    #[must_use]
    pub const fn peer_address(&self) -> SocketAddr {
        self.addresses.peer
    }

    /// The host through which peers are reached, if they are.
    #[must_use]
    pub fn host(&self) -> Option<HostStatus> {
        self.network.host()
    }

    /// Where clients connect.
    #[must_use]
    pub const fn api_address(&self) -> SocketAddr {
        self.addresses.api
    }

    /// Where metrics are served, if they are.
    #[must_use]
    pub const fn metrics_address(&self) -> Option<SocketAddr> {
        self.addresses.metrics
    }

    /// The orchestrator, for hosts that embed a node.
    #[must_use]
    pub const fn orchestrator(&self) -> &Arc<Orchestrator> {
        &self.orchestrator
    }

    /// The gate, for hosts that embed a node. The orchestrator takes only what is granted here.
    ///
    /// A front end of another kind identifies the caller from its connection and asks [`Authority::decide`]. It takes a
    /// place on the account of the client to whom the request was granted ([`Authority::account`], with the terms of the
    /// grant), passes the grant to [`Orchestrator::certify`] and the result of that to `run_for` or `submit_for`, and
    /// remembers whose instance it is ([`Authority::remember`]). A caller that comes back for a result needs a grant of its
    /// own ([`Authority::decide_result`]). While the store is not trusted, both refuse by themselves. See
    /// `docs/adr/0026-granted-requests.md`.
    #[must_use]
    pub const fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// Reads the policy file at once; otherwise the node does so within a second or so after a change.
    ///
    /// # Errors
    /// [`PolicyLoadError`]: the file is wrong, and the old policy stays in force.
    pub async fn reload_policy(&self) -> Result<Reload, PolicyLoadError> {
        let (authority, file) = (Arc::clone(&self.authority), self.authority.policy_file().to_owned());
        let interrupted = |error: task::JoinError| PolicyLoadError::Read { path: file, source: error.into() };
        task::spawn_blocking(move || authority.reload()).await.map_err(interrupted)?
    }

    /// Returns when the API server has stopped by itself, which it does only if something is broken.
    pub async fn wait(&mut self) {
        if let Some(serving) = &mut self.serving {
            serving.stopped().await;
        }
    }

    /// Stops the node: tells clients and the monitoring system, lets running requests finish for at most five seconds, then
    /// closes everything.
    pub async fn shutdown(mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        if let Some(serving) = self.serving.take() {
            serving.stop(GRACE).await;
        }
        self.network.shutdown();
        self.network.stopped().await;
        let (id, store) = (self.id, Arc::clone(self.authority.store()));
        let authority = Arc::clone(&self.authority);
        drop(self);
        // Joins a thread that waits for the disk.
        let closed = task::spawn_blocking(move || authority.close()).await;
        let deadline = Instant::now() + GRACE;
        while Arc::strong_count(&store) > 1 && Instant::now() < deadline {
            time::sleep(Duration::from_millis(5)).await;
        }
        let last = Arc::strong_count(&store) == 1;
        // The last one closes it, before anybody is told that it is closed.
        let dropped = task::spawn_blocking(move || drop(store)).await;
        let store_closed = last && dropped.is_ok();
        tracing::info!(node = id, log_written = closed.is_ok(), store_closed, "stopped");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.orchestrator.shutdown();
        self.network.shutdown();
        if let Some(metrics) = self.metrics.take() {
            metrics.abort();
        }
    }
}

impl NodeBuilder {
    /// Uses sockets that are bound already.
    #[must_use]
    pub fn listeners(mut self, listeners: Listeners) -> Self {
        self.listeners = listeners;
        self
    }

    /// Wraps the transport, so that all messages between nodes pass through the result of `wrap`.
    #[must_use]
    pub fn transport(
        mut self,
        wrap: impl FnOnce(Arc<dyn Transport>, mpsc::Receiver<Inbound>) -> Wires + Send + 'static,
    ) -> Self {
        self.wrap = Box::new(wrap);
        self
    }

    /// Starts the node.
    ///
    /// The future is boxed, so that the code of a node is compiled in this crate and not again in each program that
    /// contains one.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub fn start(self) -> Pin<Box<dyn Future<Output = Result<Node, StartError>> + Send>> {
        Box::pin(self.begin())
    }

    async fn begin(self) -> Result<Node, StartError> {
        let Self { mut config, listeners, wrap } = self;
        let (group, identity, certificate) = membership(&config)?;
        let shares = Shares::of(&mut config.limits, config.transport, group.nodes().len());
        let (authority, custodian, mut registry) = open_store(&config, &group).await?;
        // All addresses are bound before any thread starts, so that an error is reported at once and nothing has to be
        // undone.
        let (api, metrics) = listen_for((listeners.api, listeners.metrics), &config)?;
        let peer = listeners.peer.map_or(Listen::Address(config.listen.peer), Listen::Bound);

        let archive = LedgerArchive::new(authority.store(), group.founding());
        let (network, inbound, peers_at) =
            join((&config, &group, shares.handshakes_of_members()), &identity, peer, &archive, &mut registry)?;
        let (transport, inbound) = wrap(Arc::clone(&network) as Arc<dyn Transport>, inbound);
        let orchestration = config.limits.orchestration(config.cpu_threads);
        let orchestrator =
            Orchestrator::start(orchestration, custodian, Arc::clone(&transport), inbound, &mut registry)
                .inspect_err(|_| network.shutdown())?;

        let (admission, connections, doorway) = doors(&config.limits, &mut registry);
        let api_metrics = ApiMetrics::register(&mut registry);
        collect(&mut registry, &certificate, &network);
        let (local, keys) = (NodeId::from(config.id), Arc::clone(orchestrator.keys()));
        registry.register_collector(Box::new(KeysCollector { local, keys, transport: Arc::clone(&transport) }));

        let stopping = Arc::new(AtomicBool::new(false));
        let parts = (&authority, &orchestrator, &certificate);
        let ready = readiness(&transport, group.threshold(), &stopping, parts);
        let addresses = Addresses {
            peer: peers_at,
            api: local_address(&api)?,
            metrics: metrics.as_ref().map(local_address).transpose()?,
        };
        let seats = Seats::new((&config, identity.fingerprint()), &group, (&network, &archive), &orchestrator);
        let state = NodeState {
            orchestrator: Arc::clone(&orchestrator),
            authority: Arc::clone(&authority),
            transport,
            network: Arc::clone(&network),
            certificate: Arc::clone(&certificate),
            nodes: seats.nodes(),
            started: Instant::now(),
            backups: Backups::new(config.backup.clone()),
            host: config.order.map(|order| Host::start(order.client, local, group.threshold(), &mut registry)),
        };
        let doors = (Arc::clone(&connections), Arc::clone(&doorway));
        tokio::spawn(shares.follow(doors, Arc::downgrade(&network), seats.nodes()));
        attend((&authority, &orchestrator), &certificate, seats.follow(orchestrator.members()));
        tokio::spawn(archive::catch_up(identity.clone(), Arc::downgrade(&network), Arc::downgrade(&orchestrator)));
        let (serving, scrapes) = (None, None);
        let mut node =
            Node { id: config.id, addresses, network, orchestrator, authority, serving, metrics: scrapes, stopping };
        let server = ApiServer {
            listener: api,
            identity: &identity,
            group: &group,
            limits: &config.limits,
            metrics: api_metrics,
            admission,
            connections,
            doorway,
            state: Arc::new(state),
        };
        node.serving = Some(server.start().await?);
        node.metrics = metrics.map(|listener| tokio::spawn(metrics::serve(listener, Arc::new(registry), ready)));
        tracing::info!(
            node = node.id,
            group = group.name(),
            peers = %node.addresses.peer,
            api = %node.addresses.api,
            "ready for requests"
        );
        Ok(node)
    }
}

/// Starts what goes on beside the requests: policy file and certificate are looked at, and the members followed.
fn attend(
    (authority, orchestrator): (&Arc<Authority>, &Arc<Orchestrator>),
    certificate: &Arc<CertificateKeeper>,
    seats: impl Future<Output = ()> + Send + 'static,
) {
    tokio::spawn(theta_authority::watch(Arc::downgrade(authority)));
    tokio::spawn(certificate::watch(Arc::downgrade(certificate)));
    if let Some(forwarded) = orchestrator.forwarded() {
        tokio::spawn(forwarded::decide(forwarded, Arc::downgrade(authority), Arc::downgrade(orchestrator)));
    }
    tokio::spawn(seats);
}

/// Registers what is read when the metrics are scraped.
fn collect(registry: &mut Registry, certificate: &Arc<CertificateKeeper>, network: &Arc<dyn GroupTransport>) {
    registry.register_collector(Box::new(ProcessCollector));
    registry.register_collector(Box::new(CertificateCollector(Arc::clone(certificate))));
    registry.register_collector(Box::new(PeersCollector(Arc::clone(network))));
}

/// The bounds on callers of the API, with their metrics.
fn doors(limits: &LimitsConfig, registry: &mut Registry) -> (Arc<Admission>, Arc<Connections>, Arc<Doorway>) {
    let admission = Admission::new(limits.admission());
    let connections = Connections::new(limits.connections());
    let doorway = Doorway::new(limits.doorway());
    registry.register_collector(Box::new(DoorCollector {
        admission: Arc::clone(&admission),
        connections: Arc::clone(&connections),
        doorway: Arc::clone(&doorway),
    }));
    (admission, connections, doorway)
}

/// What a node is by its files.
type Membership = (GroupFile, Identity, Arc<CertificateKeeper>);

/// The group, and this node's identity if it is the one that the group knows, with a certificate that has some time to go.
fn membership(config: &NodeConfig) -> Result<Membership, StartError> {
    let group = GroupFile::load(&config.group)?;
    let identity = Identity::load(&config.certificate, &config.private_key)?;
    let shown = identity.fingerprint();
    let Some(member) = group.node(NodeId::from(config.id)) else {
        return Err(StartError::NotInGroup { id: config.id, nodes: group.nodes().len(), group: config.group.clone() });
    };
    if member.certificate != shown {
        return Err(StartError::Certificate {
            id: config.id,
            certificate: config.certificate.clone(),
            shown,
            group: config.group.clone(),
            pinned: member.certificate,
            owner: group.node_by_certificate(&shown).map(|owner| owner.id),
        });
    }
    let certificate = CertificateKeeper::new(identity.clone(), member, config)?;
    certificate.look();
    Ok((group, identity, certificate))
}

/// The parts of a node that are on its disk.
type Opened = (Arc<Authority>, Custodian, Registry);

/// Opens the store and everything in it. This takes a while: a passphrase is stretched, and ceremonies are resumed.
async fn open_store(config: &NodeConfig, group: &GroupFile) -> Result<Opened, StartError> {
    let (store, policy, audit, id) = (config.store.clone(), config.policy.clone(), config.audit.clone(), config.id);
    let (name, roster) = (group.name().to_owned(), roster(group)?);
    founding::compare(group, &roster);
    let open = move || {
        let mut registry = Registry::default();
        let store = Arc::new(store.open()?);
        if let Err(error) = store.keep_reserve() {
            tracing::warn!(%error, "no room is kept in reserve beside the store");
        }
        let custodian = Custodian::open(Arc::clone(&store), NodeId::from(id), roster)?;
        let authority = Authority::open(&name, NodeId::from(id), &policy, store, &mut registry)?;
        if let Some(AuditConfig { keep, folder }) = audit {
            authority.keep_audit(AuditKeeping { keep, folder });
        }
        authority.ask_agents_by(Arc::<AgentSockets>::default());
        authority.warn_of_slots(&custodian);
        Ok::<_, StartError>((authority, custodian, registry))
    };
    task::spawn_blocking(open).await.map_err(|error| StartError::System(error.into()))?
}

/// The group as ceremonies know it.
///
/// # Errors
/// [`StartError::CeremonyKey`]: a ceremony key is no point of the group. [`StartError::Founding`]: the founding in the file is damaged.
pub fn roster(group: &GroupFile) -> Result<Roster, StartError> {
    let member = |node: &GroupNode| {
        let key = node.ceremony_key?;
        Some(CeremonyMember::of(node.id, key.as_bytes()).map_err(|_| StartError::CeremonyKey(node.id)))
    };
    let roster = Roster {
        name: group.name().to_owned(),
        nodes: group.nodes().iter().map(|node| node.id).collect(),
        members: group.nodes().iter().filter_map(member).collect::<Result<_, _>>()?,
        k: group.threshold(),
        founding: None,
    };
    match group.founding() {
        Some(text) => roster.with_founding(text).map_err(|error| StartError::Founding(error.to_string())),
        None => Ok(roster),
    }
}

fn listen(bound: Option<StdListener>, address: SocketAddr, setting: &'static str) -> Result<TcpListener, StartError> {
    let failed = |error| StartError::listen(setting, address, error);
    let Some(listener) = bound else { return doorway::listen(address).map_err(failed) };
    listener.set_nonblocking(true).map_err(failed)?;
    TcpListener::from_std(listener).map_err(failed)
}

/// The listeners for clients and for the monitoring system, if there is to be one for that.
fn listen_for(
    (api, metrics): (Option<StdListener>, Option<StdListener>),
    config: &NodeConfig,
) -> Result<(TcpListener, Option<TcpListener>), StartError> {
    let wanted = metrics.is_some() || config.listen.metrics.is_some();
    let address = config.listen.metrics.unwrap_or(config.listen.api);
    Ok((listen(api, config.listen.api, "api")?, wanted.then(|| listen(metrics, address, "metrics")).transpose()?))
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, StartError> {
    listener.local_addr().map_err(StartError::System)
}

/// Ready means: not stopping, the store can be written, and enough peers are connected for an operation to finish.
fn readiness(
    transport: &Arc<dyn Transport>,
    threshold: u16,
    stopping: &Arc<AtomicBool>,
    (authority, orchestrator, certificate): (&Arc<Authority>, &Arc<Orchestrator>, &Arc<CertificateKeeper>),
) -> Readiness {
    let certificate = Arc::clone(certificate);
    let (transport, stopping) = (Arc::clone(transport), Arc::clone(stopping));
    let (authority, orchestrator) = (Arc::downgrade(authority), Arc::downgrade(orchestrator));
    Arc::new(move || {
        if stopping.load(Ordering::Relaxed) {
            return Err("the node is stopping".to_owned());
        }
        let (Some(authority), Some(orchestrator)) = (authority.upgrade(), orchestrator.upgrade()) else {
            return Err("the node is stopping".to_owned());
        };
        let warning = authority.standing()?;
        if let Some(why) = orchestrator.store_failure() {
            return Err(format!("its store failed: {why}"));
        }
        if let Some(why) = orchestrator.departure() {
            return Err(why);
        }
        let peers = transport.status();
        let connected = peers.iter().filter(|peer| peer.state == PeerState::Connected).count();
        if connected + 1 < usize::from(threshold) {
            return Err(format!("{connected} peers are connected, it takes {}", threshold.saturating_sub(1)));
        }
        Ok(warning.or_else(|| certificate.warning()))
    })
}

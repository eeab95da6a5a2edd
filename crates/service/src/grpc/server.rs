//! Serves all services on one TLS listener.

use std::{sync::Arc, time::Duration};

use theta_authority::Authority;
use theta_network::{
    Fingerprint, Identity,
    doorway::Doorway,
    group::GroupFile,
    tls::{self, Admits, Pinned},
};
use theta_statements::Name;
use theta_wire::{
    rpc,
    v1::{
        governance_server::GovernanceServer, threshold_keys_server::ThresholdKeysServer,
        threshold_protocol_server::ThresholdProtocolServer, threshold_scheme_server::ThresholdSchemeServer,
        total_order_server::TotalOrderServer,
    },
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time,
};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;
use tonic_health::server::HealthReporter;

use super::{
    NodeState,
    door::{Admission, ConnectionLimits, Connections, Entrance, TokenCheck, accept, patrol},
    gate::{Gate, Services},
    governance::Governance,
    keys::Keys,
    order::Order,
    protocol::Protocol,
    scheme::Scheme,
};
use crate::{config::LimitsConfig, metrics::ApiMetrics};

/// Flow-control windows large enough for large messages to pass without waiting for an update at every 64 KiB.
/// A stream whose body nobody reads yet can hold this many bytes; the streams of strangers are few.
const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// The most authenticated connections that wait for the server.
const ACCEPTED_QUEUE: usize = 16;

/// The parts of the API server.
pub(crate) struct ApiServer<'a> {
    pub(crate) listener: TcpListener,
    pub(crate) identity: &'a Identity,
    pub(crate) group: &'a GroupFile,
    pub(crate) limits: &'a LimitsConfig,
    pub(crate) metrics: ApiMetrics,
    pub(crate) admission: Arc<Admission>,
    pub(crate) connections: Arc<Connections>,
    /// Bounds connections whose handshake is not done.
    pub(crate) doorway: Arc<Doorway>,
    pub(crate) state: Arc<NodeState>,
}

/// A running API server.
pub(crate) struct Serving {
    health: HealthReporter,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<()>,
    acceptor: JoinHandle<()>,
    patrol: JoinHandle<()>,
}

/// Why the API cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    #[error(transparent)]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// Accepts the clients of the group file and those of the policy in force. What they may ask is decided later.
#[derive(Debug)]
struct Door {
    clients: tls::Pins,
    authority: Arc<Authority>,
}

impl Admits for Door {
    fn admits(&self, certificate: &Fingerprint) -> bool {
        self.clients.admits(certificate) || self.authority.client_of(certificate.as_bytes()).is_some()
    }

    fn admits_anonymous(&self) -> bool {
        self.authority.has_tokens()
    }
}

impl Entrance for Door {
    fn client(&self, certificate: &Fingerprint) -> Option<Name> {
        self.authority.client_of(certificate.as_bytes())
    }
}

impl ApiServer<'_> {
    /// The services of `theta.v1`. What they send has no bound of its own.
    fn own_services(&self) -> [rpc::Server; 5] {
        let state = || Arc::clone(&self.state);
        let mut own: [rpc::Server; 5] = [
            ThresholdProtocolServer::new(Protocol::new(state())).into(),
            ThresholdSchemeServer::new(Scheme::new(state())).into(),
            ThresholdKeysServer::new(Keys::new(state())).into(),
            GovernanceServer::new(Governance::new(state())).into(),
            TotalOrderServer::new(Order::new(state())).into(),
        ];
        for server in &mut own {
            server.set_max_decoding(self.limits.max_message_bytes.get());
        }
        own
    }

    /// Starts to serve.
    pub(crate) async fn start(self) -> Result<Serving, ApiError> {
        // Clients only: a node acts on requests of its clients, never on another node's word.
        let clients = self.group.clients().iter();
        let clients =
            clients.map(|client| (client.certificate, Pinned::Client(Arc::from(client.name.as_str())))).collect();
        let door = Arc::new(Door { clients, authority: Arc::clone(&self.state.authority) });
        let admits: Arc<dyn Admits> = Arc::<Door>::clone(&door);
        let acceptor = TlsAcceptor::from(tls::server_config_admitting(self.identity, admits, &[b"h2"])?);

        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(theta_wire::FILE_DESCRIPTOR_SET)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let (health, health_server) = tonic_health::server::health_reporter();
        health.set_serving::<ThresholdProtocolServer>().await;
        health.set_serving::<ThresholdSchemeServer>().await;
        health.set_serving::<ThresholdKeysServer>().await;
        health.set_serving::<GovernanceServer>().await;

        let gate = Gate::new(Services {
            own: self.own_services(),
            health: health_server,
            reflection: reflection().build_v1()?,
            reflection_v1alpha: reflection().build_v1alpha()?,
            authority: Arc::clone(&self.state.authority),
            admission: Arc::clone(&self.admission),
            connections: Arc::clone(&self.connections),
            tokens: TokenCheck::new(Arc::clone(&self.state.authority), self.identity.fingerprint()),
            metrics: self.metrics,
        });

        let (accepted, connections) = mpsc::channel(ACCEPTED_QUEUE);
        let patrol = tokio::spawn(patrol(self.admission, Arc::clone(&self.connections)));
        let limits = ConnectionLimits { doorway: self.doorway, connections: self.connections };
        let acceptor = tokio::spawn(accept(self.listener, acceptor, door, limits, accepted));
        let (stop, stopped) = oneshot::channel::<()>();
        let streams = u32::try_from(self.limits.max_connection_streams.get()).unwrap_or(u32::MAX);
        let serve = Server::builder()
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_concurrent_streams(streams)
            .http2_keepalive_interval(Some(Duration::from_secs(20)))
            .http2_keepalive_timeout(Some(Duration::from_secs(10)))
            .serve_with_incoming_shutdown(gate, ReceiverStream::new(connections), async {
                let _ = stopped.await;
            });
        let server = tokio::spawn(async move {
            if let Err(error) = serve.await {
                tracing::error!(%error, "the API server stopped");
            }
        });
        Ok(Serving { health, stop: Some(stop), server, acceptor, patrol })
    }
}

impl Serving {
    /// Returns when the server has stopped by itself.
    pub(crate) async fn stopped(&mut self) {
        // An error is impossible: the task never panics, and it is aborted only with this value.
        let _ = (&mut self.server).await;
    }

    /// Accepts no more requests, and lets running ones finish until `grace` is over.
    pub(crate) async fn stop(mut self, grace: Duration) {
        let not_serving = tonic_health::ServingStatus::NotServing;
        self.health.set_service_status("", not_serving).await;
        self.health.set_not_serving::<ThresholdProtocolServer>().await;
        self.health.set_not_serving::<ThresholdSchemeServer>().await;
        self.health.set_not_serving::<ThresholdKeysServer>().await;
        self.health.set_not_serving::<GovernanceServer>().await;
        self.acceptor.abort();
        // Fails only if the server has stopped already.
        let _ = self.stop.take().map(|stop| stop.send(()));
        if time::timeout(grace, &mut self.server).await.is_err() {
            tracing::warn!("API requests were still running after {grace:?}");
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.acceptor.abort();
        self.patrol.abort();
        // The connections have been told: they accept no more requests and end with those that they have.
        self.server.abort();
    }
}

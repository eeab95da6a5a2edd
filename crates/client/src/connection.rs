//! One persistent connection to each node, made when it is first needed and again after it breaks.

pub(crate) mod bounded;

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use prost::Message;
use rustls::ClientConfig;
use theta_names::NodeId;
use theta_network::{Fingerprint, Identity, group::GroupNode, places, tls};
use theta_wire::{
    Bounded, rpc,
    v1::{
        governance_client::GovernanceClient, threshold_keys_client::ThresholdKeysClient,
        threshold_protocol_client::ThresholdProtocolClient, threshold_scheme_client::ThresholdSchemeClient,
        total_order_client::TotalOrderClient,
    },
};
use tokio::{
    io::AsyncReadExt,
    net::TcpStream,
    time::{self, Instant},
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::{
    Request, Response, Status,
    transport::{Channel, Endpoint},
};
use tower::service_fn;

use self::bounded::List;
use crate::{ClientOptions, OpenError, Problem};

/// Flow-control windows large enough for a message of 32 MiB to pass without waiting for an update at every 64 KiB.
const STREAM_WINDOW: u32 = 8 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// The longest answer that is a result, or a few words about one, in bytes: the proof of a coin by hundreds of nodes, and whom they accuse.
/// Decoded it may take thirty times as much.
pub(crate) const MOST_ANSWER: usize = 256 << 10;
/// How long a node may take to say why it closes a connection.
const PROBE: Duration = Duration::from_secs(2);
/// How long a node is looked for at its first address, if it may be at another one.
const ELSEWHERE: Duration = Duration::from_secs(2);

/// The connection to one node.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) node: NodeId,
    pub(crate) address: Arc<str>,
    /// Where else it may be.
    others: Arc<[Arc<str>]>,
    channel: Channel,
    max_message_bytes: usize,
    config: Arc<ClientConfig>,
    /// The TLS key that the node has to have.
    pub(crate) expected: Fingerprint,
    /// The certificate that this client shows.
    shown: Option<Fingerprint>,
    /// The time at which the present connection was established.
    since: Arc<Mutex<Option<Instant>>>,
}

impl Connection {
    /// Prepares the connection; nothing is sent yet. The node is looked for at its address, and then at these other ones.
    pub(crate) fn new(
        node: &GroupNode,
        others: &[String],
        identity: Option<&Identity>,
        options: &ClientOptions,
    ) -> Result<Self, OpenError> {
        let config = match identity {
            Some(identity) => tls::client_config(identity, node.certificate, &[b"h2"])?,
            None => tls::anonymous_client_config(node.certificate, &[b"h2"])?,
        };
        let wrong = |_| OpenError::Address { node: node.id, address: node.api_address.clone() };
        // The connector below does TLS itself, so tonic sees a plain connection.
        let endpoint = Endpoint::from_shared(format!("http://{}", node.api_address))
            .map_err(wrong)?
            .connect_timeout(options.connect_timeout)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(Duration::from_secs(15))
            .keep_alive_timeout(Duration::from_secs(10))
            .keep_alive_while_idle(true);
        let address: Arc<str> = Arc::from(node.api_address.as_str());
        let others: Arc<[Arc<str>]> = others.iter().map(|other| Arc::from(other.as_str())).collect();
        let targets = (Arc::clone(&address), Arc::clone(&others));
        let expected = node.certificate;
        let tls = Arc::clone(&config);
        let since = Arc::new(Mutex::new(None));
        let made = Arc::clone(&since);
        let connector = service_fn(move |_| {
            let (connecting, made) = (connect(targets.clone(), Arc::clone(&tls), expected), Arc::clone(&made));
            async move {
                let connected = connecting.await;
                *made.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                connected
            }
        });
        let channel = endpoint.connect_with_connector_lazy(connector);
        let (max_message_bytes, shown) = (options.max_message_bytes, identity.map(Identity::fingerprint));
        Ok(Self { node: node.id, address, others, channel, max_message_bytes, config, expected, shown, since })
    }

    /// Whether it leads to this node, by this address first.
    pub(crate) fn leads_to(&self, node: &GroupNode) -> bool {
        (self.node, &*self.address, self.expected) == (node.id, node.api_address.as_str(), node.certificate)
    }

    /// Whether the node is looked for at these other addresses.
    pub(crate) fn has_others(&self, others: &[String]) -> bool {
        self.others.iter().map(|other| &**other).eq(others.iter().map(String::as_str))
    }

    /// Whether it leads to the same machine by the same address.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.node, &self.address, self.expected) == (other.node, &other.address, other.expected)
    }

    /// The time at which a request that was ready at `wanted` left: at once, or as soon as there was a connection. The time
    /// before is spent by this client (its start, the handshake) and does not count as the group's latency.
    pub(crate) fn sent(&self, wanted: Instant) -> Instant {
        let since = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.map_or(wanted, |since| since.max(wanted))
    }

    /// What a status means. If it says only that the connection broke, a new connection is made to learn why.
    pub(crate) async fn problem(&self, status: &Status, patience: Duration) -> Problem {
        let problem = Problem::from_status(status, patience);
        if tls::certificate_refused(status) || (problem.is_vague() && self.is_turned_away().await) {
            return Problem::TurnedAway { certificate: self.shown };
        }
        problem
    }

    /// Whether the node closes the connection because it does not accept this client's certificate. In TLS 1.3 the client
    /// learns this only after its own part of the handshake is done, as the first thing that it reads.
    async fn is_turned_away(&self) -> bool {
        let ask = async {
            let targets = (Arc::clone(&self.address), Arc::clone(&self.others));
            let stream = connect(targets, Arc::clone(&self.config), self.expected).await;
            match stream {
                Ok(stream) => stream.into_inner().read_u8().await.map(drop),
                Err(error) => Err(error),
            }
        };
        matches!(time::timeout(PROBE, ask).await, Ok(Err(error)) if tls::certificate_refused(&error))
    }

    /// The protocol API of this node.
    pub(crate) fn protocol(&self) -> ThresholdProtocolClient {
        ThresholdProtocolClient::new(self.channel.clone())
            .max_decoding_message_size(self.max_message_bytes)
            .max_encoding_message_size(self.max_message_bytes)
    }

    /// The same for answers that are results: what is longer than one can be is not read.
    pub(crate) fn operations(&self) -> ThresholdProtocolClient {
        self.protocol().max_decoding_message_size(self.max_message_bytes.min(MOST_ANSWER))
    }

    /// Calls a method whose answer is a list: its entries, at most so many, as they came in at most so many bytes.
    pub(crate) async fn list<M: Message + 'static, const MOST: usize>(
        &self,
        path: &'static str,
        request: Request<M>,
        most_bytes: usize,
    ) -> Result<Vec<Bytes>, Status> {
        let mut calls = self.calls(most_bytes);
        let list: Response<Bounded<List, MOST>> = calls.one(path, request).await?;
        Ok(bounded::whole(list.into_inner())?.entries)
    }

    /// Calls whose answers are read by whoever calls.
    pub(crate) fn calls(&self, most_bytes: usize) -> rpc::Client {
        rpc::Client::new(self.channel.clone()).max_decoding(most_bytes).max_encoding(self.max_message_bytes)
    }

    /// The keys of this node.
    pub(crate) fn keys(&self) -> ThresholdKeysClient {
        ThresholdKeysClient::new(self.channel.clone())
            .max_decoding_message_size(self.max_message_bytes)
            .max_encoding_message_size(self.max_message_bytes)
    }

    /// The policy and the audit log of this node.
    pub(crate) fn governance(&self) -> GovernanceClient {
        GovernanceClient::new(self.channel.clone())
            .max_decoding_message_size(self.max_message_bytes)
            .max_encoding_message_size(self.max_message_bytes)
    }

    /// The order that this node takes from its host.
    pub(crate) fn order(&self) -> TotalOrderClient {
        TotalOrderClient::new(self.channel.clone())
            .max_decoding_message_size(self.max_message_bytes)
            .max_encoding_message_size(self.max_message_bytes)
    }

    /// The scheme API of this node.
    pub(crate) fn scheme(&self) -> ThresholdSchemeClient {
        ThresholdSchemeClient::new(self.channel.clone())
            .max_decoding_message_size(self.max_message_bytes)
            .max_encoding_message_size(self.max_message_bytes)
    }
}

/// Connects to the first of the addresses at which the node is.
async fn connect(
    (address, others): (Arc<str>, Arc<[Arc<str>]>),
    config: Arc<ClientConfig>,
    expected: Fingerprint,
) -> io::Result<TokioIo<TlsStream<TcpStream>>> {
    let first = connect_to(&address, &config, expected);
    if others.is_empty() {
        return first.await;
    }
    // An address at which nobody answers must not take the time of the others.
    let mut tried = time::timeout(ELSEWHERE, first).await.unwrap_or_else(|late| Err(late.into()));
    for other in others.iter() {
        if tried.is_ok() {
            break;
        }
        tried = connect_to(other, &config, expected).await;
    }
    tried
}

async fn connect_to(
    address: &str,
    config: &Arc<ClientConfig>,
    expected: Fingerprint,
) -> io::Result<TokioIo<TlsStream<TcpStream>>> {
    let tcp = places::connect_to(address).await?;
    tcp.set_nodelay(true)?;
    let tls = TlsConnector::from(Arc::clone(config)).connect(tls::server_name(), tcp).await?;
    // The handshake has already refused any other certificate; this checks it a second time.
    if tls::peer_fingerprint(tls.get_ref().1) != Some(expected) {
        return Err(io::Error::other("another certificate than the group's"));
    }
    Ok(TokioIo::new(tls))
}

//! Nodes that attach to hosts over real sockets. The host is an attacker here: it plays with the frames that it carries.

use core::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use theta_network::{
    Fingerprint, GroupTransport, Identity, Inbound, PeerState, SendError, Transport,
    carrier::{CarrierLimits, Relayed},
    mesh::MeshPeer,
    p2p_proxy::{self, HostConfig},
    tls::{self, Pinned, Pins},
};
use theta_wire::host::{
    Frame, Frames, FromNode, ToNode, Welcome, from_node,
    message_host_server::{MessageHost, MessageHostServer},
    to_node,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinHandle,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Server, server::Connected},
};

use crate::support::{Lcg, id, new_identity, next, number_of, numbered, until};

/// A connection as tonic takes it.
struct Stream(TlsStream<TcpStream>);

impl Connected for Stream {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// What the host does, each in a hundred frames.
#[derive(Clone, Copy, Debug, Default)]
struct Malice {
    loses: usize,
    doubles: usize,
    bends: usize,
    replays: usize,
    swaps: usize,
    /// Invented frames for each right one.
    floods: usize,
    /// It takes the first words of a node, and then nothing.
    reads_nothing: bool,
}

type Stage = mpsc::Sender<Result<ToNode, Status>>;

#[derive(Debug)]
struct Shared {
    malice: Malice,
    nodes: BTreeMap<u32, Stage>,
    seen: Vec<(u32, Bytes)>,
    random: Lcg,
    /// Ends all streams when it changes.
    life: tokio::sync::watch::Sender<u32>,
}

#[derive(Clone)]
struct Host(Arc<Mutex<Shared>>);

fn frames(node: u32, payload: Bytes) -> ToNode {
    let frames = Frames { frames: vec![Frame { node, payload }] };
    ToNode { word: Some(to_node::Word::Frames(frames)) }
}

impl Shared {
    /// Frames for which a node has no room are lost.
    fn deliver(&self, from: u32, to: u32, payload: Bytes) {
        if let Some(stage) = self.nodes.get(&to) {
            let _ = stage.try_send(Ok(frames(from, payload)));
        }
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.random.below(100) < percent
    }

    fn carry(&mut self, from: u32, to: u32, payload: &Bytes) {
        for _ in 0..self.malice.floods {
            let kind = u8::try_from(1 + self.random.below(4)).unwrap();
            let mut invented = payload.to_vec();
            invented.resize(150, kind);
            invented[1] = kind;
            let place = 18 + self.random.below(100);
            invented[place] = u8::try_from(self.random.below(256)).unwrap();
            self.deliver(from, to, invented.into());
        }
        if self.chance(self.malice.bends) {
            let mut bent = payload.to_vec();
            let place = self.random.below(bent.len());
            bent[place] ^= 1;
            self.deliver(from, to, bent.into());
        }
        if self.chance(self.malice.swaps) {
            let other = u32::try_from(1 + self.random.below(4)).unwrap();
            self.deliver(other, to, payload.clone());
            self.deliver(from, other, payload.clone());
        }
        if self.chance(self.malice.replays) && !self.seen.is_empty() {
            let place = self.random.below(self.seen.len());
            let (to, again) = self.seen[place].clone();
            self.deliver(from, to, again);
        }
        if self.seen.len() < 10_000 {
            self.seen.push((to, payload.clone()));
        }
        if self.chance(self.malice.doubles) {
            self.deliver(from, to, payload.clone());
        }
        if !self.chance(self.malice.loses) {
            self.deliver(from, to, payload.clone());
        }
    }
}

#[tonic::async_trait]
impl MessageHost for Host {
    type AttachStream = ReceiverStream<Result<ToNode, Status>>;

    async fn attach(&self, request: Request<Streaming<FromNode>>) -> Result<Response<Self::AttachStream>, Status> {
        let mut heard = request.into_inner();
        let first = heard.message().await?.and_then(|message| message.word);
        let Some(from_node::Word::Hello(hello)) = first else { return Err(Status::invalid_argument("no hello")) };
        let (stage, words) = mpsc::channel(1024);
        let welcome = Welcome { version: hello.version, frame_bytes: 1 << 20 };
        let _ = stage.try_send(Ok(ToNode { word: Some(to_node::Word::Welcome(welcome)) }));
        let (mut life, reads_nothing) = {
            let mut shared = self.0.lock().unwrap();
            shared.nodes.insert(hello.node, stage.clone());
            (shared.life.subscribe(), shared.malice.reads_nothing)
        };
        let host = self.clone();
        tokio::spawn(async move {
            let carry = async {
                if reads_nothing {
                    core::future::pending::<()>().await;
                }
                while let Ok(Some(message)) = heard.message().await {
                    let Some(from_node::Word::Frames(frames)) = message.word else { return };
                    for Frame { node, payload } in frames.frames {
                        host.0.lock().unwrap().carry(hello.node, node, &payload);
                    }
                }
            };
            tokio::select! {
                () = carry => {}
                _ = life.changed() => {
                    let _ = stage.send(Err(Status::unavailable("the host stops"))).await;
                }
            }
            host.0.lock().unwrap().nodes.remove(&hello.node);
        });
        Ok(Response::new(ReceiverStream::new(words)))
    }
}

/// A running host for a whole group.
struct Platform {
    host: Host,
    address: SocketAddr,
    identity: Identity,
    pins: Pins,
    serving: JoinHandle<()>,
}

impl Platform {
    async fn start(identities: &[Identity], malice: Malice) -> Self {
        let pins = (1..).zip(identities).map(|(node, identity)| (identity.fingerprint(), Pinned::Node(id(node))));
        let (pins, identity) = (pins.collect(), new_identity());
        let life = tokio::sync::watch::Sender::new(0);
        let shared = Shared { malice, nodes: BTreeMap::new(), seen: Vec::new(), random: Lcg(7), life };
        let host = Host(Arc::new(Mutex::new(shared)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = serve(listener, &identity, &pins, &host);
        Self { host, address, identity, pins, serving }
    }

    /// Ends all streams, and listens no more.
    fn stop(&self) {
        self.serving.abort();
        self.end_streams();
    }

    /// Ends all streams, and takes others.
    fn end_streams(&self) {
        self.host.0.lock().unwrap().life.send_modify(|life| *life += 1);
    }

    async fn start_again(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.serving = serve(listener, &self.identity, &self.pins, &self.host);
    }

    /// Says this to a node in one message, whatever it is.
    fn say(&self, node: u32, frames: Vec<Frame>) {
        let stage = self.host.0.lock().unwrap().nodes[&node].clone();
        stage.try_send(Ok(ToNode { word: Some(to_node::Word::Frames(Frames { frames })) })).unwrap();
    }

    fn set(&self, malice: Malice) {
        self.host.0.lock().unwrap().malice = malice;
    }

    fn config(&self, node: usize, identity: &Identity, certificate: Fingerprint) -> HostConfig {
        HostConfig {
            address: self.address.to_string(),
            certificate,
            group: "test".to_owned(),
            node: id(node),
            identity: identity.clone(),
            frame_bytes: CarrierLimits::default().frame_bytes,
            backoff: (Duration::from_millis(20), Duration::from_millis(100)),
        }
    }
}

fn serve(listener: TcpListener, identity: &Identity, pins: &Pins, host: &Host) -> JoinHandle<()> {
    let acceptor = TlsAcceptor::from(tls::server_config(identity, pins.clone(), &[b"h2"]).unwrap());
    let (accepted, incoming) = mpsc::channel::<Result<Stream, io::Error>>(16);
    let accepting = async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, accepted) = (acceptor.clone(), accepted.clone());
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(tcp).await {
                    let _ = accepted.send(Ok(Stream(stream))).await;
                }
            });
        }
    };
    let server = Server::builder().add_service(MessageHostServer::new(host.clone()));
    tokio::spawn(async move {
        tokio::select! {
            () = accepting => {}
            _ = server.serve_with_incoming(ReceiverStream::new(incoming)) => {}
        }
    })
}

type Running = (Arc<Relayed>, mpsc::Receiver<Inbound>);

async fn group(malice: Malice, limits: &CarrierLimits) -> (Platform, Vec<Running>) {
    let identities: Vec<Identity> = (0..4).map(|_| new_identity()).collect();
    let platform = Platform::start(&identities, malice).await;
    let peer = |(node, identity): (usize, &Identity)| MeshPeer {
        id: id(node),
        address: "nowhere:1".to_owned(),
        certificate: identity.fingerprint(),
    };
    let peers: Vec<MeshPeer> = (1..).zip(&identities).map(peer).collect();
    let nodes = (1..).zip(&identities).map(|(node, identity)| {
        let carrier = p2p_proxy::attach(platform.config(node, identity, platform.identity.fingerprint()));
        let others = peers.iter().filter(|peer| peer.id != id(node)).cloned().collect();
        Relayed::start((id(node), identity.clone()), others, carrier, limits.clone()).unwrap()
    });
    let nodes = nodes.collect();
    (platform, nodes)
}

async fn until_connected(nodes: &[Running]) {
    let connected = |(relayed, _): &Running| relayed.status().iter().all(|peer| peer.state == PeerState::Connected);
    until("all are connected", || nodes.iter().all(connected)).await;
}

/// Everybody tells everybody so many numbers, from one on, and all come in order.
async fn exchange(nodes: &mut [Running], from: u32, count: u32) {
    for number in from..from + count {
        for (relayed, _) in nodes.iter() {
            assert_eq!(relayed.broadcast(numbered(number, 8 + usize::try_from(number % 700).unwrap())), []);
        }
        if number % 16 == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    for (relayed, inbound) in nodes {
        let mut due = [from; 5];
        for _ in 0..3 * count {
            let message = next(inbound).await;
            let due = &mut due[usize::from(message.from.get())];
            assert_eq!(number_of(&message.bytes), *due, "at {} from {}", relayed.local(), message.from);
            *due += 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_speaks_through_a_host_that_stops_and_starts_again() {
    let (mut platform, mut nodes) = group(Malice::default(), &CarrierLimits::default()).await;
    until_connected(&nodes).await;
    exchange(&mut nodes, 0, 500).await;
    let peers = nodes[0].0.peer_counters();
    assert!(peers.iter().all(|peer| (peer.frames_sent.get(), peer.frames_received.get()) == (500, 500)));
    platform.stop();
    let away = |(relayed, _): &Running| relayed.host().is_some_and(|host| host.away.is_some());
    until("all see that the host is away", || nodes.iter().all(away)).await;
    let status = nodes[0].0.status().remove(0);
    assert_eq!(status.state, PeerState::Connecting);
    assert_eq!(status.address, format!("through {}", platform.address));
    assert_eq!(nodes[0].0.unreached().len(), 3);
    // What is said meanwhile waits.
    for (relayed, _) in &nodes {
        assert_eq!(relayed.broadcast(numbered(500, 8)), []);
    }
    platform.start_again().await;
    for (_, inbound) in &mut nodes {
        for _ in 0..3 {
            assert_eq!(number_of(&next(inbound).await.bytes), 500);
        }
    }
    exchange(&mut nodes, 501, 100).await;
    assert!(nodes.iter().all(|(relayed, _)| relayed.host().is_some_and(|host| host.attached == 2)));
    for (relayed, _) in &nodes {
        relayed.shutdown();
        relayed.stopped().await;
        assert_eq!(relayed.send(id(1), Bytes::new()), Err(SendError::Closed));
    }
}

/// The attack: a host welcomes a node and ends its stream, again and again.
#[tokio::test]
async fn a_host_that_welcomes_and_ends_is_called_with_pauses() {
    let identities = [new_identity()];
    let platform = Platform::start(&identities, Malice::default()).await;
    let config = platform.config(1, &identities[0], platform.identity.fingerprint());
    let backoff = (Duration::from_millis(5), Duration::from_millis(500));
    let carrier = p2p_proxy::attach(HostConfig { backoff, ..config });
    let start = std::time::Instant::now();
    let attached = || carrier.status.borrow().attached;
    while start.elapsed() < Duration::from_secs(3) || attached() < 3 {
        assert!(start.elapsed() < Duration::from_secs(120), "it attached {} times", attached());
        platform.end_streams();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // Pauses double up to half a second, of which jitter may leave a half.
    let (attached, took) = (attached(), start.elapsed());
    assert!(u128::from(attached) <= 10 + took.as_millis() / 200, "it attached {attached} times in {took:?}");
}

/// Whoever makes a host fill a longer message than it should does not make its node deaf; nor does one with longer frames than this node's.
#[tokio::test]
async fn a_message_that_is_too_long_is_taken_and_what_nobody_makes_is_counted() {
    let identity = new_identity();
    let platform = Platform::start(core::slice::from_ref(&identity), Malice::default()).await;
    let mut carrier = p2p_proxy::attach(platform.config(1, &identity, platform.identity.fingerprint()));
    until("it is attached", || carrier.status.borrow().away.is_none()).await;
    let frame = |node: u32, length: usize| Frame { node, payload: vec![7; length].into() };
    let mut frames = vec![frame(2, 64 << 10); 32];
    frames.extend([frame(2, (1 << 20) + 1), frame(70_000, 8), frame(0, 8), frame(3, 9)]);
    platform.say(1, frames);
    let mut came = Vec::new();
    while came.last() != Some(&(id(3), 9)) {
        let carried = tokio::time::timeout(Duration::from_secs(60), carrier.arrivals.recv()).await;
        let carried = carried.expect("the frames come").expect("the node attends");
        came.push((carried.node, carried.frame.len()));
    }
    assert_eq!(came[..32], [(id(2), 64 << 10); 32]);
    let counts = || {
        let status = carrier.status.borrow();
        (status.got, status.dropped, status.attached)
    };
    until("they are counted", || counts() == (33, 3, 1)).await;
}

/// While a host is away, what waits for it is seen.
#[tokio::test]
async fn frames_that_wait_for_a_host_that_is_away_are_counted() {
    let identity = new_identity();
    let platform = Platform::start(core::slice::from_ref(&identity), Malice::default()).await;
    let carrier = p2p_proxy::attach(platform.config(1, &identity, platform.identity.fingerprint()));
    until("it is attached", || carrier.status.borrow().away.is_none()).await;
    platform.stop();
    until("it is away", || carrier.status.borrow().away.is_some()).await;
    for _ in 0..100 {
        let frame = Bytes::from_static(b"frame");
        carrier.frames.try_send(theta_network::carrier::Carried { node: id(2), frame }).unwrap();
    }
    until("they are seen to wait", || carrier.status.borrow().waiting == 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_the_host_does_to_frames_messages_come_once_and_in_order() {
    let malice = Malice { loses: 10, doubles: 20, bends: 30, replays: 40, swaps: 20, floods: 2, reads_nothing: false };
    let (platform, mut nodes) = group(malice, &CarrierLimits::default()).await;
    let total = |nodes: &[Running], count: fn(&theta_network::mesh::PeerCounters) -> u64| -> u64 {
        nodes.iter().flat_map(|(relayed, _)| relayed.peer_counters()).map(|peer| count(&peer)).sum()
    };
    exchange(&mut nodes, 0, 200).await;
    // All that waited for the sessions fits into few frames, of which none may be lost.
    let mut from = 200;
    while total(&nodes, |peer| peer.frames_resent.get()) == 0 && from < 5_000 {
        exchange(&mut nodes, from, 100).await;
        from += 100;
    }
    // A host that does its part again finds nothing to mend.
    platform.set(Malice::default());
    exchange(&mut nodes, from, 100).await;
    assert!(total(&nodes, |peer| peer.false_frames.get()) > 0 && total(&nodes, |peer| peer.frames_resent.get()) > 0);
    assert_eq!(total(&nodes, |peer| peer.protocol_errors.get()), 0, "no node is blamed for what the host does");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_takes_nothing_is_named_and_fills_no_memory() {
    let limits = CarrierLimits { queue_messages: 100, queue_bytes: 1 << 20, ..CarrierLimits::default() };
    let (platform, nodes) = group(Malice { reads_nothing: true, ..Malice::default() }, &limits).await;
    let (relayed, _inbound) = &nodes[0];
    until("it is attached", || relayed.host().is_some_and(|host| host.away.is_none())).await;
    for number in 0..100 {
        relayed.send(id(2), numbered(number, 8)).unwrap();
    }
    assert_eq!(relayed.send(id(2), numbered(100, 8)), Err(SendError::QueueFull(id(2))));
    relayed.send(id(3), numbered(0, 8)).unwrap();
    assert!(relayed.status().iter().all(|peer| peer.state == PeerState::Connecting));
    // Another host with another key is not attached to, whatever it would take.
    let carrier = p2p_proxy::attach(platform.config(4, &new_identity(), Fingerprint::from([0; 32])));
    let reason = || carrier.status.borrow().away.clone().unwrap_or_default();
    until("another host's key is refused", || reason().contains("another machine answers there")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_host_is_said_to_be_slow() {
    let identity = new_identity();
    let malice = Malice { reads_nothing: true, ..Malice::default() };
    let platform = Platform::start(core::slice::from_ref(&identity), malice).await;
    let carrier = p2p_proxy::attach(platform.config(1, &identity, platform.identity.fingerprint()));
    let mut taken = 0_usize;
    let slow = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            let frame = Bytes::from(vec![0; 30_000]);
            let carried = theta_network::carrier::Carried { node: id(2), frame };
            let sent = tokio::time::timeout(Duration::from_millis(100), carrier.frames.send(carried)).await;
            taken += usize::from(sent.is_ok_and(|sent| sent.is_ok()));
            if carrier.status.borrow().stalled >= Duration::from_secs(1) {
                return;
            }
        }
    });
    slow.await.expect("the host is named");
    assert!(carrier.status.borrow().waiting > 0);
    assert!(taken < 1_000, "{taken} frames of 30 kB were taken by a host that reads nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_the_hosts_node_hears_why() {
    let (known, stranger) = (new_identity(), new_identity());
    let platform = Platform::start(core::slice::from_ref(&known), Malice::default()).await;
    let carrier = p2p_proxy::attach(platform.config(1, &stranger, platform.identity.fingerprint()));
    let reason = || carrier.status.borrow().away.clone().unwrap_or_default();
    until("it is turned away", || reason().contains("does not know this node's certificate")).await;
    platform.stop();
    until("nobody is there", || reason().contains("connection refused")).await;
}

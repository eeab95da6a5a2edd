//! What strangers, broken networks and lying peers can do to a mesh.

use core::time::Duration;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use crate::support::{Group, Lcg, id, new_identity, next, number_of, numbered, quick, send, status, until};
use theta_network::{
    Identity, PeerState, Transport,
    mesh::{Listen, MeshLimits, MeshPeer},
    tls::{self, Pinned, Pins},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream};

/// A proxy before a node that cuts each connection after a random number of bytes, until told to stop.
struct Proxy {
    address: String,
    cuts: Arc<AtomicU32>,
    is_cutting: Arc<AtomicBool>,
    is_stalled: Arc<AtomicBool>,
}

impl Proxy {
    async fn start(target: String, mut random: Lcg) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap().to_string(),
            cuts: Arc::default(),
            is_cutting: Arc::default(),
            is_stalled: Arc::default(),
        };
        let (cuts, is_cutting) = (Arc::clone(&proxy.cuts), Arc::clone(&proxy.is_cutting));
        let is_stalled = Arc::clone(&proxy.is_stalled);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let budget = if is_cutting.load(Ordering::Relaxed) { random.below(100_000) } else { usize::MAX };
                let Ok(mut server) = TcpStream::connect(&target).await else { continue };
                let (cuts, is_stalled) = (Arc::clone(&cuts), Arc::clone(&is_stalled));
                tokio::spawn(async move {
                    forward(&mut client, &mut server, budget, &is_stalled).await;
                    cuts.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        proxy
    }
}

/// Forwards both ways until `budget` bytes have passed or one end closes.
async fn forward(client: &mut TcpStream, server: &mut TcpStream, mut budget: usize, is_stalled: &AtomicBool) {
    let (mut up, mut down) = ([0; 4096], [0; 4096]);
    while budget > 0 {
        let (length, piece, to) = tokio::select! {
            length = client.read(&mut up) => (length, &up, &mut *server),
            length = server.read(&mut down) => (length, &down, &mut *client),
        };
        let Ok(length @ 1..) = length else { return };
        while is_stalled.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let passed = length.min(budget);
        budget -= passed;
        if to.write_all(&piece[..passed]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_cut_anywhere_lose_double_and_reorder_nothing() {
    const COUNT: u32 = 3000;
    let mut group = Group::new(2);
    let mut random = Lcg(20_261_121);
    let to_two = Proxy::start(group.peers[1].address.clone(), Lcg(1)).await;
    let to_one = Proxy::start(group.peers[0].address.clone(), Lcg(2)).await;
    to_two.is_cutting.store(true, Ordering::Relaxed);
    to_one.is_cutting.store(true, Ordering::Relaxed);
    let mut config = group.config(1, quick());
    config.peers[0].address = to_two.address;
    let (one, mut inbound_one) = theta_network::mesh::Mesh::start(config).unwrap();
    let mut config = group.config(2, quick());
    config.peers[0].address = to_one.address;
    let (two, mut inbound_two) = theta_network::mesh::Mesh::start(config).unwrap();
    let readers = [
        tokio::spawn(async move {
            for number in 0..COUNT {
                assert_eq!(number_of(&next(&mut inbound_one).await.bytes), number);
            }
            inbound_one
        }),
        tokio::spawn(async move {
            for number in 0..COUNT {
                assert_eq!(number_of(&next(&mut inbound_two).await.bytes), number);
            }
            inbound_two
        }),
    ];
    for number in 0..COUNT {
        send(&one, 2, numbered(number, random.below(3000))).await;
        send(&two, 1, numbered(number, random.below(3000))).await;
        if number % 16 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let mut inbounds = Vec::new();
    for reader in readers {
        inbounds.push(reader.await.unwrap());
    }
    to_two.is_cutting.store(false, Ordering::Relaxed);
    to_one.is_cutting.store(false, Ordering::Relaxed);
    until("all is acknowledged", || status(&one, 2).queued == 0 && status(&two, 1).queued == 0).await;
    for inbound in &mut inbounds {
        assert!(inbound.try_recv().is_err(), "something came twice");
    }
    for (mesh, proxy) in [(&one, &to_two.cuts), (&two, &to_one.cuts)] {
        let counters = &mesh.counters().peers()[0];
        assert!(proxy.load(Ordering::Relaxed) > 10, "the test did not test anything");
        assert!(counters.reconnects.get() > 5);
        assert!(counters.frames_resent.get() > 0);
        assert_eq!((counters.frames_sent.get(), counters.protocol_errors.get()), (COUNT.into(), 0));
    }
}

#[tokio::test]
async fn a_peer_that_falls_silent_is_noticed_and_found_again() {
    let mut group = Group::new(2);
    let proxy = Proxy::start(group.peers[1].address.clone(), Lcg(3)).await;
    let limits = MeshLimits {
        keepalive: Duration::from_millis(50),
        dead_after: Duration::from_millis(500),
        handshake_timeout: Duration::from_secs(1),
        ..quick()
    };
    let mut config = group.config(1, limits.clone());
    config.peers[0].address = proxy.address;
    let (one, _unread) = theta_network::mesh::Mesh::start(config).unwrap();
    let (_two, mut inbound) = group.start(2, limits);
    send(&one, 2, numbered(1, 8)).await;
    next(&mut inbound).await;
    proxy.is_stalled.store(true, Ordering::Relaxed);
    until("silence is noticed", || status(&one, 2).state == PeerState::Connecting).await;
    assert!(status(&one, 2).last_error.is_some());
    send(&one, 2, numbered(2, 8)).await;
    proxy.is_stalled.store(false, Ordering::Relaxed);
    assert_eq!(number_of(&next(&mut inbound).await.bytes), 2);
    until("the peer is found again", || status(&one, 2).state == PeerState::Connected).await;
    assert_eq!(status(&one, 2).last_error, None);
}

#[tokio::test]
async fn a_wrong_certificate_is_refused_in_both_directions() {
    let mut group = Group::new(2);
    let (honest, mut inbound) = group.start(1, quick());
    // A process at node 2's address that knows node 1's certificate but does not have node 2's key.
    let mut config = group.config(2, quick());
    config.identity = new_identity();
    let (impostor, mut inbound_impostor) = theta_network::mesh::Mesh::start(config).unwrap();
    honest.send(id(2), numbered(1, 8)).unwrap();
    impostor.send(id(1), numbered(1, 8)).unwrap();
    let counters = Arc::clone(honest.counters());
    until("the impostor is refused as a client", || counters.handshake_failures.get() > 3).await;
    until("the impostor is refused as a server", || counters.peers()[0].connect_failures.get() > 3).await;
    let reason = status(&honest, 2).last_error.unwrap();
    assert!(reason.contains("another node answers at its address"), "{reason}");
    assert!(reason.contains(&group.peers[1].certificate.to_string()), "{reason}");
    let told = |reason: String| reason.contains("it may not have this node's certificate in its group file");
    until("the impostor is told", || status(&impostor, 1).last_error.is_some_and(told)).await;
    assert_eq!(status(&impostor, 1).state, PeerState::Connecting);
    assert!(inbound.try_recv().is_err());
    assert!(inbound_impostor.try_recv().is_err());
}

/// Connects to a node with a peer's real identity.
async fn connect(node: &MeshPeer, identity: &Identity) -> TlsStream<TcpStream> {
    let config = tls::client_config(identity, node.certificate, &[b"theta-mesh/1"]).unwrap();
    let tcp = TcpStream::connect(&node.address).await.unwrap();
    TlsConnector::from(config).connect(tls::server_name(), tcp).await.unwrap()
}

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 1).unwrap();
    [&length.to_be_bytes(), &[kind][..], body].concat()
}

fn hello(version: u16, oldest: u64) -> Vec<u8> {
    frame(1, &[&version.to_be_bytes(), &[9; 16][..], &oldest.to_be_bytes()].concat())
}

async fn closes(stream: &mut TlsStream<TcpStream>) {
    let end = timeout(Duration::from_secs(30), stream.read_to_end(&mut Vec::new())).await;
    // The connection was closed with or without unread data: end of stream, or a reset.
    let _ = end.expect("the node closes the connection");
}

#[tokio::test]
async fn a_peer_that_breaks_the_protocol_loses_only_its_connection() {
    let mut group = Group::new(3);
    let (node, mut inbound) = group.start(1, quick());
    let (honest, _unread) = group.start(2, quick());
    let data = |sequence: u64| frame(3, &sequence.to_be_bytes());
    let violations = [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 64],
        vec![0xff; 64],
        frame(99, b""),
        data(1),
        hello(2, 1),
        hello(1, 0),
        [hello(1, 1), vec![0xff; 4]].concat(),
        [hello(1, 1), frame(99, b"")].concat(),
        [hello(1, 1), frame(3, b"short")].concat(),
        [hello(1, 1), hello(1, 1)].concat(),
        [hello(1, 1), data(2)].concat(),
        [hello(1, 1), data(0)].concat(),
    ];
    let counters = Arc::clone(node.counters());
    for (count, bytes) in (1..).zip(&violations) {
        let mut liar = connect(&group.peers[0], &group.identities[2]).await;
        liar.write_all(bytes).await.unwrap();
        closes(&mut liar).await;
        until("the violation is counted", || counters.peers()[1].protocol_errors.get() == count).await;
    }
    send(&honest, 1, numbered(1, 8)).await;
    let message = next(&mut inbound).await;
    assert_eq!((message.from, number_of(&message.bytes)), (id(2), 1));
    assert_eq!((counters.peers()[0].protocol_errors.get(), honest.counters().peers()[0].reconnects.get()), (0, 0));
}

/// The attack: a peer welcomes this node and closes, and connects itself to show that it is there, as often as it can.
#[tokio::test]
async fn a_peer_that_greets_and_goes_is_dialled_with_pauses() {
    let mut group = Group::new(2);
    let limits = MeshLimits {
        backoff_min: Duration::from_millis(5),
        backoff_max: Duration::from_millis(500),
        ..MeshLimits::default()
    };
    let (node, _inbound) = group.start(1, limits);
    let Listen::Bound(listener) = group.listen(2) else { panic!("it is bound") };
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let pins: Pins = [(group.identities[0].fingerprint(), Pinned::Node(id(1)))].into_iter().collect();
    let acceptor = TlsAcceptor::from(tls::server_config(&group.identities[1], pins, &[b"theta-mesh/1"]).unwrap());
    let (dials, began) = (Arc::new(AtomicU32::new(0)), Instant::now());
    let count = Arc::clone(&dials);
    let welcoming = tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            let Ok(mut stream) = acceptor.accept(tcp).await else { continue };
            let _ = stream.write_all(&frame(2, &[&1_u16.to_be_bytes()[..], &[0; 8]].concat())).await;
            let _ = stream.shutdown().await;
        }
    });
    let mut came = 0_u32;
    let again = || dials.load(Ordering::Relaxed) >= 3 && node.counters().peers()[0].reconnects.get() >= 2;
    while came < 60 || began.elapsed() < Duration::from_secs(3) || !again() {
        assert!(began.elapsed() < Duration::from_secs(120), "it came {came} times, and was hardly dialled");
        let mut stream = connect(&group.peers[0], &group.identities[1]).await;
        stream.write_all(&hello(1, 1)).await.unwrap();
        stream.read_exact(&mut [0; 15]).await.unwrap();
        came += 1;
    }
    welcoming.abort();
    let (dials, took) = (dials.load(Ordering::Relaxed), began.elapsed());
    // Pauses double up to half a second, of which jitter leaves a half: eight dials at first, and four a second.
    let most = 10 + took.as_millis() / 200;
    assert!(u128::from(dials) <= most, "it was dialled {dials} times in {took:?}, and came {came} times");
}

#[tokio::test]
async fn the_newer_of_two_connections_wins_and_goes_on_where_the_older_stopped() {
    let mut group = Group::new(2);
    let (_node, mut inbound) = group.start(1, quick());
    let data = |sequence: u64| frame(3, &[&sequence.to_be_bytes()[..], &numbered(7, 4)].concat());
    let mut older = connect(&group.peers[0], &group.identities[1]).await;
    older.write_all(&[hello(1, 1), data(1), data(2)].concat()).await.unwrap();
    next(&mut inbound).await;
    next(&mut inbound).await;
    let mut newer = connect(&group.peers[0], &group.identities[1]).await;
    newer.write_all(&hello(1, 1)).await.unwrap();
    closes(&mut older).await;
    let mut welcome = [0; 15];
    newer.read_exact(&mut welcome).await.unwrap();
    assert_eq!(welcome, [0, 0, 0, 11, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2], "two were delivered");
    newer.write_all(&data(3)).await.unwrap();
    assert_eq!(next(&mut inbound).await.from, id(2));
}

#[tokio::test]
async fn strangers_without_tls_do_not_keep_peers_out() {
    let mut group = Group::new(2);
    let limits = MeshLimits { handshakes: 8, handshake_timeout: Duration::from_millis(300), ..quick() };
    let (node, mut inbound) = group.start(1, limits);
    let mut strangers = Vec::new();
    for _ in 0..20 {
        strangers.push(TcpStream::connect(&group.peers[0].address).await.unwrap());
    }
    until("some are shed at once", || node.counters().handshakes_shed.get() > 0).await;
    let (peer, _unread) = group.start(2, quick());
    send(&peer, 1, numbered(1, 8)).await;
    assert_eq!(next(&mut inbound).await.from, id(2));
    until("the silent ones are dropped", || node.counters().handshake_failures.get() >= 20).await;
}

/// A regression: while every place of the handshake was held by sockets that sent nothing, or half a greeting, a peer
/// that came back was refused until they ended.
#[tokio::test]
async fn unfinished_handshakes_do_not_keep_peers_out_however_long_they_wait() {
    let mut group = Group::new(2);
    let limits = MeshLimits { handshakes: 8, handshake_timeout: Duration::from_secs(3600), ..quick() };
    let (node, mut inbound) = group.start(1, limits);
    let mut strangers = Vec::new();
    for number in 0..200 {
        let mut stranger = TcpStream::connect(&group.peers[0].address).await.unwrap();
        if number % 2 == 0 {
            // The beginning of a ClientHello that never ends.
            stranger.write_all(&[22, 3, 1, 2, 0, 1]).await.unwrap();
        }
        strangers.push(stranger);
    }
    until("the oldest are shed", || node.counters().handshakes_shed.get() >= 190).await;
    for round in 1..=3 {
        let (peer, _unread) = group.start(2, quick());
        send(&peer, 1, numbered(round, 8)).await;
        let message = next(&mut inbound).await;
        assert_eq!((message.from, number_of(&message.bytes)), (id(2), round));
        peer.shutdown();
        peer.stopped().await;
    }
    assert!(node.counters().handshake_failures.get() < 210, "those that fit in wait on");
}

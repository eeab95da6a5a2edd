//! Groups over real sockets: mutual TLS on loopback.

use std::{
    net::TcpListener,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::gated::Orchestrator;
use bytes::Bytes;
use prometheus_client::registry::Registry;
use theta_custody::CeremonyState;
use theta_names::NodeId;
use theta_network::{
    GeneratedIdentity, Identity, Inbound, PeerState, PeerStatus, SendError, Transport,
    mesh::{Listen, Mesh, MeshConfig, MeshLimits, MeshPeer},
};
use theta_orchestration::OrchestratorConfig;
use theta_schemes::Suite;
use theta_statements::KeyChange;
use tokio::sync::mpsc;

use crate::{
    group::{Group, PATIENCE, config, eventually},
    kept::{
        members::{Member, ceremony, create, name},
        threads as kept,
    },
    wire::{open, peer},
};

/// What the members of a group know of each other.
struct Members {
    identities: Vec<GeneratedIdentity>,
    addresses: Vec<String>,
}

impl Members {
    /// Nodes 1 to `n`, and their sockets.
    fn new(n: u16) -> (Self, Vec<TcpListener>) {
        let listeners: Vec<TcpListener> = (0..n).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let identities = (1..=n).map(|id| Identity::generate(&format!("node-{id}")).unwrap()).collect();
        let addresses = listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect();
        (Self { identities, addresses }, listeners)
    }

    /// Starts the mesh of node `id`.
    fn start(&self, id: u16, listen: Listen) -> (Arc<Mesh>, mpsc::Receiver<Inbound>) {
        let own = &self.identities[usize::from(id) - 1];
        let peers = (1_u16..).zip(self.identities.iter().zip(&self.addresses)).filter(|(other, _)| *other != id);
        let peers = peers.map(|(other, (identity, address))| MeshPeer {
            id: peer(other),
            address: address.clone(),
            certificate: identity.fingerprint,
        });
        Mesh::start(MeshConfig {
            local: peer(id),
            identity: Identity::from_pem(&own.certificate_pem, &own.key_pem).unwrap(),
            listen,
            peers: peers.collect(),
            limits: MeshLimits { backoff_max: Duration::from_millis(200), ..MeshLimits::default() },
        })
        .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_answers_over_tls_and_a_crashed_node_comes_back() {
    let suite = Suite::Sg02Ristretto255;
    let limits = OrchestratorConfig { resend_after: Duration::from_millis(100), ..config() };
    let group = Group::new(3, 4, &[suite], &limits);
    let (members, listeners) = Members::new(4);
    let start = |id: u16, listen| {
        let (mesh, inbound) = members.start(id, listen);
        let transport = Arc::clone(&mesh) as Arc<dyn Transport>;
        let mut registry = Registry::default();
        let orchestrator =
            Orchestrator::start(limits.clone(), group.key_store(id), transport, inbound, &mut registry).unwrap();
        (mesh, orchestrator)
    };
    let mut nodes: Vec<_> = (1..).zip(listeners).map(|(id, socket)| start(id, Listen::Bound(socket))).collect();
    let request = group.request(suite, "over the wire");
    let mut results = Vec::new();
    for (_, node) in &nodes {
        node.submit(request.clone()).await.unwrap();
    }
    for (_, node) in &nodes {
        results.push(tokio::time::timeout(PATIENCE, node.run(request.clone())).await.unwrap().unwrap().1.unwrap());
    }
    group.check(suite, "over the wire", &results);

    let (mesh, node) = nodes.pop().unwrap();
    node.shutdown();
    mesh.shutdown();
    mesh.stopped().await;
    drop((mesh, node));
    // The port is free again unless another connection of this machine happens to use it.
    let mut socket = TcpListener::bind(&members.addresses[3]);
    eventually("the port is free", || {
        if socket.is_err() {
            socket = TcpListener::bind(&members.addresses[3]);
        }
        socket.is_ok()
    })
    .await;
    let (_mesh, node) = start(4, Listen::Bound(socket.unwrap()));
    let again = tokio::time::timeout(PATIENCE, node.run(request)).await.unwrap().unwrap().1.unwrap();
    assert_eq!(again.result.expose(), results[0].result.expose());
    assert!(nodes.iter().all(|(_, node)| node.culprits().is_empty()));
}

/// What no receiver can decode: nothing, a request of another protocol, and a message as long as it may be of fields that mean nothing.
fn noise() -> [Bytes; 4] {
    let fields = |length: usize| [0x78, 1].into_iter().cycle().take(length).collect();
    [Bytes::new(), Bytes::from_static(b"GET / HTTP/1.1"), fields(60_000), fields(16 << 20)]
}

/// The attack: member 4 sends the others what is no message, as fast as they take it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_floods_with_noise_is_named_once_and_delays_nobody() {
    let suite = Suite::Cks05Ristretto255;
    let group = Group::new(2, 4, &[suite], &config());
    let (members, mut listeners) = Members::new(4);
    let (flooder, _unread) = members.start(4, Listen::Bound(listeners.pop().unwrap()));
    let start = |(id, socket): (u16, TcpListener)| {
        let (mesh, inbound) = members.start(id, Listen::Bound(socket));
        let mut registry = Registry::default();
        let node = Orchestrator::start(config(), group.key_store(id), Arc::clone(&mesh) as _, inbound, &mut registry);
        (mesh, node.unwrap(), registry)
    };
    let nodes: Vec<_> = (1..).zip(listeners).map(start).collect();
    let flood = tokio::spawn(async move {
        for message in noise().iter().cycle() {
            // What finds no room in a queue is not sent.
            if !flooder.broadcast(message.clone()).is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::task::yield_now().await;
        }
    });
    let counted = |registry: &Registry| {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
        let name = "theta_culprits_total{node=\"4\",misbehaviour=\"malformed_envelope\"} ";
        text.lines().find_map(|line| line.strip_prefix(name)).map_or(0, |count| count.parse().unwrap())
    };
    let began = std::time::Instant::now();
    let flooded = |least: u64| nodes.iter().all(|(_, _, registry)| counted(registry) >= least);
    eventually("the flood has begun", || flooded(200)).await;
    for number in 0..20 {
        let text = format!("in a flood {number}");
        let request = group.request(suite, &text);
        let mut results = Vec::new();
        for (_, node, _) in &nodes {
            node.submit(request.clone()).await.unwrap();
        }
        for (_, node, _) in &nodes {
            let run = tokio::time::timeout(PATIENCE, node.run(request.clone()));
            results.push(run.await.expect("honest messages flow").unwrap().1.unwrap());
        }
        group.check(suite, &text, &results);
    }
    eventually("the flood goes on", || flooded(2_000)).await;
    flood.abort();
    let minutes = usize::try_from(began.elapsed().as_secs() / 60).unwrap() + 1;
    for (mesh, node, _) in &nodes {
        let culprits = node.culprits();
        assert!(culprits.iter().all(|record| record.culprit.party == peer(4)));
        assert!(culprits.len() <= 16 * minutes, "{} records", culprits.len());
        assert!(mesh.status().iter().all(|peer| peer.state == PeerState::Connected));
    }
}

/// The sender and kind of each message.
type Tally = Arc<Mutex<Vec<(u16, usize)>>>;

/// A mesh whose messages are counted on their way out.
struct Counted {
    mesh: Arc<Mesh>,
    tally: Tally,
}

impl Transport for Counted {
    fn local(&self) -> NodeId {
        self.mesh.local()
    }

    fn peers(&self) -> Vec<NodeId> {
        self.mesh.peers()
    }

    fn send(&self, to: NodeId, message: Bytes) -> Result<(), SendError> {
        self.tally.lock().unwrap().push((self.local().get(), open(&message).kind as usize));
        self.mesh.send(to, message)
    }

    fn status(&self) -> Vec<PeerStatus> {
        self.mesh.status()
    }
}

/// Each coordinator's first signature needs commitments, packages and shares; every later one packages and shares.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_frost_signature_takes_one_round() {
    const SIGNATURES: usize = 16;
    let suite = Suite::FrostEd25519;
    // Nothing is sent again because the machine is slow.
    let limits = OrchestratorConfig { resend_after: Duration::from_secs(3_600), ..config() };
    let group = Group::new(3, 4, &[suite], &limits);
    let (members, listeners) = Members::new(4);
    let tally = Tally::default();
    let start = |(id, socket): (u16, TcpListener)| {
        let (mesh, inbound) = members.start(id, Listen::Bound(socket));
        let transport = Arc::new(Counted { mesh, tally: Arc::clone(&tally) });
        let registry = &mut Registry::default();
        Orchestrator::start(limits.clone(), group.key_store(id), transport, inbound, registry).unwrap()
    };
    let nodes: Vec<Arc<Orchestrator>> = (1..).zip(listeners).map(start).collect();
    let (mut met, mut in_one_round) = (Vec::new(), 0);
    for i in 0..SIGNATURES {
        let text = format!("message {i}");
        let request = group.request(suite, &text);
        for node in &nodes {
            node.submit(request.clone()).await.unwrap();
        }
        let mut results = Vec::new();
        for node in &nodes {
            results.push(tokio::time::timeout(PATIENCE, node.run(request.clone())).await.unwrap().unwrap().1.unwrap());
        }
        group.check(suite, &text, &results);
        let sent = core::mem::take(&mut *tally.lock().unwrap());
        let (coordinator, _) = *sent.iter().find(|(_, round)| *round == 2).unwrap();
        let count = |round: usize| sent.iter().filter(|(_, of)| *of == round).count();
        // Commitments, packages, shares, signatures, requests.
        let counts = [1, 2, 3, 4, 5].map(count);
        if met.contains(&coordinator) {
            assert_eq!(counts, [0, 2, 2, 3, 0], "{text}");
            in_one_round += 1;
        } else {
            assert!(counts[0] >= 2 && counts[1..4] == [2, 2, 3], "{text}: {counts:?}");
            met.push(coordinator);
        }
    }
    assert!(in_one_round >= SIGNATURES - 4);
    assert!(nodes.iter().all(|node| node.culprits().is_empty()));
}

/// Nodes 1 to 3 make a key, which moves to nodes 3 to 5. Node 5 is down at first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_made_and_moved_over_tls() {
    let (members, mut listeners) = Members::new(5);
    let disks = Member::group(2, 5);
    let start = |id: u16, socket| {
        let (mesh, inbound) = members.start(id, Listen::Bound(socket));
        let transport = Arc::clone(&mesh) as Arc<dyn Transport>;
        let custodian = disks[usize::from(id) - 1].custodian(id.into());
        let mut registry = Registry::default();
        Orchestrator::start(kept::limits(), custodian, transport, inbound, &mut registry).unwrap()
    };
    let fifth = listeners.pop().unwrap();
    let mut nodes: Vec<_> = (1..).zip(listeners).map(|(id, socket)| start(id, socket)).collect();
    let request = ceremony(1, create("key", Suite::FrostEd25519, 2, &[1, 2, 3]));
    kept::hold(&nodes.iter().collect::<Vec<_>>(), &request).await;
    kept::answers(&nodes[..3].iter().collect::<Vec<_>>(), "where they were").await;

    nodes.push(start(5, fifth));
    let change = KeyChange::Reshare { key: name("key"), version: None, k: 2, holders: vec![5, 3, 4] };
    let moved = ceremony(2, change);
    // Nodes that do not hold the key take part as the ledger says.
    let id = kept::begin(&[&nodes[0], &nodes[1], &nodes[2]], &moved).await;
    for node in &nodes {
        let report = kept::end(node, id).await;
        assert!(matches!(report.state, CeremonyState::Activated { .. }), "{report:?}");
    }
    kept::answers(&nodes[2..].iter().collect::<Vec<_>>(), "where they are").await;
    let public = |node: &Arc<Orchestrator>| node.keys().get("key").unwrap().public.public_key_bytes().to_vec();
    assert!(nodes.iter().all(|node| public(node) == public(&nodes[0])));
    assert!(nodes[0].keys().get("key").unwrap().expose_share().is_none());
    let culprits: Vec<_> = nodes.iter().map(|node| node.culprits()).collect();
    assert!(culprits.iter().all(Vec::is_empty), "{culprits:?}");
}

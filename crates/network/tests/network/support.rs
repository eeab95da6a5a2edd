//! A group of nodes with real certificates and real sockets.

use core::time::Duration;
use std::{net::TcpListener, sync::Arc};

use bytes::Bytes;
use theta_names::NodeId;
use theta_network::{
    Identity, Inbound, PeerStatus, SendError, Transport,
    mesh::{Listen, Mesh, MeshConfig, MeshLimits, MeshPeer},
};
use tokio::{sync::mpsc, time::timeout};

pub(crate) type Running = (Arc<Mesh>, mpsc::Receiver<Inbound>);

pub(crate) fn id(number: usize) -> NodeId {
    NodeId::try_from(u16::try_from(number).unwrap()).unwrap()
}

pub(crate) fn new_identity() -> Identity {
    let made = Identity::generate("node").unwrap();
    Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap()
}

pub(crate) fn quick() -> MeshLimits {
    MeshLimits {
        backoff_min: Duration::from_millis(1),
        backoff_max: Duration::from_millis(20),
        ..MeshLimits::default()
    }
}

/// Members 1 to n with listeners that are already bound, so that all addresses are known before any node starts.
pub(crate) struct Group {
    pub(crate) identities: Vec<Identity>,
    pub(crate) peers: Vec<MeshPeer>,
    listeners: Vec<Option<TcpListener>>,
}

impl Group {
    pub(crate) fn new(n: usize) -> Self {
        let identities: Vec<_> = (0..n).map(|_| new_identity()).collect();
        let listeners: Vec<_> = (0..n).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let peers = (0..n)
            .map(|i| MeshPeer {
                id: id(i + 1),
                address: listeners[i].local_addr().unwrap().to_string(),
                certificate: identities[i].fingerprint(),
            })
            .collect();
        Self { identities, peers, listeners: listeners.into_iter().map(Some).collect() }
    }

    pub(crate) fn config(&mut self, number: usize, limits: MeshLimits) -> MeshConfig {
        let local = &self.peers[number - 1];
        let listen = match self.listeners[number - 1].take() {
            Some(listener) => Listen::Bound(listener),
            None => Listen::Address(local.address.parse().unwrap()),
        };
        MeshConfig {
            local: local.id,
            identity: self.identities[number - 1].clone(),
            listen,
            peers: self.peers.iter().filter(|peer| peer.id != local.id).cloned().collect(),
            limits,
        }
    }

    /// Starts a node; the second time, on the address of the first.
    pub(crate) fn start(&mut self, number: usize, limits: MeshLimits) -> Running {
        Mesh::start(self.config(number, limits)).unwrap()
    }

    pub(crate) fn start_all(&mut self, limits: &MeshLimits) -> Vec<Running> {
        (1..=self.peers.len()).map(|number| self.start(number, limits.clone())).collect()
    }
}

pub(crate) fn status(mesh: &Mesh, peer: usize) -> PeerStatus {
    mesh.status().into_iter().find(|status| status.peer == id(peer)).unwrap()
}

/// Waits until `holds` returns true, however slow the machine is.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never happened: {what}");
}

pub(crate) async fn next(inbound: &mut mpsc::Receiver<Inbound>) -> Inbound {
    timeout(Duration::from_secs(30), inbound.recv()).await.expect("a message within 30 s").expect("a running mesh")
}

/// Sends, waiting while the queue is full.
pub(crate) async fn send(mesh: &Mesh, to: usize, message: Bytes) {
    loop {
        match mesh.send(id(to), message.clone()) {
            Ok(()) => return,
            Err(SendError::QueueFull(_)) => tokio::time::sleep(Duration::from_millis(1)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A message that carries its number, padded to some length.
pub(crate) fn numbered(number: u32, length: usize) -> Bytes {
    let mut message = number.to_be_bytes().to_vec();
    message.resize(length.max(4), u8::try_from(number % 251).unwrap());
    message.into()
}

pub(crate) fn number_of(message: &[u8]) -> u32 {
    let number = u32::from_be_bytes(message[..4].try_into().unwrap());
    let padding = u8::try_from(number % 251).unwrap();
    assert!(message[4..].iter().all(|byte| *byte == padding), "message {number} is damaged");
    number
}

/// A small generator for test data; its seed makes failures repeatable.
#[derive(Debug)]
pub(crate) struct Lcg(pub(crate) u64);

impl Lcg {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

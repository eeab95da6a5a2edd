//! A group of nodes with real certificates and real sockets, of which each connects to some others.

use core::time::Duration;
use std::{net::TcpListener, sync::Arc};

use bytes::Bytes;
use theta_gossip::{Gossip, GossipConfig, GossipError, GossipLimits};
use theta_names::NodeId;
use theta_network::{
    GroupTransport as _, Identity, Inbound, SendError, Transport as _,
    carrier::CarrierLimits,
    mesh::{Listen, MeshPeer},
};
use tokio::{sync::mpsc, time::timeout};

pub(crate) type Running = (Arc<Gossip>, mpsc::Receiver<Inbound>);

pub(crate) fn id(number: usize) -> NodeId {
    NodeId::try_from(u16::try_from(number).unwrap()).unwrap()
}

/// Members 1 to n with listeners that are already bound, so that all addresses are known before any node starts.
pub(crate) struct Group {
    pub(crate) identities: Vec<Identity>,
    pub(crate) peers: Vec<MeshPeer>,
    listeners: Vec<Option<TcpListener>>,
}

impl Group {
    pub(crate) fn new(n: usize) -> Self {
        let identities: Vec<_> = (0..n)
            .map(|_| {
                let made = Identity::generate("node").unwrap();
                Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap()
            })
            .collect();
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

    pub(crate) fn config(&mut self, number: usize, neighbours: &[usize]) -> GossipConfig {
        let local = &self.peers[number - 1];
        let listen = match self.listeners[number - 1].take() {
            Some(listener) => Listen::Bound(listener),
            None => Listen::Address(local.address.parse().unwrap()),
        };
        GossipConfig {
            group: "test".to_owned(),
            local: local.id,
            identity: self.identities[number - 1].clone(),
            listen,
            peers: self.peers.iter().filter(|peer| peer.id != local.id).cloned().collect(),
            neighbours: neighbours.iter().map(|number| id(*number)).collect(),
            carrier: CarrierLimits::default(),
            limits: GossipLimits::default(),
        }
    }

    /// Starts a node; the second time, on the address of the first.
    pub(crate) async fn start(&mut self, number: usize, neighbours: &[usize]) -> Running {
        for _ in 0..200 {
            match Gossip::start(self.config(number, neighbours)) {
                Ok(running) => return running,
                // The socket of its life before closes when its tasks have ended.
                Err(GossipError::Peers(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(error) => panic!("{error}"),
            }
        }
        panic!("node {number} does not start");
    }

    /// Starts all, each connected to the next and the last to the first: nobody reaches more than two others.
    pub(crate) async fn start_ring(&mut self) -> Vec<Running> {
        let n = self.peers.len();
        let mut running = Vec::new();
        for number in 1..=n {
            running.push(self.start(number, &[number % n + 1]).await);
        }
        running
    }
}

/// Waits until `holds` returns true, however slow the machine is.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never happened: {what}");
}

/// Waits until all of these have sessions with all others of these.
pub(crate) async fn connected(nodes: &[&Running]) {
    let among: Vec<NodeId> = nodes.iter().map(|(node, _)| node.local()).collect();
    until("all sessions stand", || {
        nodes.iter().all(|(node, _)| node.unreached().iter().all(|peer| !among.contains(&peer.id)))
    })
    .await;
}

pub(crate) async fn next(inbound: &mut mpsc::Receiver<Inbound>) -> Inbound {
    timeout(Duration::from_secs(60), inbound.recv()).await.expect("a message within 60 s").expect("a running node")
}

/// Sends, waiting while the queue is full.
pub(crate) async fn send(node: &Gossip, to: usize, message: Bytes) {
    loop {
        match node.send(id(to), message.clone()) {
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

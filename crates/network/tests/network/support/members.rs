//! Members of a group with real certificates and real sockets, and numbered messages between them: for the tests of all transports, those
//! of `theta-gossip` among them.

use core::time::Duration;
use std::net::TcpListener;

use bytes::Bytes;
use theta_names::NodeId;
use theta_network::{
    Identity, Inbound, SendError, Transport,
    mesh::{Listen, MeshPeer},
};
use tokio::{sync::mpsc, time::timeout};

pub(crate) fn id(number: usize) -> NodeId {
    NodeId::try_from(u16::try_from(number).unwrap()).unwrap()
}

pub(crate) fn new_identity() -> Identity {
    let made = Identity::generate("node").unwrap();
    Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap()
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

    /// Where a member listens; the second time, at the address of the first.
    pub(crate) fn listen(&mut self, number: usize) -> Listen {
        match self.listeners[number - 1].take() {
            Some(listener) => Listen::Bound(listener),
            None => Listen::Address(self.peers[number - 1].address.parse().unwrap()),
        }
    }

    /// All members but this one.
    pub(crate) fn others(&self, number: usize) -> Vec<MeshPeer> {
        self.peers.iter().filter(|peer| peer.id != id(number)).cloned().collect()
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

pub(crate) async fn next(inbound: &mut mpsc::Receiver<Inbound>) -> Inbound {
    timeout(Duration::from_secs(60), inbound.recv()).await.expect("a message within 60 s").expect("a running node")
}

/// Sends, waiting while the queue is full.
pub(crate) async fn send_by(node: &impl Transport, to: usize, message: Bytes) {
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

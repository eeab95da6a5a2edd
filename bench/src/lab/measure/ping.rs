//! The network layer alone: messages to another place and back, by the nodes' mesh and by a bare TCP connection.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use theta::exit::Failure;
use theta_names::NodeId;
use theta_network::{
    Identity, Inbound, PeerState, Transport as _,
    mesh::{Listen, Mesh, MeshConfig, MeshLimits, MeshPeer},
};
use theta_wan::Profile;
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc,
    time::timeout,
};

use crate::{
    lab::protocol::{Order, Pinged, Transport},
    wan::{self, Reach},
};

/// How long the mesh may take to connect.
const CONNECTING: Duration = Duration::from_secs(30);
/// After so long a message is lost.
const LOST: Duration = Duration::from_secs(10);
/// Messages that are sent before those that count.
const WARMING: u32 = 5;

/// A node of the mesh, with the threads that are where it is.
struct Node {
    mesh: Arc<Mesh>,
    runtime: Runtime,
}

/// One node in each place of a profile; node 1 asks, the others answer.
pub(super) struct Wires {
    nodes: Vec<Node>,
    inbound: mpsc::Receiver<Inbound>,
    echoes: Vec<SocketAddr>,
    reach: Reach,
    places: Vec<String>,
}

impl Wires {
    /// Connects them. To be called while the process has one thread.
    pub(super) fn lay(profile: Option<&str>) -> Result<Self, Failure> {
        let profile = profile.map(Profile::find).transpose().map_err(|error| Failure::Usage(error.to_string()))?;
        // Two nodes of a profile with one region have something between them, too.
        let count = profile.as_ref().map_or(1, |profile| profile.regions().len()).max(2);
        let count = u16::try_from(count).map_err(Failure::internal)?;
        let reach = match &profile {
            Some(profile) => wan::wires(profile, count)?,
            None => Reach::Here,
        };
        let places = super::places(profile.as_ref(), count);
        let listeners = (1..=count).map(|node| bind(&reach, node)).collect::<Result<Vec<_>, _>>()?;
        let identities = (1..=count).map(|_| identity()).collect::<Result<Vec<_>, _>>()?;
        let mut peers = Vec::new();
        for ((node, listener), identity) in (1..).zip(&listeners).zip(&identities) {
            let address = listener.local_addr().map_err(Failure::internal)?.to_string();
            peers.push(MeshPeer { id: id(node)?, address, certificate: identity.fingerprint() });
        }
        let mut nodes = Vec::new();
        let mut receivers = Vec::new();
        for ((node, listener), identity) in (1..).zip(listeners).zip(identities) {
            let runtime = runtime(&reach, node)?;
            let others = peers.iter().filter(|peer| peer.id.get() != node).cloned().collect();
            let (mesh, inbound) = {
                let _inside = runtime.enter();
                let config = MeshConfig {
                    local: id(node)?,
                    identity,
                    listen: Listen::Bound(listener),
                    peers: others,
                    limits: MeshLimits::default(),
                };
                Mesh::start(config).map_err(Failure::internal)?
            };
            nodes.push(Node { mesh, runtime });
            receivers.push(inbound);
        }
        let mut receivers = receivers.into_iter();
        let inbound = receivers.next().ok_or_else(|| Failure::internal("a mesh without nodes"))?;
        for (node, inbound) in nodes.iter().skip(1).zip(receivers) {
            node.runtime.spawn(answer(Arc::clone(&node.mesh), inbound));
        }
        let echoes = (2..=count).map(|node| echo(&reach, node)).collect::<Result<Vec<_>, _>>()?;
        let wires = Self { nodes, inbound, echoes, reach, places };
        wires.connect()?;
        Ok(wires)
    }

    fn connect(&self) -> Result<(), Failure> {
        let began = Instant::now();
        let is_connected = |node: &Node| node.mesh.status().iter().all(|peer| peer.state == PeerState::Connected);
        while !self.nodes.iter().all(is_connected) {
            if began.elapsed() > CONNECTING {
                return Err(Failure::NoAnswer("the mesh does not connect".to_owned()));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// The names of the places of the nodes.
    pub(super) fn places(&self) -> Vec<String> {
        self.places.clone()
    }

    /// Sends messages to a node and back, one after the other.
    pub(super) fn ping(&mut self, order: &Order) -> Result<Pinged, Failure> {
        let Order::Ping { transport, peer, bytes, count } = order else { return Err(Failure::internal("not a ping")) };
        let bytes = usize::try_from(*bytes).map_err(Failure::internal)?;
        match transport {
            Transport::Tcp => {
                let address = peer.checked_sub(2).and_then(|place| self.echoes.get(usize::from(place)));
                let address = *address.ok_or_else(|| Failure::internal("a ping to nobody"))?;
                let pinged = self.reach.within(1, || bare(address, bytes, *count));
                pinged.map_err(|error| Failure::Failed(format!("the bare connection failed: {error}")))
            }
            Transport::Mesh => self.meshed(id(*peer)?, bytes, *count),
        }
    }

    fn meshed(&mut self, peer: NodeId, bytes: usize, count: u32) -> Result<Pinged, Failure> {
        let Some(first) = self.nodes.first() else { return Err(Failure::internal("a mesh without nodes")) };
        let mut pinged = Pinged::default();
        for number in 0..WARMING + count {
            let mut message = number.to_be_bytes().to_vec();
            message.resize(bytes.max(message.len()), 0);
            let began = Instant::now();
            first.mesh.send(peer, Bytes::from(message)).map_err(Failure::internal)?;
            let expected = number.to_be_bytes();
            let inbound = &mut self.inbound;
            // An answer that came too late for its own turn is none for this one.
            let own = async move {
                while let Some(message) = inbound.recv().await {
                    if message.bytes.get(..4) == Some(&expected[..]) {
                        return;
                    }
                }
            };
            let back = first.runtime.block_on(async { timeout(LOST, own).await });
            match back {
                Ok(()) if number >= WARMING => pinged.milliseconds.push(began.elapsed().as_secs_f64() * 1e3),
                Ok(()) => {}
                Err(_) => pinged.lost += 1,
            }
        }
        Ok(pinged)
    }
}

fn id(node: u16) -> Result<NodeId, Failure> {
    NodeId::try_from(node).map_err(Failure::internal)
}

fn identity() -> Result<Identity, Failure> {
    let made = Identity::generate("node").map_err(Failure::internal)?;
    Identity::from_pem(&made.certificate_pem, &made.key_pem).map_err(Failure::internal)
}

/// A listener where a node is.
fn bind(reach: &Reach, node: u16) -> Result<TcpListener, Failure> {
    let address = reach.address(node).ok_or_else(|| Failure::internal("a node without an address"))?;
    reach.within(node, || TcpListener::bind((address, 0))).map_err(Failure::internal)
}

/// A runtime whose threads are where a node is.
fn runtime(reach: &Reach, node: u16) -> Result<Runtime, Failure> {
    let lost = Arc::new(AtomicBool::new(false));
    let (there, strayed) = (reach.clone(), Arc::clone(&lost));
    let move_in = move || {
        if there.enter(node).is_err() {
            strayed.store(true, Ordering::SeqCst);
        }
    };
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().on_thread_start(move_in).build();
    let runtime = runtime.map_err(Failure::internal)?;
    runtime.block_on(runtime.spawn(async {})).map_err(Failure::internal)?;
    if lost.load(Ordering::SeqCst) {
        Err(Failure::internal("a thread cannot enter a node's network"))
    } else {
        Ok(runtime)
    }
}

/// Sends every message back to its sender.
async fn answer(mesh: Arc<Mesh>, mut inbound: mpsc::Receiver<Inbound>) {
    while let Some(message) = inbound.recv().await {
        // A full queue loses it, which the sender counts.
        let _ = mesh.send(message.from, Bytes::copy_from_slice(&message.bytes));
    }
}

/// Sends back what comes on bare connections to a node. The threads end with the process.
fn echo(reach: &Reach, node: u16) -> Result<SocketAddr, Failure> {
    let listener = bind(reach, node)?;
    let address = listener.local_addr().map_err(Failure::internal)?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = echo_on(stream);
        }
    });
    Ok(address)
}

/// A message is its length, in four bytes, and so many bytes.
fn echo_on(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut message = Vec::new();
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        message.resize(4 + usize::try_from(u32::from_be_bytes(length)).unwrap_or(0), 0);
        let (head, rest) = message.split_at_mut(4);
        head.copy_from_slice(&length);
        stream.read_exact(rest)?;
        stream.write_all(&message)?;
    }
}

/// Round trips on a bare connection.
fn bare(address: SocketAddr, bytes: usize, count: u32) -> io::Result<Pinged> {
    let mut stream = TcpStream::connect_timeout(&address, LOST)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOST))?;
    let length = u32::try_from(bytes).map_err(io::Error::other)?;
    let mut message = length.to_be_bytes().to_vec();
    message.resize(4 + bytes, 0);
    let mut back = message.clone();
    let mut pinged = Pinged::default();
    for number in 0..WARMING + count {
        let began = Instant::now();
        stream.write_all(&message)?;
        stream.read_exact(&mut back)?;
        if number >= WARMING {
            pinged.milliseconds.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(pinged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_there_and_back() {
        let mut wires = Wires::lay(None).unwrap();
        assert_eq!(wires.places().len(), 2);
        for transport in Transport::ALL {
            for bytes in [1, 100_000] {
                let pinged = wires.ping(&Order::Ping { transport, peer: 2, bytes, count: 10 }).unwrap();
                assert_eq!((pinged.milliseconds.len(), pinged.lost), (10, 0), "{transport:?}");
                assert!(pinged.milliseconds.iter().all(|time| *time > 0.0));
            }
        }
        let nobody = Order::Ping { transport: Transport::Tcp, peer: 3, bytes: 1, count: 1 };
        assert!(wires.ping(&nobody).is_err());
    }
}

//! Measures gossip beside the mesh: n nodes in one process, real sockets and TLS on loopback, 256-byte messages to all.
//!
//! `cargo run --release -p theta-gossip --example gossip_ping -- mesh|gossip|ring [N]`
//!
//! `mesh`: connections between all. `gossip`: each node has as many neighbours as its degree says. `ring`: each has two.
//!
//! The CPU time is that of the whole process, divided by the number of messages delivered; a broadcast to six peers delivers six. The bytes are those that
//! connections of gossip carried within TLS, divided by the same number.

use std::{
    env,
    error::Error,
    fs,
    io::{Write, stdout},
    net::TcpListener,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use theta_gossip::{Gossip, GossipConfig, GossipLimits};
use theta_names::NodeId;
use theta_network::{
    GroupTransport, Identity, Inbound,
    carrier::CarrierLimits,
    mesh::{Listen, Mesh, MeshConfig, MeshLimits, MeshPeer},
};
use tokio::{sync::mpsc, time::sleep};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const MESSAGE_BYTES: usize = 256;

/// A node, and its gossip if it has one.
struct Running {
    transport: Arc<dyn GroupTransport>,
    inbound: mpsc::Receiver<Inbound>,
    gossip: Option<Arc<Gossip>>,
}

/// How many nodes send, how often, with which pause.
struct Load {
    name: &'static str,
    senders: usize,
    times: u32,
    pause: Duration,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let kind = arguments.first().map_or("gossip", String::as_str);
    let n: u16 = arguments.get(1).map_or(Ok(7), |text| text.parse())?;
    let begin = Instant::now();
    let mut nodes = start(kind, n)?;
    while nodes.iter().any(|node| !node.transport.unreached().is_empty()) {
        sleep(Duration::from_millis(10)).await;
    }
    writeln!(stdout(), "{kind}, n = {n}: usable after {:.2?}, {:.2?} of CPU", begin.elapsed(), cpu_time()?)?;
    let all = usize::from(n);
    let loads = [
        Load { name: "warm-up", senders: all, times: 10, pause: Duration::from_millis(50) },
        Load { name: "1 node, 50/s", senders: 1, times: 200, pause: Duration::from_millis(20) },
        Load { name: "all nodes, 10/s each", senders: all, times: 50, pause: Duration::from_millis(100) },
        Load { name: "all nodes, 50/s each", senders: all, times: 200, pause: Duration::from_millis(20) },
    ];
    // What the nodes say to each other without being asked to.
    let (cpu, bytes) = (cpu_time()?, sent(&nodes));
    sleep(Duration::from_secs(5)).await;
    let idle = cpu_time()?.saturating_sub(cpu).as_secs_f64() / 5.0;
    writeln!(
        stdout(),
        "idle: {:.1} % of a core for all nodes, {} KiB/s",
        idle * 100.0,
        (sent(&nodes) - bytes) / 5 / 1024
    )?;
    writeln!(
        stdout(),
        "{:24} {:>9} {:>9} {:>9} {:>12} {:>11}",
        "load",
        "p50 ms",
        "p95 ms",
        "max ms",
        "CPU us/msg",
        "bytes/msg"
    )?;
    for load in loads {
        nodes = measure(&load, nodes).await?;
    }
    Ok(())
}

fn start(kind: &str, n: u16) -> Outcome<Vec<Running>> {
    let mut members = Vec::new();
    for number in 1..=n {
        let made = Identity::generate(&format!("node-{number}"))?;
        let identity = Identity::from_pem(&made.certificate_pem, &made.key_pem)?;
        members.push((NodeId::try_from(number)?, identity, TcpListener::bind("127.0.0.1:0")?));
    }
    let mut everyone = Vec::new();
    for (id, identity, listener) in &members {
        let address = listener.local_addr()?.to_string();
        everyone.push(MeshPeer { id: *id, address, certificate: identity.fingerprint() });
    }
    let mut nodes = Vec::new();
    for (local, identity, listener) in members {
        let peers = everyone.iter().filter(|peer| peer.id != local).cloned().collect();
        let listen = Listen::Bound(listener);
        if kind == "mesh" {
            let config = MeshConfig { local, identity, listen, peers, limits: MeshLimits::default() };
            let (mesh, inbound) = Mesh::start(config)?;
            nodes.push(Running { transport: mesh, inbound, gossip: None });
            continue;
        }
        let next = NodeId::try_from(local.get() % n + 1)?;
        let (gossip, inbound) = Gossip::start(GossipConfig {
            group: "measured".to_owned(),
            local,
            identity,
            listen,
            peers,
            neighbours: if kind == "ring" { vec![next] } else { Vec::new() },
            carrier: CarrierLimits::default(),
            limits: GossipLimits::default(),
        })?;
        nodes.push(Running { transport: Arc::clone(&gossip) as _, inbound, gossip: Some(gossip) });
    }
    Ok(nodes)
}

fn sent(nodes: &[Running]) -> u64 {
    nodes.iter().filter_map(|node| Some(node.gossip.as_ref()?.counts().bytes_sent)).sum()
}

async fn measure(load: &Load, nodes: Vec<Running>) -> Outcome<Vec<Running>> {
    let origin = Instant::now();
    let (cpu, bytes) = (cpu_time()?, sent(&nodes));
    let mut readers = Vec::new();
    let mut transports = Vec::new();
    for (at, node) in nodes.into_iter().enumerate() {
        let senders = load.senders - usize::from(at < load.senders);
        let expected = senders * usize::try_from(load.times)?;
        transports.push(Arc::clone(&node.transport));
        readers.push(tokio::spawn(read(node, expected, origin)));
    }
    for _ in 0..load.times {
        for transport in transports.iter().take(load.senders) {
            let mut message = u64::try_from(origin.elapsed().as_micros())?.to_be_bytes().to_vec();
            message.resize(MESSAGE_BYTES, 7);
            transport.broadcast(Bytes::from(message));
        }
        sleep(load.pause).await;
    }
    let (mut nodes, mut delays) = (Vec::new(), Vec::new());
    for reader in readers {
        let (node, measured) = reader.await??;
        nodes.push(node);
        delays.extend(measured);
    }
    let cpu = cpu_time()?.saturating_sub(cpu);
    delays.sort_unstable();
    let count = u64::try_from(delays.len())?.max(1);
    let at = |part: usize| -> f64 {
        let place = (delays.len() * part / 100).min(delays.len().saturating_sub(1));
        delays.get(place).map_or(0.0, |delay| delay.as_secs_f64() * 1e3)
    };
    let per_message = cpu.as_secs_f64() * 1e6 / f64::from(u32::try_from(count)?);
    let bytes = (sent(&nodes) - bytes) / count;
    writeln!(
        stdout(),
        "{:24} {:>9.2} {:>9.2} {:>9.2} {per_message:>12.1} {bytes:>11}",
        load.name,
        at(50),
        at(95),
        at(100)
    )?;
    Ok(nodes)
}

async fn read(mut node: Running, expected: usize, origin: Instant) -> Outcome<(Running, Vec<Duration>)> {
    let mut delays = Vec::with_capacity(expected);
    while delays.len() < expected {
        let message = node.inbound.recv().await.ok_or("a node has stopped")?;
        let sent = message.bytes.first_chunk().map_or(0, |sent| u64::from_be_bytes(*sent));
        delays.push(origin.elapsed().saturating_sub(Duration::from_micros(sent)));
    }
    Ok((node, delays))
}

/// User and system time of this process. Linux counts in ticks of 10 ms.
fn cpu_time() -> Outcome<Duration> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let after = text.rsplit_once(')').ok_or("a line of /proc that is none")?.1;
    let mut words = after.split_whitespace().skip(11);
    let mut ticks = || -> Outcome<u64> { Ok(words.next().ok_or("a line of /proc that is too short")?.parse()?) };
    Ok(Duration::from_millis((ticks()? + ticks()?) * 10))
}

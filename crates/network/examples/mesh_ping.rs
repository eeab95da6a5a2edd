//! Measures the mesh: seven nodes in one process, real sockets and TLS on loopback, 256-byte messages to all.
//!
//! `cargo run --release -p theta-network --example mesh_ping`
//!
//! The CPU time is that of the whole process (both ends of every connection, and the kernel's work for it) divided by
//! the number of messages delivered; a broadcast to six peers delivers six.

use std::{
    error::Error,
    fs,
    io::{Write, stdout},
    net::TcpListener,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use theta_names::NodeId;
use theta_network::{
    Identity, Inbound, PeerState, Transport,
    mesh::{Listen, Mesh, MeshConfig, MeshLimits, MeshPeer},
};
use tokio::{sync::mpsc, time::sleep};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;
type Running = (Arc<Mesh>, mpsc::Receiver<Inbound>);

const NODES: u16 = 7;
const MESSAGE_BYTES: usize = 256;

/// How many broadcasts a node makes at a time, the pause between, and the number of repetitions.
struct Load {
    name: &'static str,
    senders: u16,
    burst: u32,
    pause: Duration,
    times: u32,
}

const LOADS: [Load; 5] = [
    Load { name: "warm-up", senders: NODES, burst: 1, pause: Duration::from_millis(5), times: 50 },
    Load { name: "idle: 1 node, 200/s", senders: 1, burst: 1, pause: Duration::from_millis(5), times: 600 },
    Load { name: "paced: 7 nodes, 500/s each", senders: NODES, burst: 1, pause: Duration::from_millis(2), times: 2000 },
    Load {
        name: "bursts: 7 nodes, 16 each 20 ms",
        senders: NODES,
        burst: 16,
        pause: Duration::from_millis(20),
        times: 200,
    },
    Load { name: "flood: 7 nodes", senders: NODES, burst: 20_000, pause: Duration::ZERO, times: 1 },
];

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut nodes = start()?;
    while nodes.iter().any(|(mesh, _)| mesh.status().iter().any(|peer| peer.state != PeerState::Connected)) {
        sleep(Duration::from_millis(5)).await;
    }
    writeln!(
        stdout(),
        "{:30} {:>10} {:>9} {:>9} {:>9} {:>12}",
        "load",
        "delivered/s",
        "p50 us",
        "p95 us",
        "p99 us",
        "CPU us/msg"
    )?;
    for load in LOADS {
        nodes = measure(&load, nodes).await?;
    }
    Ok(())
}

fn start() -> Outcome<Vec<Running>> {
    let mut members = Vec::new();
    for number in 1..=NODES {
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
        nodes.push(Mesh::start(MeshConfig { local, identity, listen, peers, limits: MeshLimits::default() })?);
    }
    Ok(nodes)
}

async fn measure(load: &Load, nodes: Vec<Running>) -> Outcome<Vec<Running>> {
    let broadcasts = load.burst * load.times;
    let (cpu, epoch) = (cpu_time()?, Instant::now());
    let mut tasks = Vec::new();
    for (mesh, inbound) in nodes {
        let is_sender = mesh.local().get() <= load.senders;
        let expected = u32::from(load.senders - u16::from(is_sender)) * broadcasts;
        let reader = tokio::spawn(read(inbound, expected, epoch));
        let writer =
            is_sender.then(|| tokio::spawn(write(Arc::clone(&mesh), load.burst, load.times, load.pause, epoch)));
        tasks.push((mesh, reader, writer));
    }
    let (mut nodes, mut latencies) = (Vec::new(), Vec::new());
    for (mesh, reader, writer) in tasks {
        if let Some(writer) = writer {
            writer.await??;
        }
        let (inbound, mut seen) = reader.await??;
        latencies.append(&mut seen);
        nodes.push((mesh, inbound));
    }
    let (cpu, wall) = (cpu_time()?.saturating_sub(cpu), epoch.elapsed());
    latencies.sort_unstable();
    let percentile = |percent: usize| latencies.get(latencies.len() * percent / 100).copied().unwrap_or_default();
    let delivered = f64::from(u32::try_from(latencies.len())?);
    writeln!(
        stdout(),
        "{:30} {:>10.0} {:>9} {:>9} {:>9} {:>12.2}",
        load.name,
        delivered / wall.as_secs_f64(),
        percentile(50),
        percentile(95),
        percentile(99),
        cpu.as_secs_f64() * 1e6 / delivered,
    )?;
    Ok(nodes)
}

async fn write(mesh: Arc<Mesh>, burst: u32, times: u32, pause: Duration, epoch: Instant) -> Outcome<()> {
    let mut clock = tokio::time::interval(pause.max(Duration::from_nanos(1)));
    // The senders start at different moments.
    sleep(pause * u32::from(mesh.local().get()) / u32::from(NODES)).await;
    for _ in 0..times {
        clock.tick().await;
        for _ in 0..burst {
            let mut message = u64::try_from(epoch.elapsed().as_nanos())?.to_be_bytes().to_vec();
            message.resize(MESSAGE_BYTES, 0);
            if let Some(error) = mesh.broadcast(Bytes::from(message)).pop() {
                return Err(error.into());
            }
        }
    }
    Ok(())
}

/// Latencies in microseconds.
async fn read(
    mut inbound: mpsc::Receiver<Inbound>,
    expected: u32,
    epoch: Instant,
) -> Outcome<(mpsc::Receiver<Inbound>, Vec<u128>)> {
    let mut latencies = Vec::new();
    for _ in 0..expected {
        let message = inbound.recv().await.ok_or("the mesh has stopped")?;
        let sent = message.bytes.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)).ok_or("too short")?;
        latencies.push(epoch.elapsed().saturating_sub(Duration::from_nanos(sent)).as_micros());
    }
    Ok((inbound, latencies))
}

/// User and system time of this process so far. Linux only; ticks are 10 ms.
fn cpu_time() -> Outcome<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("unknown format of /proc/self/stat")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(ticks * 10))
}

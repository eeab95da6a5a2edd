//! Measures the mesh: seven nodes in one process, real sockets and TLS on loopback, 256-byte messages to all.
//!
//! `cargo run --release -p theta-network --example mesh_ping [carrier | hosts PROGRAM]`
//!
//! With `carrier` the nodes speak through queues of this process that carry frames: what sessions and streams cost by themselves. With
//! `hosts` each node has a process of the reference host (`interop/p2p-host`, built with `go build`), and these know each other by TCP.
//!
//! The CPU time is that of the whole process and its hosts (both ends of every connection, and the kernel's work for it) divided by
//! the number of messages delivered; a broadcast to six peers delivers six.

use std::{
    collections::HashMap,
    env,
    error::Error,
    fs,
    io::{BufRead, BufReader, Write, stdout},
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use theta_names::NodeId;
use theta_network::{
    GroupTransport, HostStatus, Identity, Inbound, PeerState,
    carrier::{Carried, Carrier, CarrierLimits, Relayed},
    mesh::{Listen, Mesh, MeshConfig, MeshLimits, MeshPeer},
    p2p_proxy::{self, HostConfig},
};
use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;
type Running = (Arc<dyn GroupTransport>, mpsc::Receiver<Inbound>);

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
    let arguments: Vec<String> = env::args().skip(1).collect();
    let begin = Instant::now();
    let members = members()?;
    let mut hosts = Hosts(Vec::new());
    let mut nodes = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => meshes(members)?,
        ["carrier"] => carried(members)?,
        ["hosts", program] => hosted(members, program, &mut hosts)?,
        _ => return Err("mesh_ping [carrier | hosts PROGRAM]".into()),
    };
    let started = begin.elapsed();
    while nodes.iter().any(|(mesh, _)| mesh.status().iter().any(|peer| peer.state != PeerState::Connected)) {
        sleep(Duration::from_millis(5)).await;
    }
    let usable = begin.elapsed().saturating_sub(started);
    writeln!(stdout(), "usable after {usable:.1?}, {:.1?} of CPU with the start", cpu_time(&hosts)?)?;
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
        nodes = measure(&load, nodes, &hosts).await?;
    }
    Ok(())
}

type Member = (NodeId, Identity, TcpListener);

fn members() -> Outcome<Vec<Member>> {
    let mut members = Vec::new();
    for number in 1..=NODES {
        let made = Identity::generate(&format!("node-{number}"))?;
        let identity = Identity::from_pem(&made.certificate_pem, &made.key_pem)?;
        members.push((NodeId::try_from(number)?, identity, TcpListener::bind("127.0.0.1:0")?));
    }
    Ok(members)
}

/// All others, for each.
fn peers(members: &[Member]) -> Outcome<Vec<Vec<MeshPeer>>> {
    let mut everyone = Vec::new();
    for (id, identity, listener) in members {
        let address = listener.local_addr()?.to_string();
        everyone.push(MeshPeer { id: *id, address, certificate: identity.fingerprint() });
    }
    let others = |local: &NodeId| everyone.iter().filter(|peer| peer.id != *local).cloned().collect();
    Ok(members.iter().map(|(id, ..)| others(id)).collect())
}

fn meshes(members: Vec<Member>) -> Outcome<Vec<Running>> {
    let (peers, mut nodes): (_, Vec<Running>) = (peers(&members)?, Vec::new());
    for ((local, identity, listener), peers) in members.into_iter().zip(peers) {
        let listen = Listen::Bound(listener);
        let (mesh, inbound) =
            Mesh::start(MeshConfig { local, identity, listen, peers, limits: MeshLimits::default() })?;
        nodes.push((mesh, inbound));
    }
    Ok(nodes)
}

/// Nodes whose frames one task of this process carries.
fn carried(members: Vec<Member>) -> Outcome<Vec<Running>> {
    let (peers, mut nodes): (_, Vec<Running>) = (peers(&members)?, Vec::new());
    let (mut outs, mut ins) = (Vec::new(), HashMap::new());
    for ((local, identity, _), peers) in members.into_iter().zip(peers) {
        let ((frames, out), (to, arrivals)) = (mpsc::channel::<Carried>(256), mpsc::channel(256));
        outs.push((local, out));
        ins.insert(local, to);
        let (_, status) = watch::channel(HostStatus::default());
        let carrier = Carrier { frames, arrivals, status };
        let (relayed, inbound) = Relayed::start((local, identity), peers, carrier, CarrierLimits::default())?;
        nodes.push((relayed, inbound));
    }
    let ins = Arc::new(ins);
    for (local, mut out) in outs {
        let ins = Arc::clone(&ins);
        tokio::spawn(async move {
            while let Some(Carried { node, frame }) = out.recv().await {
                if let Some(to) = ins.get(&node) {
                    // A node that has stopped gets nothing.
                    drop(to.send(Carried { node: local, frame }).await);
                }
            }
        });
    }
    Ok(nodes)
}

/// The processes of hosts. They end with it.
struct Hosts(Vec<Child>);

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in &mut self.0 {
            // One that has ended already is as good.
            drop(host.kill());
            drop(host.wait());
        }
    }
}

fn hosted(members: Vec<Member>, program: &str, hosts: &mut Hosts) -> Outcome<Vec<Running>> {
    let (peers, mut nodes): (_, Vec<Running>) = (peers(&members)?, Vec::new());
    let keys = env::temp_dir().join(format!("mesh-ping-{}", std::process::id()));
    fs::create_dir_all(&keys)?;
    let mut ports = Vec::new();
    for (id, ..) in &members {
        // Two ports that nobody has now.
        let free = || TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        ports.push((*id, free()?, free()?));
    }
    for (((local, identity, _), peers), (_, attach, network)) in members.into_iter().zip(peers).zip(&ports) {
        let others = ports.iter().filter(|(id, ..)| *id != local).map(|(id, _, network)| format!("{id}={network}"));
        let mut child = Command::new(program)
            .args(["-node", &local.to_string(), "-node-key", &identity.fingerprint().to_string()])
            .args(["-listen", &attach.to_string(), "-network", &network.to_string()])
            .args(["-hosts", &others.collect::<Vec<_>>().join(",")])
            .arg("-key")
            .arg(keys.join(format!("{local}.pem")))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        hosts.0.push(child);
        let certificate = line.split('"').nth(1).ok_or("the host did not say its fingerprint")?.parse()?;
        let limits = CarrierLimits::default();
        let carrier = p2p_proxy::attach(HostConfig {
            address: attach.to_string(),
            certificate,
            group: "ping".to_owned(),
            node: local,
            identity: identity.clone(),
            frame_bytes: limits.frame_bytes,
            backoff: (Duration::from_millis(50), Duration::from_secs(1)),
        });
        let (relayed, inbound) = Relayed::start((local, identity), peers, carrier, limits)?;
        nodes.push((relayed, inbound));
    }
    fs::remove_dir_all(keys)?;
    Ok(nodes)
}

async fn measure(load: &Load, nodes: Vec<Running>, hosts: &Hosts) -> Outcome<Vec<Running>> {
    let broadcasts = load.burst * load.times;
    let (cpu, epoch) = (cpu_time(hosts)?, Instant::now());
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
    let (cpu, wall) = (cpu_time(hosts)?.saturating_sub(cpu), epoch.elapsed());
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

async fn write(mesh: Arc<dyn GroupTransport>, burst: u32, times: u32, pause: Duration, epoch: Instant) -> Outcome<()> {
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

/// User and system time of this process and its hosts so far. Linux only; ticks are 10 ms.
fn cpu_time(hosts: &Hosts) -> Outcome<Duration> {
    let mut ticks = ticks("self")?;
    for host in &hosts.0 {
        ticks += self::ticks(&host.id().to_string())?;
    }
    Ok(Duration::from_millis(ticks * 10))
}

fn ticks(process: &str) -> Outcome<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').ok_or("unknown format of /proc/self/stat")?;
    Ok(fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?)
}

//! Connections that never begin their TLS handshake.

use std::time::{Duration, Instant};

use theta_client::NodeStatus;
use theta_wire::v1::PeerState;
use tokio::{io::AsyncReadExt, net::TcpStream, time};

use crate::{
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    group::NODES,
};

/// Against the API of all nodes.
pub(super) const API: Attack = Attack {
    name: "half-open-api",
    promise: "Connections that do not finish their handshake keep no client out",
    who: Who::Stranger,
    // Opens thousands of sockets a second; on two cores shared with the nodes the result would depend on the machine.
    short: false,
    shape: Shape::USUAL,
    commit: |field| Box::pin(api(field)),
};

/// Against the mesh, while a peer restarts.
pub(super) const MESH: Attack = Attack {
    name: "half-open-mesh",
    promise: "Connections that do not finish their handshake keep no peer out",
    who: Who::Stranger,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(mesh(field)),
};

/// More connections than a node accepts.
const API_SOCKETS: usize = 1_100;
const MESH_SOCKETS: usize = 100;
/// The pause between two sockets to the same node.
const SPREAD: Duration = Duration::from_millis(1);
/// The pause before a socket that was closed is opened again.
const PAUSE: Duration = Duration::from_millis(500);

/// Opens sockets and sends nothing; opens closed ones again, as long as this value lives.
struct Sockets {
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Sockets {
    fn open(addresses: &[String], each: usize) -> Self {
        let all = addresses.iter().flat_map(|address| (0..each).map(move |number| (address.clone(), number)));
        let tasks = all.map(|(address, number)| {
            tokio::spawn(async move {
                // Opened all at once, most would not get past the system's queue.
                time::sleep(SPREAD.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX))).await;
                loop {
                    if let Ok(mut socket) = TcpStream::connect(&address).await {
                        // Returns when the node closes the socket.
                        let _ = socket.read(&mut [0]).await;
                    }
                    time::sleep(PAUSE).await;
                }
            })
        });
        Self { tasks: tasks.collect() }
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

async fn api(field: &mut Field) -> Result<Happened, Trouble> {
    let addresses: Vec<String> = field.group().nodes().iter().map(|node| node.api_address.clone()).collect();
    let sockets = Sockets::open(&addresses, API_SOCKETS);
    time::sleep(field.size(Duration::from_secs(30), Duration::from_secs(8))).await;
    drop(sockets);
    let connections = API_SOCKETS * addresses.len();
    Ok(Happened {
        kept: true,
        words: format!("{connections} sockets were kept open or opened again without a word"),
        effort: Effort { connections, bytes: 0 },
    })
}

async fn mesh(field: &mut Field) -> Result<Happened, Trouble> {
    let others: Vec<String> = field.group().nodes().iter().map(|node| node.peer_address.clone()).collect();
    let sockets = Sockets::open(&others, MESH_SOCKETS);
    time::sleep(Duration::from_secs(1)).await;
    field.group_mut().kill(NODES)?;
    field.group_mut().start(NODES)?;
    let began = Instant::now();
    let client = field.group().client()?;
    let patience = field.size(Duration::from_secs(25), Duration::from_secs(60));
    let connected = loop {
        let statuses = client.status().await;
        // The restarted node is connected to all of its peers, and they to it.
        let connected = |status: &NodeStatus| {
            let peers = status.status.as_ref().map(|(status, _)| status.peers.as_slice()).unwrap_or_default();
            peers.len() == usize::from(NODES - 1) && peers.iter().all(|peer| peer.state() == PeerState::Connected)
        };
        if statuses.iter().all(connected) {
            break Some(began.elapsed());
        }
        if began.elapsed() > patience {
            break None;
        }
        time::sleep(Duration::from_millis(100)).await;
    };
    drop(sockets);
    let connections = MESH_SOCKETS * others.len();
    let words = connected.map_or_else(
        || format!("a restarted node did not find its peers in {patience:?}"),
        |took| format!("a restarted node was connected to all its peers after {took:.1?}"),
    );
    Ok(Happened { kept: connected.is_some(), words, effort: Effort { connections, bytes: 0 } })
}

//! The same over real sockets: mutual TLS on loopback.

use std::{net::TcpListener, sync::Arc, time::Duration};

use prometheus_client::registry::Registry;
use theta_network::{
    GeneratedIdentity, Identity, Inbound, Transport,
    mesh::{Listen, Mesh, MeshConfig, MeshLimits, MeshPeer},
};
use theta_orchestration::{Orchestrator, OrchestratorConfig};
use theta_schemes::Suite;
use tokio::sync::mpsc;

use crate::{
    group::{Group, PATIENCE, config, eventually},
    wire::peer,
};

/// What the members of a group know of each other.
struct Members {
    identities: Vec<GeneratedIdentity>,
    addresses: Vec<String>,
}

impl Members {
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
    let listeners: Vec<TcpListener> = (0..4).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let members = Members {
        identities: (1..=4).map(|id| Identity::generate(&format!("node-{id}")).unwrap()).collect(),
        addresses: listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect(),
    };
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
    // The port is free again as soon as no other connection of this machine happens to leave from it.
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

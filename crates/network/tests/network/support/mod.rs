//! Groups of nodes with a mesh.

use core::time::Duration;
use std::sync::Arc;

use bytes::Bytes;
use theta_network::{
    Inbound, PeerStatus, Transport,
    mesh::{Mesh, MeshConfig, MeshLimits},
};
use tokio::sync::mpsc;

mod members;

pub(crate) use self::members::{Group, id, new_identity, next, number_of, numbered, until};

pub(crate) type Running = (Arc<Mesh>, mpsc::Receiver<Inbound>);

pub(crate) fn quick() -> MeshLimits {
    MeshLimits {
        backoff_min: Duration::from_millis(1),
        backoff_max: Duration::from_millis(20),
        ..MeshLimits::default()
    }
}

impl Group {
    pub(crate) fn config(&mut self, number: usize, limits: MeshLimits) -> MeshConfig {
        MeshConfig {
            local: id(number),
            identity: self.identities[number - 1].clone(),
            listen: self.listen(number),
            peers: self.others(number),
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

/// Sends, waiting while the queue is full.
pub(crate) async fn send(mesh: &Mesh, to: usize, message: Bytes) {
    members::send_by(mesh, to, message).await;
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

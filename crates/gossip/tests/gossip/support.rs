//! Groups of nodes of which each connects to some others.

use core::time::Duration;
use std::sync::Arc;

use bytes::Bytes;
use theta_gossip::{Gossip, GossipConfig, GossipError, GossipLimits};
use theta_names::NodeId;
use theta_network::{GroupTransport as _, Inbound, Transport as _, carrier::CarrierLimits};
use tokio::sync::mpsc;

use crate::members;
pub(crate) use crate::members::{Group, id, next, number_of, numbered, until};

pub(crate) type Running = (Arc<Gossip>, mpsc::Receiver<Inbound>);

impl Group {
    pub(crate) fn config(&mut self, number: usize, neighbours: &[usize]) -> GossipConfig {
        GossipConfig {
            group: "test".to_owned(),
            local: id(number),
            identity: self.identities[number - 1].clone(),
            listen: self.listen(number),
            peers: self.others(number),
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

/// Waits until all of these have sessions with all others of these.
pub(crate) async fn connected(nodes: &[&Running]) {
    let among: Vec<NodeId> = nodes.iter().map(|(node, _)| node.local()).collect();
    until("all sessions stand", || {
        nodes.iter().all(|(node, _)| node.unreached().iter().all(|peer| !among.contains(&peer.id)))
    })
    .await;
}

/// Sends, waiting while the queue is full.
pub(crate) async fn send(node: &Gossip, to: usize, message: Bytes) {
    members::send_by(node, to, message).await;
}

//! An attacker on the mesh, with a member's certificate and key, in place of that member's node.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use prost::Message as _;
use theta_network::{
    Inbound, PeerState, SendError, Transport,
    mesh::{Listen, Mesh, MeshConfig, MeshLimits, MeshPeer},
};
use theta_wire::peer::{CUSTODY, Envelope, INSTANCES, VERSION};
use tokio::{sync::mpsc, time};

use crate::{
    attack::Trouble,
    group::{Group, NODES},
    until::until,
};

/// The node whose place an attacker takes in a usual group.
pub(crate) const TAKEN: u16 = NODES;

/// The attacker's connections to the mesh.
pub(crate) struct Member {
    mesh: Arc<Mesh>,
    inbound: mpsc::Receiver<Inbound>,
    /// The bytes accepted by the queues to the peers.
    pub(crate) sent: usize,
}

impl Member {
    /// Kills the node [`TAKEN`] and takes its place. Returns when it is connected to all others.
    pub(crate) async fn take(group: &mut Group) -> Result<Self, Trouble> {
        Self::take_node(group, TAKEN).await
    }

    /// As [`Member::take`], in place of another node.
    pub(crate) async fn take_node(group: &mut Group, node: u16) -> Result<Self, Trouble> {
        group.kill(node)?;
        let identity = group.member_identity(node)?;
        let local = group.node(node)?;
        let address = local.peer_address.parse().map_err(|_| Trouble::new("a peer address is none"))?;
        let peers = group.nodes().iter().filter(|node| node.id != local.id).map(|node| MeshPeer {
            id: node.id,
            address: node.peer_address.clone(),
            certificate: node.certificate,
        });
        let config = MeshConfig {
            local: local.id,
            identity,
            listen: Listen::Address(address),
            peers: peers.collect(),
            limits: MeshLimits { queue_bytes: 32 << 20, ..MeshLimits::default() },
        };
        let (mesh, inbound) = Mesh::start(config).map_err(|error| Trouble::new(error.to_string()))?;
        let connected = until(Duration::from_secs(30), || async {
            let all = mesh.status().iter().all(|peer| peer.state == PeerState::Connected);
            if all { Ok(()) } else { Err(Trouble::new("a taken node is not connected to its peers")) }
        });
        connected.await?;
        Ok(Self { mesh, inbound, sent: 0 })
    }

    /// The next message of a peer, if one arrives in this time.
    async fn heard(&mut self, patience: Duration) -> Option<Heard> {
        let inbound = time::timeout(patience, self.inbound.recv()).await.ok().flatten()?;
        Some(Heard { from: inbound.from.get(), envelope: Envelope::decode(inbound.bytes).ok()? })
    }

    /// All messages of peers that arrive in this time, oldest first.
    pub(crate) async fn listen(&mut self, span: Duration) -> Vec<Heard> {
        let (deadline, mut all) = (time::Instant::now() + span, Vec::new());
        loop {
            let left = deadline.saturating_duration_since(time::Instant::now());
            if left.is_zero() {
                return all;
            }
            all.extend(self.heard(left).await);
        }
    }

    /// Sends a message to all custodians, or to one node's. Returns how many queues accepted it.
    pub(crate) fn tell_custodians(&mut self, to: Option<u16>, payload: Bytes) -> usize {
        self.tell(to, &Envelope { version: VERSION, stream: CUSTODY, payload, ..Envelope::default() })
    }

    /// Sends a message of an instance to all nodes or to one. `kind` and `number` are its slot. Returns how many queues
    /// accepted it.
    pub(crate) fn tell_instance(
        &mut self,
        to: Option<u16>,
        id: &Bytes,
        kind: u32,
        number: u32,
        payload: Bytes,
    ) -> usize {
        let (version, instance_id) = (VERSION, id.clone());
        self.tell(to, &Envelope { version, instance_id, kind, number, payload, stream: INSTANCES })
    }

    /// Sends an envelope. Returns how many queues to peers accepted it.
    fn tell(&mut self, to: Option<u16>, envelope: &Envelope) -> usize {
        let bytes = Bytes::from(envelope.encode_to_vec());
        let peers = self.mesh.peers().into_iter().filter(|peer| to.is_none_or(|to| peer.get() == to));
        let took = peers.filter(|peer| match self.mesh.send(*peer, bytes.clone()) {
            Ok(()) => true,
            Err(SendError::QueueFull(_) | SendError::UnknownPeer(_) | SendError::TooLarge(_) | SendError::Closed) => {
                false
            }
        });
        let took = took.count();
        self.sent += took * bytes.len();
        took
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.mesh.shutdown();
    }
}

/// A message of a peer.
pub(crate) struct Heard {
    pub(crate) from: u16,
    pub(crate) envelope: Envelope,
}

impl Heard {
    /// The payload, if it is a custodian's message.
    pub(crate) fn custody(&self) -> Option<&Bytes> {
        (self.envelope.stream == CUSTODY).then_some(&self.envelope.payload)
    }

    /// The instance, if it is a message of one.
    pub(crate) fn instance(&self) -> Option<&Bytes> {
        (self.envelope.stream == INSTANCES && !self.envelope.instance_id.is_empty())
            .then_some(&self.envelope.instance_id)
    }
}

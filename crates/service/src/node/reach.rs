//! How a node reaches the others.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use prometheus_client::registry::Registry;
#[cfg(feature = "gossip")]
use theta_gossip::{Gossip, GossipConfig, GossipLimits};
use theta_names::NodeId;
use theta_network::{
    GroupTransport, Identity, Inbound,
    archive::Archive,
    carrier::{CarrierLimits, Relayed},
    group::GroupFile,
    mesh::{Listen, Mesh, MeshConfig, MeshLimits},
    p2p_proxy,
};
use tokio::sync::mpsc;

use super::{archive::LedgerArchive, error::StartError};
use crate::config::{NodeConfig, TransportKind};
#[cfg(feature = "gossip")]
use crate::metrics::GossipCollector;

/// The way to the other nodes, the messages from them, and where they connect.
type Joined = (Arc<dyn GroupTransport>, mpsc::Receiver<Inbound>, SocketAddr);

/// Reaches the other nodes in the way that the configuration says. Where they connect to this one, those who may read the archive do it at the same
/// address; through a host, and over gossip, nobody reads it. At that address so many connections may be in the handshake at once. What the way has to tell the monitoring system is registered.
pub(super) fn join(
    (config, group, handshakes): (&NodeConfig, &GroupFile, usize),
    identity: &Identity,
    listen: Listen,
    archive: &Arc<LedgerArchive>,
    registry: &mut Registry,
) -> Result<Joined, StartError> {
    #[cfg(not(feature = "gossip"))]
    let _ = registry;
    let local = NodeId::from(config.id);
    let (identity, peers) = (identity.clone(), group.mesh_peers(local));
    match config.transport {
        TransportKind::Mesh => {
            let archive: Arc<dyn Archive> = Arc::clone(archive) as _;
            let limits = MeshLimits { handshakes, ..MeshLimits::default() };
            let (mesh, inbound) =
                Mesh::start_with(MeshConfig { local, identity, listen, peers, limits }, Some(archive))?;
            let address = mesh.local_addr();
            Ok((mesh, inbound, address))
        }
        TransportKind::P2pProxy => {
            let host = config.host.as_ref().ok_or(StartError::NoHost)?;
            let limits = CarrierLimits { frame_bytes: host.frame_bytes, ..CarrierLimits::default() };
            let carrier = p2p_proxy::attach(p2p_proxy::HostConfig {
                address: host.address.clone(),
                certificate: host.fingerprint,
                group: group.name().to_owned(),
                node: local,
                identity: identity.clone(),
                frame_bytes: host.frame_bytes,
                backoff: (Duration::from_millis(100), Duration::from_secs(5)),
            });
            let (relayed, inbound) = Relayed::start((local, identity), peers, carrier, limits)?;
            Ok((relayed, inbound, config.listen.peer))
        }
        #[cfg(feature = "gossip")]
        TransportKind::Gossip => {
            let settings = config.gossip.clone().unwrap_or_default();
            let (gossip, inbound) = Gossip::start(GossipConfig {
                group: group.name().to_owned(),
                local,
                identity,
                listen,
                peers,
                neighbours: settings.neighbours.into_iter().map(NodeId::from).collect(),
                carrier: CarrierLimits { frame_bytes: settings.frame_bytes, ..CarrierLimits::default() },
                limits: GossipLimits { handshakes, ..GossipLimits::default() },
            })?;
            registry.register_collector(Box::new(GossipCollector(Arc::clone(&gossip))));
            let address = gossip.local_addr();
            Ok((gossip, inbound, address))
        }
        #[cfg(not(feature = "gossip"))]
        TransportKind::Gossip => Err(StartError::NoGossip),
    }
}

//! The P2P proxy: the node gives the host platform its frames, and gets those for it, over one authenticated gRPC stream
//! (`crates/wire/proto/theta/v1/host.proto`). The host moves them as it likes. What it cannot do is said in [`crate::carrier`].
//!
//! The node attaches by itself, and again whenever the stream breaks. What waits meanwhile is bounded: messages wait in their peers' queues, as
//! if the peers were away. A host that takes nothing for a while is named in the log, in [`HostStatus`] and so in metrics and in
//! `theta doctor`.

mod attach;
mod connect;

use core::time::Duration;

use theta_names::NodeId;
use tokio::sync::{mpsc, watch};

use crate::{Fingerprint, HostStatus, Identity, carrier::Carrier};

/// Frames to the host that wait for it.
const WAITING_FRAMES: usize = 256;
/// Frames from the host that wait for their peers' queues. They may be long, and none of them waits for long.
const WAITING_ARRIVALS: usize = 64;

/// The host of a node.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Where it listens, `host:port`.
    pub address: String,
    /// The key of its certificate.
    pub certificate: Fingerprint,
    /// The group's name, which the host is told.
    pub group: String,
    /// This node, which the host is told.
    pub node: NodeId,
    /// What this node shows.
    pub identity: Identity,
    /// The longest frame that this node makes.
    pub frame_bytes: usize,
    /// First pause before attaching again, and the longest.
    pub backoff: (Duration, Duration),
}

/// Attaches to the host, and again whenever that breaks, until the carrier's ends are dropped. Must be called inside a tokio runtime.
#[must_use]
pub fn attach(config: HostConfig) -> Carrier {
    let (frames, outgoing) = mpsc::channel(WAITING_FRAMES);
    let (incoming, arrivals) = mpsc::channel(WAITING_ARRIVALS);
    let away = Some("this node has not attached to it yet".to_owned());
    let (told, status) = watch::channel(HostStatus { address: config.address.clone(), away, ..HostStatus::default() });
    tokio::spawn(attach::keep(config, outgoing, incoming, told));
    Carrier { frames, arrivals, status }
}

//! The connections to the other nodes at the time of each scrape.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};
use theta_network::{
    PeerState, PeerStatus, Transport,
    mesh::{Mesh, PeerCounters},
};

/// Gauges and counters for each peer.
pub(crate) struct MeshCollector(pub(crate) Arc<Mesh>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PeerLabel {
    peer: u16,
}

impl fmt::Debug for MeshCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MeshCollector")
    }
}

/// A name, a help text, and how to get the value.
type PeerGauge = (&'static str, &'static str, fn(&PeerStatus) -> i64);
type PeerCounter = (&'static str, &'static str, fn(&PeerCounters) -> u64);

const GAUGES: [PeerGauge; 3] = [
    ("theta_peer_connected", "Whether the node is connected to this peer", |peer| {
        i64::from(peer.state == PeerState::Connected)
    }),
    ("theta_peer_queued_messages", "Messages that wait for this peer", |peer| integer(peer.queued)),
    ("theta_peer_latency_microseconds", "How long messages take until this peer acknowledges them", |peer| {
        peer.latency.map_or(0, |latency| i64::try_from(latency.as_micros()).unwrap_or(i64::MAX))
    }),
];

const COUNTERS: [PeerCounter; 9] = [
    ("theta_peer_messages_sent", "Messages sent, each once however often it is sent again", |peer| {
        peer.frames_sent.get()
    }),
    ("theta_peer_sent_bytes", "Bytes of the messages sent", |peer| peer.bytes_sent.get()),
    ("theta_peer_messages_resent", "Messages sent again after a reconnect", |peer| peer.frames_resent.get()),
    ("theta_peer_messages_dropped", "Messages refused because the queue was full", |peer| peer.frames_dropped.get()),
    ("theta_peer_messages_received", "Messages received", |peer| peer.frames_received.get()),
    ("theta_peer_received_bytes", "Bytes of the messages received", |peer| peer.bytes_received.get()),
    ("theta_peer_reconnects", "Connections made after the first", |peer| peer.reconnects.get()),
    ("theta_peer_connect_failures", "Connections that could not be made", |peer| peer.connect_failures.get()),
    ("theta_peer_protocol_errors", "Connections closed because the peer broke the protocol", |peer| {
        peer.protocol_errors.get()
    }),
];

impl Collector for MeshCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let peers = self.0.status();
        for (name, help, value) in GAUGES {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for peer in &peers {
                let label = PeerLabel { peer: peer.peer.get() };
                ConstGauge::new(value(peer)).encode(metric.encode_family(&label)?)?;
            }
        }
        let counters = self.0.counters();
        for (name, help, value) in COUNTERS {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for peer in counters.peers() {
                let label = PeerLabel { peer: peer.peer.get() };
                ConstCounter::new(value(&peer)).encode(metric.encode_family(&label)?)?;
            }
        }
        let failures = ConstCounter::new(counters.handshake_failures.get());
        let help = "Incoming connections that did not prove to be a peer's";
        let metric = encoder.encode_descriptor("theta_mesh_handshake_failures", help, None, failures.metric_type())?;
        failures.encode(metric)?;
        let shed = ConstCounter::new(counters.handshakes_shed.get());
        let help = "Of these, those that made room for newer ones before their handshake was done";
        let metric = encoder.encode_descriptor("theta_mesh_handshakes_shed", help, None, shed.metric_type())?;
        shed.encode(metric)
    }
}

fn integer(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

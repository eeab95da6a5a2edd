//! The ways to the other nodes at the time of each scrape.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};
use theta_network::{GroupTransport, HostStatus, PeerState, PeerStatus, mesh::PeerCounters};

/// Gauges and counters for each peer.
pub(crate) struct PeersCollector(pub(crate) Arc<dyn GroupTransport>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PeerLabel {
    peer: u16,
}

impl fmt::Debug for PeersCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PeersCollector")
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

const COUNTERS: [PeerCounter; 12] = [
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
    (
        "theta_peer_protocol_errors",
        "Connections closed, or frames of a session left unread, because the peer broke the protocol",
        |peer| peer.protocol_errors.get(),
    ),
    ("theta_peer_false_frames", "Frames in this peer's name that are not from it, or came before", |peer| {
        peer.false_frames.get()
    }),
    ("theta_peer_false_handshakes", "Steps of handshakes in this peer's name that are not from it", |peer| {
        peer.false_handshakes.get()
    }),
    ("theta_peer_frames_overrun", "Frames in this peer's name that came too fast and were dropped", |peer| {
        peer.frames_overrun.get()
    }),
];

/// A name, a help text, and how to get the value of what a host is.
type HostGauge = (&'static str, &'static str, fn(&HostStatus) -> i64);
type HostCounter = (&'static str, &'static str, fn(&HostStatus) -> u64);

const HOST_GAUGES: [HostGauge; 3] = [
    ("theta_host_attached", "Whether the node is attached to its host", |host| i64::from(host.away.is_none())),
    ("theta_host_waiting_frames", "Frames that wait until the host takes them", |host| integer(host.waiting)),
    ("theta_host_stalled_milliseconds", "For how long the host has taken no frame of those that wait", |host| {
        i64::try_from(host.stalled.as_millis()).unwrap_or(i64::MAX)
    }),
];

const HOST_COUNTERS: [HostCounter; 4] = [
    ("theta_host_attachments", "How often the node has attached to its host", |host| host.attached),
    ("theta_host_frames_given", "Frames that the host was given", |host| host.given),
    ("theta_host_frames_got", "Frames that the host gave", |host| host.got),
    ("theta_host_frames_dropped", "Frames of the host that were dropped: too long, or in nobody's name", |host| {
        host.dropped
    }),
];

impl Collector for PeersCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let peers = self.0.status();
        for (name, help, value) in GAUGES {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for peer in &peers {
                let label = PeerLabel { peer: peer.peer.get() };
                ConstGauge::new(value(peer)).encode(metric.encode_family(&label)?)?;
            }
        }
        let all = self.0.peer_counters();
        for (name, help, value) in COUNTERS {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for peer in &all {
                let label = PeerLabel { peer: peer.peer.get() };
                ConstCounter::new(value(peer)).encode(metric.encode_family(&label)?)?;
            }
        }
        let refused = self.0.refused();
        let failures = ConstCounter::new(refused.strangers);
        let help = "Incoming connections, or frames of a host, that did not prove to be a peer's";
        let metric = encoder.encode_descriptor("theta_mesh_handshake_failures", help, None, failures.metric_type())?;
        failures.encode(metric)?;
        let shed = ConstCounter::new(refused.shed);
        let help = "Of these, those that made room for newer ones before their handshake was done";
        let metric = encoder.encode_descriptor("theta_mesh_handshakes_shed", help, None, shed.metric_type())?;
        shed.encode(metric)?;
        let Some(host) = self.0.host() else { return Ok(()) };
        for (name, help, value) in HOST_GAUGES {
            let gauge = ConstGauge::new(value(&host));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        for (name, help, value) in HOST_COUNTERS {
            let counter = ConstCounter::new(value(&host));
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        Ok(())
    }
}

fn integer(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

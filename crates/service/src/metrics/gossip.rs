//! What a node that gossips has seen, at the time of each scrape.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};
use theta_gossip::Gossip;

/// Neighbours and messages.
#[derive(Debug)]
pub(crate) struct GossipCollector(pub(crate) Arc<Gossip>);

impl Collector for GossipCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let counts = self.0.counts();
        let gauges = [
            ("theta_gossip_neighbours", "Nodes that this one has a connection with", counts.neighbours),
            (
                "theta_gossip_mesh_neighbours",
                "Of these, those that messages are passed on to as they come",
                counts.in_mesh,
            ),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        let counters = [
            ("theta_gossip_messages_sent", "Messages of this node", counts.sent),
            ("theta_gossip_messages_unsent", "Messages of this node that found no way out", counts.unsent),
            ("theta_gossip_messages_received", "Messages of others, each counted once", counts.received),
            ("theta_gossip_messages_replayed", "Messages that had come before", counts.replayed),
            ("theta_gossip_messages_excessive", "Messages beyond their authors' shares", counts.excessive),
            ("theta_gossip_messages_strange", "Messages of nobody who is a member", counts.strange),
            ("theta_gossip_messages_unknown", "Messages of a format that this node does not know", counts.unknown),
            ("theta_gossip_messages_forged", "Messages that their authors have not signed", counts.forged),
            ("theta_gossip_neighbours_left", "How often a neighbour was left because of those", counts.banned),
            ("theta_gossip_sent_bytes", "Bytes to neighbours, within TLS", counts.bytes_sent),
            ("theta_gossip_received_bytes", "Bytes from neighbours, within TLS", counts.bytes_received),
        ];
        for (name, help, value) in counters {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        Ok(())
    }
}

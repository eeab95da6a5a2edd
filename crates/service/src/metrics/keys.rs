//! The keys of this node at the time of each scrape: how many, and how far they are from being of no use.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};
use theta_custody::{KeyEntry, KeyTable};
use theta_names::{KeyState, NodeId};
use theta_network::{PeerState, Transport};

/// Gauges over all keys. There are none for each key: a group may have thousands.
pub(crate) struct KeysCollector {
    pub(crate) local: NodeId,
    pub(crate) keys: Arc<KeyTable>,
    pub(crate) transport: Arc<dyn Transport>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

impl fmt::Debug for KeysCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeysCollector")
    }
}

impl KeysCollector {
    /// How many of the key's holders may still fail before no request for it succeeds, as far as this node sees: those it
    /// reaches, itself among them, less the k that it takes. Below zero none succeeds now.
    fn spare(&self, entry: &KeyEntry, connected: &[NodeId]) -> i64 {
        let reached = entry.holders.iter().filter(|holder| match *holder == self.local {
            true => entry.has_share(),
            false => connected.contains(holder),
        });
        i64::try_from(reached.count()).unwrap_or(i64::MAX).saturating_sub(entry.public.threshold().k().into())
    }

    fn has_lost(&self, entry: &KeyEntry) -> bool {
        entry.serves() && entry.holders.contains(self.local) && !entry.has_share()
    }
}

impl Collector for KeysCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let entries: Vec<Arc<KeyEntry>> = self.keys.iter().collect();
        let help = "Versions of keys, by state";
        let mut states = encoder.encode_descriptor("theta_keys", help, None, MetricType::Gauge)?;
        for state in KeyState::ALL {
            let count = entries.iter().filter(|entry| entry.state == state).count();
            ConstGauge::new(integer(count)).encode(states.encode_family(&StateLabel { state: state.name() })?)?;
        }
        let status = self.transport.status().into_iter();
        let connected: Vec<NodeId> =
            status.filter(|peer| peer.state == PeerState::Connected).map(|peer| peer.peer).collect();
        let serving = entries.iter().filter(|entry| entry.serves());
        let gauges = [
            (
                "theta_keys_spare_holders",
                "Of the key that has the fewest: holders that this node reaches beyond those that a request takes",
                serving.map(|entry| self.spare(entry, &connected)).min(),
            ),
            (
                "theta_keys_lost_shares",
                "Versions of keys whose share this node should hold and does not",
                Some(integer(entries.iter().filter(|entry| self.has_lost(entry)).count())),
            ),
            (
                "theta_quarantines",
                "Sets of holders among whom somebody cheated, with which this node computes no more until the key has new shares",
                Some(
                    entries
                        .iter()
                        .fold(0, |sum: i64, entry| sum.saturating_add(integer(entry.stock.quarantined().len()))),
                ),
            ),
            (
                "theta_nonces_ready",
                "Commitments of peers with which this node coordinates signatures in one round",
                Some(
                    entries
                        .iter()
                        .fold(0, |sum: i64, entry| sum.saturating_add(integer(entry.stock.commitments_ready()))),
                ),
            ),
            (
                "theta_presignatures_ready",
                "Presignatures of ECDSA that this node keeps, each for one signature in one round",
                Some(
                    entries
                        .iter()
                        .fold(0, |sum: i64, entry| sum.saturating_add(integer(entry.stock.presignatures_ready()))),
                ),
            ),
            (
                "theta_set_ups_ready",
                "Set-ups of oblivious transfer that programs of ECDSA with a dishonest majority have left to later ones",
                Some(
                    entries
                        .iter()
                        .fold(0, |sum: i64, entry| sum.saturating_add(integer(entry.stock.set_ups().ready()))),
                ),
            ),
        ];
        for (name, help, value) in gauges {
            let Some(value) = value else { continue };
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

fn integer(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

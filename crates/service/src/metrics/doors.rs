//! Handshakes, connections and requests of the API at the time of each scrape, and how many were closed or ended.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};
use theta_network::doorway::Doorway;

use crate::grpc::{Admission, Connections};

/// The API's handshakes, connections and requests.
#[derive(Debug)]
pub(crate) struct DoorCollector {
    pub(crate) admission: Arc<Admission>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) doorway: Arc<Doorway>,
}

impl Collector for DoorCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let gauges = [
            ("theta_api_in_flight_requests", "API requests being answered", self.admission.requests()),
            (
                "theta_api_in_flight_bytes",
                "Bytes of the API requests being answered, and of answers that were not taken yet",
                self.admission.bytes(),
            ),
            ("theta_api_connections", "API connections whose handshake is done", self.connections.count()),
            ("theta_api_handshakes", "API connections in their handshake", self.doorway.unfinished()),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        let counters = [
            (
                "theta_api_shed_requests",
                "API requests that were ended to make room, or because their body or answer did not move",
                self.admission.shed(),
            ),
            (
                "theta_api_shed_connections",
                "API connections that were closed because they were idle or others needed their places",
                self.connections.ended(),
            ),
            (
                "theta_api_shed_handshakes",
                "API connections that made room for newer ones before their handshake was done",
                self.doorway.shed(),
            ),
        ];
        for (name, help, value) in counters {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        Ok(())
    }
}

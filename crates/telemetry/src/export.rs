//! Sends spans to the collector.

use core::time::Duration;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use theta_names::WallTime;
use tokio::sync::mpsc::Receiver;
use tokio::time::{self, MissedTickBehavior};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use crate::Origin;
use crate::assembly::{Assembly, Part};
use crate::layer::Heard;
use crate::otlp::{self, ExportTraceServiceRequest, ExportTraceServiceResponse};
use crate::spans;

/// How often what is over is sent.
const EVERY: Duration = Duration::from_millis(500);
/// How long the collector may take for what is sent at once.
const PATIENCE: Duration = Duration::from_secs(5);
/// The parts of so many requests are sent at once: a few kilobytes each, of the 4 MiB that a collector takes.
const AT_ONCE: usize = 128;

/// Makes spans of stages and sends them.
#[derive(Debug)]
pub struct Exporter {
    origin: Origin,
    receiver: Receiver<Heard>,
    assembly: Assembly,
    /// Stages that the layer could not pass on.
    lost: Arc<AtomicU64>,
    /// Whether the collector took what was sent last.
    works: bool,
}

impl Exporter {
    pub(crate) fn new(origin: Origin, receiver: Receiver<Heard>, lost: Arc<AtomicU64>) -> Self {
        Self { origin, receiver, assembly: Assembly::default(), lost, works: true }
    }

    /// Exports until `stop` resolves, and then what there is. What a collector does not take is lost, and said in the log once until it takes
    /// something again: requests never wait for it.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let endpoint = match Endpoint::from_shared(format!("http://{}", self.origin.collector)) {
            Ok(endpoint) => endpoint.timeout(PATIENCE).connect_timeout(PATIENCE),
            Err(error) => return tracing::error!(%error, "bug: an address is no URI; there are no traces"),
        };
        let mut client = Grpc::new(endpoint.connect_lazy());
        let mut ticks = time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stop = core::pin::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                heard = self.receiver.recv() => match heard {
                    Some(heard) => self.assembly.hear(heard),
                    None => break,
                },
                _ = ticks.tick() => self.send(&mut client, false).await,
            }
        }
        while let Ok(heard) = self.receiver.try_recv() {
            self.assembly.hear(heard);
        }
        self.send(&mut client, true).await;
    }

    async fn send(&mut self, client: &mut Grpc<Channel>, all: bool) {
        let lost = self.assembly.lost().saturating_add(self.lost.swap(0, Ordering::Relaxed));
        if lost > 0 {
            tracing::warn!(lost, "stages of requests are missing in the traces: set traces.one_in higher");
        }
        let parts = self.assembly.take(WallTime::now(), all);
        for parts in parts.chunks(AT_ONCE) {
            if let Err(status) = self.export(client, parts).await {
                if core::mem::take(&mut self.works) {
                    let (collector, reason) = (self.origin.collector, status.message());
                    tracing::warn!(%collector, reason, "the collector takes no traces; they are lost until it does");
                }
                return;
            }
            if !core::mem::replace(&mut self.works, true) {
                tracing::info!(collector = %self.origin.collector, "the collector takes traces again");
            }
        }
    }

    async fn export(&self, client: &mut Grpc<Channel>, parts: &[Part]) -> Result<(), Status> {
        client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let request = spans::request(self.origin.node, parts);
        let codec = ProstCodec::<ExportTraceServiceRequest, ExportTraceServiceResponse>::default();
        let path = PathAndQuery::from_static(otlp::EXPORT);
        let response = client.unary(Request::new(request), path, codec).await?;
        match response.into_inner().partial_success {
            Some(partial) if partial.rejected_spans > 0 => Err(Status::invalid_argument(partial.error_message)),
            _ => Ok(()),
        }
    }
}

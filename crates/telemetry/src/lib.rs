//! Traces: what each node did for one request, and how long it took, for an OpenTelemetry collector beside the node.
//!
//! Nothing is passed from node to node for it. The id of an **instance** (a hash over the whole request) is the same at all nodes, and so
//! is the trace's, which is its first 16 bytes: one request, one trace. Each node exports one span for its part and a child for each stage
//! (`theta_stage_seconds` has the same stages). A node that samples one in m requests decides by the instance's id as well, so that all nodes take
//! the same requests.
//!
//! A span has what the log says at level debug: the instance's id, the scheme, the stage, times. It has nothing of a request's content, of
//! keys or of shares.

mod assembly;
mod export;
mod layer;
mod otlp;
mod spans;

use core::net::SocketAddr;
use core::num::NonZeroU32;

pub use export::Exporter;
pub use layer::StageLayer;
use tokio::sync::mpsc;

/// How many events may wait between the threads that do the work and the exporter; more are lost, and counted.
const WAITING: usize = 16_384;

/// Whose spans they are, and where they go.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The node's number in its group.
    pub node: u16,
    /// The collector, which takes OTLP over gRPC without TLS: on the same machine.
    pub collector: SocketAddr,
    /// One in so many requests is traced.
    pub one_in: NonZeroU32,
}

/// The two ends: the layer hears of stages, on the threads that do the work, and never waits; the exporter makes spans of them and sends them.
#[must_use]
pub fn traces(origin: Origin) -> (StageLayer, Exporter) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let layer = StageLayer::new(sender, origin.one_in);
    let exporter = Exporter::new(origin, receiver, layer.lost());
    (layer, exporter)
}

//! Takes the traces of the nodes, with OpenTelemetry's own code.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::any_value::Value,
    trace::v1::Span,
};
use theta::exit::Failure;
use tokio::runtime::{Builder, Runtime};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, transport::Server};

use super::stages::Part;
use crate::wan::Reach;

/// Nodes export what they have not heard of for two seconds, every half second.
const QUIET: Duration = Duration::from_secs(6);
/// So long traces are waited for at most.
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Clone, Default)]
struct Taken(Arc<Mutex<(Vec<Part>, Option<Instant>)>>);

#[tonic::async_trait]
impl TraceService for Taken {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let parts = parts(request.into_inner());
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.0.extend(parts);
        taken.1 = Some(Instant::now());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// A collector in this process that listens where each node exports to: on the loopback device of the node's network.
pub(super) struct Collector {
    taken: Taken,
    /// One thread: it must not take the cores from the nodes.
    _runtime: Runtime,
    addresses: Vec<SocketAddr>,
}

impl Collector {
    /// For so many nodes.
    pub(super) fn start(reach: &Reach, nodes: u16) -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(Failure::internal)?;
        let taken = Taken::default();
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for node in 1..=nodes {
            // Nodes that share a network share a collector.
            if let (false, Some(shared)) = (reach.is_far(), addresses.first().copied()) {
                addresses.push(shared);
                continue;
            }
            let bound = reach.within(node, || {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                listener.set_nonblocking(true)?;
                Ok::<_, io::Error>((listener.local_addr()?, listener))
            });
            let (address, listener) = bound.map_err(Failure::internal)?;
            let _inside = runtime.enter();
            let incoming =
                TcpListenerStream::new(tokio::net::TcpListener::from_std(listener).map_err(Failure::internal)?);
            let service = TraceServiceServer::new(taken.clone());
            runtime.spawn(async move { Server::builder().add_service(service).serve_with_incoming(incoming).await });
            addresses.push(address);
        }
        Ok(Self { taken, _runtime: runtime, addresses })
    }

    /// Where the nodes 1, 2, ... export to.
    pub(super) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Waits until nothing more comes, and gives out what came of requests that arrived since a moment (nanoseconds since 1970).
    pub(super) fn drain(&self, since: u64) -> Vec<Part> {
        let began = Instant::now();
        loop {
            let last = self.taken.0.lock().unwrap_or_else(PoisonError::into_inner).1;
            let quiet = last.map_or(began, |last| last.max(began)).elapsed();
            if quiet >= QUIET || began.elapsed() >= LONGEST {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let mut taken = self.taken.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut parts = std::mem::take(&mut taken.0);
        parts.retain(|part| part.is_since(since));
        parts
    }
}

/// What a node did for each request, of what it exported.
fn parts(taken: ExportTraceServiceRequest) -> Vec<Part> {
    let mut parts = Vec::new();
    for spans in taken.resource_spans {
        let attributes = spans.resource.map(|resource| resource.attributes).unwrap_or_default();
        let node = attributes.into_iter().find(|attribute| attribute.key == "theta.node");
        let Some(Value::IntValue(node)) = node.and_then(|node| node.value).and_then(|value| value.value) else {
            continue;
        };
        let Ok(node) = u16::try_from(node) else { continue };
        let spans: Vec<Span> = spans.scope_spans.into_iter().flat_map(|scope| scope.spans).collect();
        for whole in spans.iter().filter(|span| span.parent_span_id.is_empty()) {
            let Ok(trace) = <[u8; 16]>::try_from(whole.trace_id.as_slice()) else { continue };
            let of_it = spans.iter().filter(|span| span.parent_span_id == whole.span_id);
            let stage = |span: &Span| (span.name.clone(), span.start_time_unix_nano, span.end_time_unix_nano);
            parts.push(Part { node, trace, stages: of_it.map(stage).collect() });
        }
    }
    parts
}

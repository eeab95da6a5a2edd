//! A collector of OpenTelemetry's own code takes what the exporter sends.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use theta_telemetry::{Origin, StageLayer, traces};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};
use tracing_subscriber::prelude::*;

#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<ExportTraceServiceRequest>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.lock().unwrap().push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    async fn listen(&self, address: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tonic::transport::Server::builder().add_service(TraceServiceServer::new(self.clone()));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        address
    }

    fn spans(&self) -> Vec<Span> {
        let requests = self.0.lock().unwrap();
        let scopes = requests.iter().flat_map(|request| &request.resource_spans).flat_map(|spans| &spans.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }
}

fn stage(instance: &str, stage: &str, micros: f64) {
    tracing::debug!(
        target: "theta::stage",
        stage, scheme = "sg02-ristretto255", instance = Some(tracing::field::display(instance)), micros,
    );
}

fn origin(collector: SocketAddr) -> Origin {
    Origin { node: 3, collector, one_in: NonZeroU32::MIN }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_is_one_trace_with_a_span_for_each_stage() {
    let collector = Collector::default();
    let address = collector.listen("127.0.0.1:0".parse().unwrap()).await;
    let (layer, exporter) = traces(origin(address));
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(exporter.run(async { drop(stopped.await) }));
    let (one, other) = ("a1".repeat(32), "b2".repeat(32));
    let registry = tracing_subscriber::registry().with(layer.with_filter(StageLayer::filter()));
    tracing::subscriber::with_default(registry, || {
        stage(&one, "share_made", 250.0);
        stage(&other, "share_made", 1.0);
        stage(&one, "returned", 1_000.0);
        stage("no id", "share_made", 1.0);
        tracing::debug!(target: "theta::stage", stage = "received", scheme = "s", micros = 1.0);
        tracing::error!(secret = "not for the collector", "not a stage");
    });
    stop.send(()).unwrap();
    running.await.unwrap();
    let spans = collector.spans();
    let mut names: BTreeMap<Vec<u8>, Vec<&str>> = BTreeMap::new();
    spans.iter().for_each(|span| names.entry(span.trace_id.clone()).or_default().push(&span.name));
    assert_eq!(
        names.into_iter().collect::<Vec<_>>(),
        [(vec![0xa1; 16], vec!["request", "share_made", "returned"]), (vec![0xb2; 16], vec!["request", "share_made"])]
    );
    let whole = spans.iter().find(|span| span.trace_id == [0xa1; 16] && span.name == "request").unwrap();
    let length = whole.end_time_unix_nano - whole.start_time_unix_nano;
    assert!((1_000_000..60_000_000_000).contains(&length), "{length}");
    let attributes = whole.attributes.iter().map(|it| {
        let Some(Value::StringValue(value)) = &it.value.as_ref().unwrap().value else { panic!("{it:?}") };
        (it.key.as_str(), value.as_str())
    });
    assert_eq!(
        attributes.collect::<Vec<_>>(),
        [("theta.instance", one.as_str()), ("theta.scheme", "sg02-ristretto255")]
    );
    for span in spans.iter().filter(|span| span.name != "request") {
        assert!(span.attributes.is_empty() && span.span_id.len() == 8, "{span:?}");
        assert_eq!(span.parent_span_id.len(), 8);
    }
    let sent = format!("{:?}", collector.0.lock().unwrap());
    assert!(sent.contains("node-3") && !sent.contains("not for the collector"), "{sent}");
}

/// Nobody waits for a collector that is not there, and it gets what happens when it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_comes_late_gets_what_comes_then() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (layer, exporter) = traces(origin(free));
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(exporter.run(async { drop(stopped.await) }));
    let registry = tracing_subscriber::registry().with(layer.with_filter(StageLayer::filter()));
    let subscriber = tracing::Dispatch::new(registry);
    tracing::dispatcher::with_default(&subscriber, || stage(&"01".repeat(32), "share_made", 1.0));
    tokio::time::sleep(Duration::from_secs(8)).await;
    let collector = Collector::default();
    collector.listen(free).await;
    let began = Instant::now();
    while collector.spans().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "nothing came");
        tracing::dispatcher::with_default(&subscriber, || stage(&"02".repeat(32), "share_made", 1.0));
        tokio::time::sleep(Duration::from_millis(2_600)).await;
    }
    assert!(collector.spans().iter().all(|span| span.trace_id == [2; 16]), "{:?}", collector.spans());
    stop.send(()).unwrap();
    running.await.unwrap();
}

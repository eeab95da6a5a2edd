//! Traces of real nodes, taken by a collector of OpenTelemetry's own code.

use std::{
    collections::BTreeMap,
    net::TcpListener,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest as Taken, ExportTraceServiceResponse as Thanks,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::any_value::Value,
};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::harness::Group;

/// By trace, what each node says that it did.
type Traces = BTreeMap<Vec<u8>, BTreeMap<i64, Vec<String>>>;

#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Taken>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(&self, request: Request<Taken>) -> Result<Response<Thanks>, Status> {
        self.0.lock().unwrap().push(request.into_inner());
        Ok(Response::new(Thanks::default()))
    }
}

impl Collector {
    fn traces(&self) -> Traces {
        let mut traces = Traces::new();
        for spans in self.0.lock().unwrap().iter().flat_map(|taken| &taken.resource_spans) {
            let attributes = &spans.resource.as_ref().unwrap().attributes;
            let node = attributes.iter().find(|attribute| attribute.key == "theta.node").unwrap();
            let Some(Value::IntValue(node)) = node.value.as_ref().unwrap().value else { panic!("{node:?}") };
            for span in spans.scope_spans.iter().flat_map(|scope| &scope.spans) {
                traces.entry(span.trace_id.clone()).or_default().entry(node).or_default().push(span.name.clone());
            }
        }
        traces
    }
}

#[test]
fn one_request_is_one_trace_of_all_nodes() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let collector = Collector::default();
    let service = TraceServiceServer::new(collector.clone());
    runtime.spawn(async move {
        let incoming = TcpListenerStream::new(tokio::net::TcpListener::from_std(listener).unwrap());
        tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming).await.unwrap();
    });
    let mut group = Group::made();
    for node in group.numbers() {
        group.append(node, "node.toml", &format!("\n[traces]\ncollector = \"{address}\"\n"));
    }
    group.start_all();
    group.file("secret plan", b"the ship leaves at dawn");
    group.theta(&["encrypt", "secret plan", "-o", "plan.theta"]).ok();
    group.theta(&["decrypt", "plan.theta", "-o", "plan.again"]).ok();
    group.theta(&["coin", "heads"]).ok();
    // A client that has its answer goes: one node has answered it for certain, and the k = 2 whose shares made
    // the answer have heard of the request.
    let all = |stages: &Vec<String>, these: &[&str]| these.iter().all(|it| stages.iter().any(|stage| stage == it));
    let whole = |traces: &Traces| {
        let count = |nodes: &BTreeMap<i64, Vec<String>>, these| nodes.values().filter(|it| all(it, these)).count();
        traces.len() == 2
            && traces.values().all(|nodes| count(nodes, &["request", "share_made"]) >= 2)
            && traces.values().all(|nodes| count(nodes, &["request", "combining", "returned"]) >= 1)
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !whole(&collector.traces()) {
        assert!(Instant::now() < deadline, "{:?}", collector.traces());
        std::thread::sleep(Duration::from_millis(100));
    }
    let nodes: Vec<i64> = group.numbers().map(i64::from).collect();
    assert!(collector.traces().values().flat_map(BTreeMap::keys).all(|node| nodes.contains(node)));
    let said = format!("{:?}", collector.0.lock().unwrap());
    assert!(!said.contains("heads") && !said.contains("dawn"), "{said}");
}
